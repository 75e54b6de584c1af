"""taciturn recipe: what it lists, shows and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from taciturn.cli.main import run
from taciturn.recipes import registry
from taciturn.recipes.recipe import Inputs


def test_list_is_every_recipe_in_both_forms(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recipe", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in listed] == registry.names()
    assert all(each["published"] and each["differs"] for each in listed)
    assert run(["recipe", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in registry.names())


def test_show_has_the_papers_number_and_where_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recipe", "show", "crt-figure6"]) == 0
    shown = capsys.readouterr().out
    assert "section 5.4" in shown
    assert "0.12" in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run"], "name a recipe"),
        (["show", "crt-figure33"], "did you mean 'crt-figure3'"),
        (["list", "--all"], "--all belongs"),
        (["run", "crt-figure3"], "--quick"),
        (["run", "crt-figure3", "--quick", "--runs", "0"], "--runs must be at least 1"),
    ],
)
def test_what_is_wrong_is_said_with_exit_code_2(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["recipe", *arguments, "-o", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_a_folder_without_the_data_is_refused_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    out = tmp_path / "out"
    assert run(["recipe", "run", "crt-figure3", "--quick", "--data", str(tmp_path / "data"), "-o", str(out)]) == 3
    assert "found neither" in capsys.readouterr().err
    assert not list(out.glob("*.md"))


def test_several_runs_stand_as_mean_and_deviation_and_are_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three runs of a row differ by first weights, order and noise, and what is not told apart is not for want of runs."""
    monkeypatch.setattr(Inputs, "pick", lambda _, smoke, *__: smoke)
    assert run(["recipe", "run", "uedp-figure7", "--quick", "--runs", "3", "-o", str(tmp_path)]) == 0
    page = (tmp_path / "uedp-figure7.md").read_text()
    assert "`taciturn recipe run uedp-figure7 --quick --runs 3`" in page
    assert "3 runs a row" in page
    assert " ± " in page.split("What came out")[1]
    assert "one run" not in page
    rows = [json.loads(line)["key"] for line in (tmp_path / "rows" / "uedp-figure7.jsonl").read_text().splitlines()]
    assert {row["seed"] for row in rows} == {0, 1, 2}
    assert {row["text"] for row in rows} == {0}
    assert all("scale=2.0" in row["plan"] for row in rows)  # z of the AWD-LSTM
    capsys.readouterr()
