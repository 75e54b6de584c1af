"""Which recipes there are: one for each module of a paper's folder that is named after a figure or a table."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

from taciturn.errors import UsageError, nearest
from taciturn.recipes.cells import Work
from taciturn.recipes.recipe import Inputs, Recipe, Results

_PAPERS = ("crt", "jft", "uedp")
_NAMED = re.compile(r"(figure|table)(\d+)")


def names() -> list[str]:
    """Names of all recipes, by paper, figures before tables, in the paper's order."""
    found = [
        (paper, match[1], int(match[2]))
        for paper in _PAPERS
        for each in pkgutil.iter_modules([str(Path(__file__).parent / paper)])
        if (match := _NAMED.fullmatch(each.name))
    ]
    return [f"{paper}-{kind}{number}" for paper, kind, number in sorted(found)]


def recipe(name: str) -> Recipe:
    """What the recipe of that name is. Raises UsageError, naming the nearest."""
    found: Recipe = _module(name).RECIPE
    return found


def run(name: str, inputs: Inputs, work: Work) -> Results:
    """Run it in the size of ``inputs``."""
    results: Results = _module(name).run(inputs, work)
    return results


def _module(name: str) -> Any:
    if name not in names():
        raise UsageError(f"unknown recipe {name!r}; {nearest(name, names())}")
    return importlib.import_module(f"taciturn.recipes.{name.replace('-', '.')}")
