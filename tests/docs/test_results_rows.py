"""Tables of the pages that have their rows beside them say what the rows say."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "experiments" / "rows"


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> Any:
    """experiments/values.py, whose neighbours it imports by name."""
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    spec = importlib.util.spec_from_file_location("experiments_values", ROOT / "experiments" / "values.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "experiments_values", module)
    spec.loader.exec_module(module)
    return module


def test_learned_values(values: Any) -> None:
    """What `values.py table` prints of the rows stands in docs/results.md, line by line."""
    page = (ROOT / "docs" / "results.md").read_text()
    lines = values.show(values.Work(ROWS, "values.jsonl")).splitlines()
    assert len(lines) > 12
    missing = [line for line in lines if line.strip("|-: ") and line not in page]
    assert missing == []


def test_what_fits_on_devices() -> None:
    page = (ROOT / "docs" / "how-to" / "large-models.md").read_text()
    rows = [json.loads(line) for line in (ROWS / "fits.jsonl").read_text().splitlines()]
    assert len(rows) == 3
    for row in rows:
        ends = row["rows"] or f"none: {row['short'] / 1e9:.0f} GB too much"
        (line,) = [line for line in page.splitlines() if line.startswith("|") and row["line"] in line]
        assert line.endswith(f"| {ends} |"), line
