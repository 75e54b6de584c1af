"""taciturn doctor: extras are those of pyproject.toml, and the estimate follows its formula."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from taciturn.cli import speed
from taciturn.cli.doctor import CORE, EXTRAS, FOR
from taciturn.cli.main import run

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def name_of(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found
    return found[0].lower().replace("_", "-")


def test_every_extra_of_the_project_is_explained() -> None:
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    extras = {name: {name_of(each) for each in needs} for name, needs in project["optional-dependencies"].items()}
    assert {name: set(needs) for name, needs in EXTRAS.items()} == {
        k: v for k, v in extras.items() if k not in ("all", "dev")
    }
    assert FOR.keys() == EXTRAS.keys()
    assert set(CORE) == {name_of(each) for each in project["dependencies"]}


def test_it_says_what_is_there_and_what_an_hour_can_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "SECONDS", 0.1)
    assert run(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["packages"]["numpy"]
    assert facts["threads"] >= 1
    assert facts["memory_gib"] > 0
    for each in facts["speed"]["models"].values():
        assert 0 < each["from"] < each["tokens_per_hour"] < each["to"]
        assert each["to"] == pytest.approx(speed.WITHIN * each["from"])
    assert "Kaplan" in facts["speed"]["formula"]


def test_without_measuring_it_is_quick_and_readable(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--no-measure"]) == 0
    said = capsys.readouterr().out
    assert "torch" in said
    assert "GFLOP/s" not in said


def test_the_formula_counts_the_weights_of_gpt2() -> None:
    """Kaplan et al. 2020, Table 1: 12 · layers · width² weights without the embedding; ours adds the output head."""
    size = next(each for each in speed.SIZES if each.name == "gpt2")
    assert size.weights == 84_934_656 + 38_597_376
    assert size.flops == 6 * size.weights + 6 * 12 * 512 * 768
    assert speed.tokens_per_hour(size, 2 * 3.0) == pytest.approx(2 * speed.tokens_per_hour(size, 3.0))


def test_products_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """10¹⁴ multiplications a second are beyond any core; nothing can be said of the other end on a busy machine."""
    monkeypatch.setattr(speed, "SECONDS", 0.05)
    assert 0 < speed.gflops(32, 64, "cpu") < 1e5


@pytest.mark.parametrize(
    ("argv", "package", "extra"),
    [
        (["generate", "."], "torch", "train"),
        (["run", "p.toml"], "jinja2", "report"),
        (["audit", "."], "transformers", "train"),
    ],
)
def test_a_missing_extra_is_named_with_its_pip_line_not_with_a_traceback(
    tmp_path: Path, argv: list[str], package: str, extra: str
) -> None:
    """In a fresh interpreter in which the package cannot be found, as on a machine that never installed it."""
    (tmp_path / "t.txt").write_text("hello there")
    (tmp_path / "p.toml").write_text(
        'folder = "w"\n[read]\npaths = ["t.txt"]\n[screen]\npolicy = ["email"]\n[plan]\nmechanism = "redacted"\n'
    )
    code = (
        "import sys\nclass Absent:\n    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] == {package!r}: raise ModuleNotFoundError(name, name={package!r})\n"
        "sys.meta_path.insert(0, Absent())\n"
        f"from taciturn.cli.main import run\nsys.exit(run({argv!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert f"pip install 'taciturn[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
