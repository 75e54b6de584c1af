"""The measurements are a package that others of its name do not hide."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
