"""Running recipes into a folder of pages, and refusing what a size cannot do before anything is trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from taciturn.errors import UsageError
from taciturn.recipes import page, registry
from taciturn.recipes.cells import Work
from taciturn.recipes.recipe import Built, Inputs

ROWS = "rows"
"""Beside the pages: the cells that each was made of, a file a page."""
HIDDEN = ".work"
"""Beside the pages: cells by paper, so that figures that rest on the same runs share them."""


def build(name: str, inputs: Inputs, out: Path, notify: Callable[[str], None] = lambda _: None) -> Built:
    """Run a recipe; write its page, plots and rows to ``out``. What was measured before in the same setting is read again,
    from the work folder or from the rows beside the page.

    Raises UsageError for an unknown name, for the full setting without what it needs, and for a medium one without data.
    """
    recipe = registry.recipe(name)
    given = inputs.data, inputs.model, inputs.writer
    if inputs.size == "full" and recipe.needs and not any(given):
        raise UsageError(
            f"{name}: the full setting takes {recipe.needs}; give --data DIR and --model DIR (or a name on the hub), or "
            "--quick for simulated data and a tiny model"
        )
    if inputs.size == "medium":
        if not recipe.medium:
            have = ", ".join(each for each in registry.names() if registry.recipe(each).medium)
            raise UsageError(
                f"{name} has no medium size (these have: {have}); give --quick, or neither for the full setting"
            )
        if inputs.data is None:
            raise UsageError(f"{name}: the medium size takes real data; give --data DIR, a folder with {recipe.medium}")
    work = Work(out / HIDDEN / recipe.paper, notify)
    work.folder.mkdir(parents=True, exist_ok=True)
    (out / HIDDEN / ".gitignore").write_text("*\n")
    rows = out / ROWS / f"{page.stem(recipe, inputs.size)}.jsonl"
    if rows.exists():
        work.restore(rows.read_text("utf-8"))
    results = registry.run(name, inputs, work)
    built = Built(recipe, results, inputs, work.seconds)
    files = page.write(built, out)
    rows.parent.mkdir(exist_ok=True)
    rows.write_text(work.lines(), "utf-8")
    page.index([registry.recipe(each) for each in registry.names()], out)
    return replace(built, files=(*files, rows))
