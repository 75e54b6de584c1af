"""Every test that a page of the documentation names is there, and the page of guarantees names each by its place."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
NAMED = re.compile(r"(tests/[\w/]+\.py)(?:::(\w+))?")


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_tests_exist(page: Path) -> None:
    for file, name in NAMED.findall(page.read_text("utf-8")):
        assert (ROOT / file).is_file(), f"{page.name} names {file}"
        assert not name or name in functions(ROOT / file), f"{page.name} names {file}::{name}"


def test_the_guarantees_name_their_tests_by_place() -> None:
    text = (ROOT / "docs/guarantees.md").read_text("utf-8")
    assert not re.findall(r"(?<!::)\btest_\w+(?!\.py)\b`", text), "a test without its file"
    assert len(set(NAMED.findall(text))) > 70


@pytest.mark.parametrize(
    "section", ["1", "2", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "4.1", "4.2", "4.3", "4.4", "5", "6", "7"]
)
def test_each_section_of_the_guarantees_names_a_test(section: str) -> None:
    text = (ROOT / "docs/guarantees.md").read_text("utf-8")
    start = re.search(rf"^##+ {re.escape(section)} ", text, re.MULTILINE)
    assert start
    following = re.search(r"^##+ ", text[start.end() :], re.MULTILINE)
    assert following
    assert NAMED.search(text[start.end() : start.end() + following.start()]), section


def test_examples_that_the_guarantees_name_are_there() -> None:
    text = (ROOT / "docs/guarantees.md").read_text("utf-8")
    named = set(re.findall(r"python (examples/\w+\.py)", text))
    assert len(named) >= 2
    assert all((ROOT / each).is_file() for each in named)
