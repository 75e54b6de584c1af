"""Tables of docs/results.md that have their rows beside them say what the rows say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import mean, stdev

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [json.loads(line) for line in (ROOT / "experiments" / "rows" / "values.jsonl").read_text().splitlines()]
PAGE = (ROOT / "docs" / "results.md").read_text()
SEEDS = (0, 1, 2)
NAMES = {
    "redacted": "redacted only",
    "skeletons": "skeletons",
    "table, kept": "table, 20 % public weights",
    "table, stays, kept": "and common values stay",
}


def shown(values: list[float]) -> str:
    """Mean ± standard deviation, as the tables have it: ".85" for 0.85."""
    return f"{mean(values):.2f} ± " + re.sub(r"^0", "", f"{stdev(values):.2f}")


@pytest.mark.parametrize("name", NAMES)
def test_an_eighth_of_multiwoz_with_whole_masks(name: str) -> None:
    def cells(row: str, key: str) -> list[float]:
        found = {r["seed"]: r[key] for r in ROWS if (r["set"], r["stride"], r["row"]) == ("multiwoz", 8, row)}
        return [found[seed] for seed in SEEDS]

    outside = cells(name, "outside")
    ratios = [a / b for a, b in zip(outside, cells("redacted", "outside"), strict=True)]
    ratio = "1" if name == "redacted" else shown(ratios)
    table = PAGE.split("The same with skeletons that join particles")[1]
    assert f"| {NAMES[name]} | {shown(cells(name, 'first'))} | {shown(outside)} | {ratio} |" in table
