"""Every recipe in its smallest size, from data to page, and its page again from its rows alone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from taciturn.recipes import registry, tiny_models
from taciturn.recipes.build import HIDDEN, ROWS, build
from taciturn.recipes.cells import Work
from taciturn.recipes.page import linked, stem, write
from taciturn.recipes.recipe import Built, Inputs, Results, Table
from taciturn.recipes.verdicts import AS, NOT_AS, RULE, UNTOLD

SMALL = Inputs("smoke")
PAGES = Path(__file__).parents[2] / "docs" / "papers"
COMPUTED = {"crt-figure6", "jft-table1", "jft-table3", "jft-table5", "uedp-figure4", "uedp-table2"}
"""Recipes, or parts of them, in which nothing is drawn at random: an ε is what it is."""
SINGLE = {"jft-table7"}
"""One row in the smallest size: nothing to compare."""
NEEDS_SPACY = {f"jft-table{i}" for i in (1, 2, 3, 4, 6, 7, 8)}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("papers")


def numbers(table: Table) -> list[float]:
    return [each for row in table.rows for each in row if isinstance(each, int | float)]


@pytest.mark.parametrize("name", registry.names())
def test_it_runs_and_says_no_more_than_one_run_carries(name: str, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in NEEDS_SPACY:
        pytest.importorskip("spacy")
    built = build(name, SMALL, out)
    assert all(table.rows for table in built.results.tables)
    assert any(numbers(table) for table in built.results.tables) or name == "jft-table1"
    told = [line for line in built.results.says if line.startswith((AS, NOT_AS))]
    if name not in COMPUTED:
        assert told == []
        untold = [line for line in built.results.says if line.startswith(UNTOLD)]
        assert (RULE in built.results.says) == bool(untold) == (name not in SINGLE)
        assert all("one run a row" in line for line in untold)
    page = (out / f"{name}.md").read_text()
    assert all(linked(line) in page for line in built.results.says)
    assert again(name, out / ROWS / f"{name}.jsonl", out, SMALL, monkeypatch) == built.results
    assert list((out / HIDDEN / built.recipe.paper).glob("runs/*")) == []


@pytest.mark.parametrize("rows", sorted((PAGES / ROWS).glob("*.jsonl")), ids=lambda path: path.stem)
def test_a_page_says_what_its_rows_say(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers, verdicts, pictures: the page is written again from the rows. Its last line names the version and the CPU."""
    page, name = (PAGES / f"{rows.stem}.md").read_text(), rows.stem.removesuffix("-medium")
    given = r"(?: --data (DATA))?(?: --model (MODEL))?(?: --writer (WRITER))?"
    command = rf"`taciturn recipe run {name} --(quick|medium)(?: --runs (\d+))?{given}`"
    ran = re.search(command, page)
    assert ran
    data = ran[3] and Path(ran[3].lower())
    models = (json.loads(line)["key"].get("model") for line in rows.read_text().splitlines())
    names = dict.fromkeys(each for each in models if each and not each.startswith("{"))  # there are settings, too
    named = dict(zip([each for each in ran.groups()[3:] if each], names, strict=False))
    model, writer = (each and named.get(each, each.lower()) for each in ran.groups()[3:])
    inputs = Inputs(ran[1], data, model, runs=int(ran[2] or 0), writer=writer)  # type: ignore[arg-type]
    assert stem(registry.recipe(name), inputs.size) == rows.stem
    assert page.count(RULE) <= 1, "orders of one page were corrected apart from each other"
    results = again(name, rows, tmp_path, inputs, monkeypatch)
    for path in write(Built(registry.recipe(name), results, inputs, 0.0), tmp_path):
        made, there = path.read_text(), (PAGES / path.name).read_text()
        assert made.rsplit("\n\nPaper: ", 1)[0] == there.rsplit("\n\nPaper: ", 1)[0], path.name


def test_every_page_has_its_rows() -> None:
    assert {name for name in registry.names() if not (PAGES / ROWS / f"{name}.jsonl").exists()} == set()


def test_no_row_names_a_place_on_the_machine_that_measured_it() -> None:
    for path in (PAGES / ROWS).glob("*.jsonl"):
        assert not re.search(r'"(/|[A-Z]:\\\\)[^"]*"', path.read_text()), path.name


def again(name: str, rows: Path, out: Path, inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> Results:
    """The results from the rows, with nothing else to read: what is missing there cannot be measured."""
    work = Work(out / "again" / name)
    for line in rows.read_text().splitlines():
        kept = json.loads(line)
        key = {name: value for name, value in kept["key"].items() if name != "taciturn"}
        work.cell(key, lambda row=kept["row"]: row)  # type: ignore[misc]
    there = set(work.asked)
    monkeypatch.setattr(tiny_models, "_train", lambda *_: None)
    asked = replace(work, notify=unmeasured, asked={})
    results = registry.run(name, inputs, asked)
    assert set(asked.asked) == there
    return results


def unmeasured(cell: str) -> None:
    pytest.fail(f"no row of {cell}")
