"""Findings: plain JSON, the same after a round trip, one verdict rule."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from taciturn.auditing.finding import CLEAR, LEAK, Finding, load, save, verdict_of
from taciturn.errors import DataError

FINDING = Finding(
    attack="membership",
    score=0.61,
    unit_of_score="AUC",
    interval=(0.55, 0.66),
    null={"mean": 0.5, "p": float("nan")},
    controls={"positive": 1.0},
    verdict="leak",
    detail={"roc": np.linspace(0, 1, 3), "tpr": (0.1, 0.0, 0.2), "none": None},
    notes=("a note",),
)


def test_round_trip(tmp_path) -> None:
    save(tmp_path / "audit.json", [FINDING])
    (back,) = load(tmp_path / "audit.json")
    assert back.to_json() == FINDING.to_json()
    assert back.interval == (0.55, 0.66)
    assert json.loads((tmp_path / "audit.json").read_text())["findings"][0]["null"]["p"] is None


def test_damaged_files_are_named(tmp_path) -> None:
    path = tmp_path / "audit.json"
    path.write_text("{}")
    with pytest.raises(DataError, match=r"audit\.json"):
        load(path)
    row = FINDING.to_json()
    with pytest.raises(DataError, match="unknown colour"):
        Finding.from_json({**row, "colour": 1})
    row.pop("verdict")
    with pytest.raises(DataError, match="without verdict"):
        Finding.from_json(row)


def test_verdict_rule_at_its_edges() -> None:
    assert verdict_of(LEAK) == "inconclusive"
    assert verdict_of(LEAK - 1e-9) == "leak"
    assert verdict_of(CLEAR) == "no leak found"
    assert verdict_of(CLEAR - 1e-9) == "inconclusive"
    assert verdict_of(1.0, ["broken"]) == "inconclusive"


def test_findings_and_canaries_are_read_without_torch() -> None:
    code = "import sys, taciturn.auditing as a; a.Template, a.Finding, a.Planted; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
