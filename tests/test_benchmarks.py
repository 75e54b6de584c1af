"""The measurements are a package that others of its name do not hide."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_another_package_of_this_name_does_not_come_first(tmp_path: Path) -> None:
    other = tmp_path / "benchmarks"
    other.mkdir()
    (other / "__init__.py").write_text("raise ImportError('the other one')\n")
    path = os.pathsep.join([str(ROOT / "src"), str(tmp_path)])
    command = [sys.executable, "-m", "benchmarks.noise", "--help"]
    said = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert "--entries" in said.stdout


def test_the_table_beside_opacus_says_what_its_rows_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    steps = import_module("benchmarks.steps")
    rows = [json.loads(line) for line in (ROOT / "experiments" / "rows" / "steps.jsonl").read_text().splitlines()]
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert {row["model"] for row in rows if "processor" in row} == set(steps.SIZES)
    assert steps.table(rows) in page


def test_the_table_of_the_noise_says_what_its_rows_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    steps = import_module("benchmarks.steps")
    path = ROOT / "experiments" / "rows" / "steps_noise.jsonl"
    table = steps.table([json.loads(line) for line in path.read_text().splitlines()])
    assert "ours before" in table
    assert table in (ROOT / "docs" / "benchmarks.md").read_text()


@pytest.mark.parametrize("name", ["frozen", "precision"])
def test_a_table_says_what_its_rows_say(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    path = ROOT / "experiments" / "rows" / f"{name}.jsonl"
    table = import_module(f"benchmarks.{name}").table([json.loads(line) for line in path.read_text().splitlines()])
    assert table in (ROOT / "docs" / "benchmarks.md").read_text()
