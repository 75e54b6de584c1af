"""Every code block of every page runs (see blocks.py for what that means), in a copy of the files the pages speak of."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from blocks import ROOT, Block, agrees, blocks, planned_small, run_console, run_python, run_shell, run_toml, shown
from world import TRUTH, make

import taciturn

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OWN_TEST = {
    "new-mechanism.md",
    "new-rule.md",
    "tutorial.md",
}  # mechanisms/test_mechanisms_howto.py; training/updates/test_howto.py; below


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    before = os.getcwd()
    os.chdir(folder)
    try:
        make(folder)
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def here(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the world of one's own, and in it."""
    folder = tmp_path / "here"
    shutil.copytree(world, folder, symlinks=True)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(taciturn, "plan", planned_small(taciturn.plan))
    return folder


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in OWN_TEST and blocks(page)], ids=name_of)
def test_every_block_of_the_page_runs(page: Path, here: Path) -> None:
    given = frozenset(str(path.relative_to(here)) for path in here.rglob("*") if len(path.relative_to(here).parts) <= 2)
    names: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        try:
            one(block, given, names)
        except Exception as error:
            raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error
    pictures = [value._repr_html_() for value in names.values() if hasattr(value, "_repr_html_")]
    for table in shown(page):
        assert any(agrees(table, picture) for picture in pictures), f"{page.name}: a notebook does not show {table}"


def test_a_newcomer_follows_the_tutorial_to_its_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From an empty folder, in the order and with the words of the page."""
    monkeypatch.chdir(tmp_path)
    Path(TRUTH).write_text("[]")
    names: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks(ROOT / "docs" / "tutorial.md"):
        one(block, frozenset(), names)
    report = Path("report.html").read_text("utf-8")
    assert report.count("<svg") > 5
    assert all(word in report for word in ("crt", "redacted", "confidentiality", "substitution"))
    assert Path("model/certificate.json").is_file()
    rates = json.loads(Path("recall.json").read_text("utf-8"))["bounds"]
    assert 0.3 < rates["gamma"] < 0.8, "the page says: about half"
    assert rates["delta2"] < 0.2, "the page says: below a tenth; the sample is drawn anew, so leave it room"


def one(block: Block, given: frozenset[str], names: dict[str, Any]) -> None:
    match block.language:
        case "sh":
            run_shell(block, given)
        case "console":
            run_console(block, given)
        case "python":
            for path in ("screened", "runs/mail", "model"):
                if f'out="{path}"' in block.text or f'export("{path}' in block.text:
                    shutil.rmtree(path, ignore_errors=True)
            names["__printed__"] = run_python(block, names)
        case "toml":
            tomllib.loads(block.text)
            run_toml(block)
        case "text" if block.title == "output":
            assert agrees(block.text, names["__printed__"]), f"printed is\n{names['__printed__']}"
        case "text" | "json" | "bibtex":
            pass
        case other:
            raise AssertionError(f"a code block in {other!r}: say sh, console, python, toml, text or json")


def test_the_runner_sees_what_is_wrong(here: Path) -> None:
    """The test above can fail: an unknown option, an unknown program, output that differs, a wrong setting."""
    bad = (
        Block(1, "sh", "", "taciturn screen mail/*.jsonl --no-such-option -o x"),
        Block(1, "sh", "needs a GPU", "taciturn train run.toml --no-such-option"),
        Block(1, "sh", "", "frobnicate"),
        Block(1, "console", "", "$ taciturn policies\nnothing like this"),
        Block(1, "text", "output", "another …"),
        Block(1, "toml", "", "[model]\nnmae = 'gpt2'\n"),
        Block(1, "", "", "taciturn"),
    )
    for block in bad:
        with pytest.raises(Exception):  # noqa: B017
            one(block, frozenset(), {"__printed__": "one thing\n"})
    one(Block(1, "text", "output", "one …"), frozenset(), {"__printed__": "one thing\n"})
    assert here.is_dir()
