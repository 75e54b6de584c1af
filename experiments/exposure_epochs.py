"""Why canary exposure is told apart nowhere on CRT's medium pages: the same rows with more plain epochs.

    python experiments/exposure_epochs.py run --data DATA --papers PAPERS
    python experiments/exposure_epochs.py table

CustomerSim whole, as in `taciturn recipe run crt-figure3 --medium`, from the screened text and first weights that this
command has left below PAPERS; only the number of epochs without noise is another. The orders are those of section 5.3.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import beside_a_page, spread

from taciturn.recipes.cells import Work
from taciturn.recipes.crt.bench import Bench
from taciturn.recipes.crt.curves import Cells, leaks
from taciturn.recipes.crt.sizes import SIZES, Setting, name_of
from taciturn.recipes.recipe import Inputs
from taciturn.recipes.verdicts import sentences

ROOT = Path(__file__).parents[1]
MEDIUM = ROOT / "docs" / "papers" / "rows" / "crt-figure3-medium.jsonl"
ROWS = ROOT / "experiments" / "rows" / "exposure_epochs.jsonl"
EPOCHS = 6
CELLS = (("redacted", 0.0), ("redacted", 0.5), ("CRT", 0.5))
SEEDS = (0, 1, 2)
SHOWN = {"exposure": "highest exposure", "membership_accuracy": "membership accuracy",
         "secret_membership_accuracy": "accuracy on the secret's own tokens"}  # fmt: skip
"""Exposure in bits."""


@dataclass(frozen=True)
class Longer(Bench):
    """The medium bench with EPOCHS epochs without noise, between which CRT shares its noised steps evenly."""

    @property
    def setting(self) -> Setting:
        medium = super().setting
        return replace(medium, epochs=(EPOCHS, 1), steps=medium.steps // EPOCHS * EPOCHS)


def run(data: Path, papers: Path) -> None:
    """Every cell; those that are kept are read."""
    work = Work(papers / ".work" / "crt", print)
    bench = Longer(Inputs("medium", data=data, runs=len(SEEDS)), work)
    for seed in SEEDS:
        for row, gamma in CELLS:
            bench.cell("LSTM", row, gamma, seed)
    ROWS.write_text(work.lines())


def kept(rows: Sequence[dict[str, Any]], epochs: int) -> Cells:
    """Cells of one number of epochs, as the recipe's orders read them."""
    return {
        ("LSTM", key["row"], key["gamma"], key["seed"]): each["row"]
        for each in rows
        if ((key := each["key"])["row"], key.get("gamma")) in CELLS and key["epochs"][0] == epochs
    }


def show(page: str, lines: str) -> str:
    """The table of both numbers of epochs, and what the runs tell apart at EPOCHS. page: cells of the recipe's page."""
    every = (json.loads(line) for line in (page + lines).splitlines())
    rows = [each for each in every if each["key"]["bench"] == "customersim"]
    bars = {"LSTM": next(each["row"] for each in rows if each["key"]["row"] == "bar")}
    table = [
        "| plain epochs | model | γ | " + " | ".join(SHOWN.values()) + " | perplexity |",
        "|---:|---|---:|---:|---:|---:|---:|",
    ]
    for epochs in (SIZES["medium"].epochs[0], EPOCHS):
        cells = kept(rows, epochs)
        for row, gamma in CELLS:
            here = [cells["LSTM", row, gamma, seed] for seed in SEEDS]
            told = (spread([each[name] for each in here], 1 if name == "exposure" else 3) for name in SHOWN)
            perplexity = spread([each["perplexity"] for each in here], 1)
            table.append(f"| {epochs} | {name_of('LSTM', row)} | {gamma:g} | {' | '.join(told)} | {perplexity} |")
    orders = [each for name, what in SHOWN.items() for each in leaks(f"{EPOCHS} epochs", what, cells, bars, name)]
    return "\n".join([*table, "", *(f"- {line}" for line in sentences(orders)[:-1])])


if __name__ == "__main__":
    beside_a_page(__doc__, run, lambda: show(MEDIUM.read_text(), ROWS.read_text()))
