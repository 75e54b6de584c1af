"""A plot of `taciturn budget` as a file: an SVG that stands alone, or a page with its numbers."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from taciturn.errors import MissingExtra, UsageError
from taciturn.text.atomic import write_text

SPAN = 20.0
"""Largest over smallest value of a parameter from which its axis is logarithmic."""

Curve = tuple[str, Sequence[float], Sequence[float]]
"""Name, values of the parameter, costs."""


def write(
    out: Path,
    curves: Sequence[Curve],
    axes: tuple[str, str],
    title: str,
    facts: Sequence[str],
    table: tuple[Sequence[str], Sequence[Sequence[str]]],
) -> None:
    """Write .svg or .html, by the ending of ``out``. axes: names of x and y. table: head and rows, in the page only.

    Raises UsageError for another ending, MissingExtra without matplotlib.
    """
    if out.suffix not in (".svg", ".html"):
        raise UsageError(f"--plot {out.name}: expected a file that ends in .svg or .html")
    try:
        from taciturn.reporting.figures.drawing import Line
        from taciturn.reporting.figures.plots import what_if
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise MissingExtra("matplotlib", "report") from error
    lines = [Line(name, slot, x, y) for slot, (name, x, y) in enumerate(curves)]
    values = [x for line in lines for x in line.x]
    log = min(values, default=0.0) > 0 and max(values) >= SPAN * min(values)
    svg = what_if(lines, *axes, log, "budget")
    css = (Path(__file__).parents[1] / "style.css").read_text("utf-8")
    text = _alone(svg, css, title, facts) if out.suffix == ".svg" else _page(svg, css, title, facts, table)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, text)


def _alone(svg: str, css: str, title: str, facts: Sequence[str]) -> str:
    """The plot with the colours of the report in it, light and dark."""
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    look = css[: css.index("* {")] + "svg { background: var(--paper); color: var(--text); font-family: var(--font); }"
    said = html.escape(". ".join((title, *facts)))
    start = svg.index(">") + 1
    return (
        f"{svg[:start].replace('<svg ', f'<svg {spaces} ', 1)}<title>{said}</title><style>{look}</style>{svg[start:]}\n"
    )


def _page(
    svg: str, css: str, title: str, facts: Sequence[str], table: tuple[Sequence[str], Sequence[Sequence[str]]]
) -> str:
    head, rows = table
    heads = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in head)
    body = "\n".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    said = "".join(f"<p>{html.escape(fact)}</p>" for fact in facts)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>{html.escape(title)}</title>
<style>
{css}
main > svg {{ width: 100%; max-width: 44rem; }}
</style>
</head>
<body>
<main>
<h1>{html.escape(title)}</h1>
{said}
{svg}
<div class="scroll"><table>
<thead><tr>{heads}</tr></thead>
<tbody>
{body}
</tbody>
</table></div>
</main>
</body>
</html>
"""
