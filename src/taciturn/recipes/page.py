"""The page of a recipe: the paper's setting and numbers, ours, what differs, and what was found. Markdown, plots as SVG."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import taciturn
from taciturn.recipes.draw import described, draw
from taciturn.recipes.recipe import PAPERS, SHORT, Built, Cell, Recipe, Results, Size, Table
from taciturn.reporting.formats import MISSING, bound, general

INDEX = "recipes.md"
"""The page that lists the others, beside them."""
AGAIN = "reruns.md"
"""The page on verdicts that were run again, where it stands beside them."""


def write(built: Built, folder: Path) -> list[Path]:
    """NAME.md and one SVG a plot into ``folder``; the paths written."""
    results, name = built.results, stem(built.recipe, built.inputs.size)
    folder.mkdir(parents=True, exist_ok=True)
    files = {folder / f"{name}.md": page(built)}
    for plot in results.plots:
        files[folder / svg_name(name, plot.key)] = draw(plot, f"{name}-{plot.key}")
    for path, text in files.items():
        path.write_text(text, "utf-8")
    return list(files)


def stem(recipe: Recipe, size: Size) -> str:
    """Name of its page and rows: a medium one stands beside the other."""
    return f"{recipe.name}-medium" if size == "medium" else recipe.name


def svg_name(name: str, key: str) -> str:
    return f"{name}-{key}.svg"


def page(built: Built) -> str:
    """Markdown of one recipe."""
    recipe, results, size = built.recipe, built.results, built.inputs.size
    given = " --data DATA" if built.inputs.data else ""
    given += " --model MODEL" if built.inputs.model else ""
    given += " --writer WRITER" if built.inputs.writer else ""
    parts = [
        *_head(recipe, built.inputs.flags + given, f"**This page** ({size}). {results.setting}"),
        "## What came out",
        *_plots(stem(recipe, size), results),
        *(table(each) for each in results.tables),
        "## What it says",
        "\n".join(f"- {each}" for each in results.says),
        f"Paper: {PAPERS[recipe.paper]}. taciturn {taciturn.__version__}; {built.seconds:,.0f} CPU seconds."
        + (f" The full setting takes {recipe.needs}: `taciturn recipe run {recipe.name}`." if recipe.needs else ""),
    ]
    return linked("\n\n".join(each for each in parts if each)) + "\n"


def linked(text: str) -> str:
    """Pages of the documentation that a text names, as links.

    >>> linked("see docs/guarantees.md, section 3")
    'see [guarantees](../guarantees.md), section 3'
    """
    return re.sub(r"docs/(\w+)\.md", r"[\1](../\1.md)", text)


def pending(recipe: Recipe) -> str:
    """The page of a recipe that was not run yet: both settings and the paper's numbers, and how to run it."""
    run = f"Not run yet: `taciturn recipe run {recipe.name} --quick` does, in minutes on two cores."
    parts = [*_head(recipe, " --quick", ""), "## What came out", run, f"Paper: {PAPERS[recipe.paper]}."]
    return linked("\n\n".join(parts)) + "\n"


READ = "[What is guaranteed, and why](../guarantees.md) · [Mechanisms](../mechanisms.md)"
"""Where the words of a page are explained."""


def _head(recipe: Recipe, flag: str, here: str) -> list[str]:
    """Title, question, both settings, what differs, published numbers. here: what this page ran, or nothing."""
    parts = [
        f"# {recipe.place}: {recipe.title}",
        f"Written by `taciturn recipe run {recipe.name}{flag}`; do not edit. [All recipes]({INDEX}) · {READ}",
        f"**{recipe.asks}**",
        "## Setting",
        f"**The paper.** {recipe.paper_setting}",
        f"**Ours.** {recipe.our_setting}",
        here,
        "**What differs**",
        "\n".join(f"- {each}" for each in recipe.differs),
        "## What the paper reports",
        *(table(each) for each in recipe.published),
    ]
    return [each for each in parts if each]


def _plots(name: str, results: Results) -> list[str]:
    shown = []
    for plot in results.plots:
        shown.append(f"![{_escape(described(plot))}]({svg_name(name, plot.key)})")
        shown.append(f"*{plot.title}.* {plot.caption}".strip())
    if any(each.published for plot in results.plots for each in plot.series):
        shown.append("Open squares: the paper. Filled dots: this run.")
    return shown


def table(each: Table) -> str:
    """A Markdown table with its title, and where published numbers stand in the paper."""
    title = f"**{each.title}**" + (f" ({each.source})" if each.source else "")
    numbers = [
        all(not isinstance(row[i], str) or _numeric(row[i]) for row in each.rows) for i in range(len(each.columns))
    ]
    above = [name in each.bounds for name in each.columns]
    rules = ["---:" if right and i else "---" for i, right in enumerate(numbers)]
    lines = ["| " + " | ".join(map(_escape, each.columns)) + " |", "|" + "|".join(rules) + "|"]
    for row in each.rows:
        shows = [_escape(cell_text(cell, up=up)) for cell, up in zip(row, above, strict=True)]
        lines.append("| " + " | ".join(shows) + " |")
    return f"{title}\n\n" + "\n".join(lines) + (f"\n\n{each.note}" if each.note else "")


def cell_text(cell: Cell, up: bool = False) -> str:
    """A cell as people read it. up: rounded up.

    >>> cell_text(None), cell_text(float("inf")), cell_text("a"), cell_text(1234), cell_text(0.12)
    ('–', '∞', 'a', '1,234', '0.12')
    >>> cell_text(1.9243), cell_text(1.9243, up=True)
    ('1.92', '1.93')
    """
    if cell is None:
        return MISSING
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}"
    exact = math.isfinite(cell) and 1e-3 <= abs(cell) < 1e6 and float(f"{cell:.6g}") == cell
    return f"{cell:,.6g}".replace("-", "−") if exact and len(f"{cell:.6g}") < 6 else (bound if up else general)(cell)


def _numeric(cell: Cell) -> bool:
    return isinstance(cell, str) and cell[:1] in "0123456789.−-–∞≈±" and len(cell) < 24


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def index(recipes: Sequence[Recipe], folder: Path) -> Path:
    """recipes.md: every recipe that has a page in ``folder``, by paper."""
    lines = ["# The papers' figures and tables, run again", ""]
    lines.append(
        "Each page has the paper's setting and numbers, ours, and what differs. In the quick size data are simulated and "
        "models tiny. When an order is told apart says [a rule](../papers.md#when-a-page-says-as-in-the-paper). "
        "Measurements on the papers' own data are in "
        "[results](../results.md)."
    )
    for paper, title in PAPERS.items():
        rows = [each for each in recipes if each.paper == paper]
        if rows:
            lines += ["", f"## {SHORT[paper]}: {title}", "", "| item | title | asks |", "|---|---|---|"]
        for each in rows:
            names = {each.item: each.name, "on real data": stem(each, "medium")}
            links = [f"[{text}]({name}.md)" for text, name in names.items() if (folder / f"{name}.md").exists()]
            item = ", ".join(links) or each.item
            lines.append(f"| {item} | {_escape(each.title)} | {_escape(each.asks)} |")
    if (folder / AGAIN).exists():
        lines += ["", f"[Verdicts, run again]({AGAIN}): which of them come out again with other seeds."]
    path = folder / INDEX
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path
