"""What the plots of the report are drawn with: runs as lines in their colours and dashes, axes, ticks and remarks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from taciturn.reporting.figures.svg import SERIES, color
from taciturn.reporting.formats import power

DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (5, 2),
    (1.2, 1.6),
    (7, 2, 1.2, 2),
    (3, 1.2),
    (9, 3),
    (1.2, 3.2),
    (5, 1, 1, 1),
)
"""Dash pattern of each slot, in line widths, so that runs differ without colour."""

WIDTH, HEIGHT = 4.2, 2.8
"""Inches; the page scales a plot to its column, and on a phone one plot fills the width at about true size."""


@dataclass(frozen=True, slots=True)
class Line:
    """One run's curve. slot: its place among the runs. x, y: equally long."""

    name: str
    slot: int
    x: Sequence[float]
    y: Sequence[float]


def panel() -> tuple[Figure, Axes]:
    """A figure of one plot."""
    figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    return figure, figure.add_subplot()


def draw(axes: Axes, lines: Sequence[Line], marker: str | None = None) -> None:
    """Earlier lines are wider, so that equal curves still show all their colours."""
    for above, line in enumerate(reversed(lines)):
        pattern = DASHES[line.slot % len(DASHES)]
        axes.plot(
            line.x, line.y, color=hue(line.slot), linestyle=(0, pattern) if pattern else "solid",
            linewidth=1.5 + 0.7 * min(above, 4), zorder=3 - 0.01 * above, marker=marker, markersize=3,
        )  # fmt: skip


def positive(line: Line) -> Line:
    """The points that log axes can show."""
    points = [(x, y) for x, y in zip(line.x, line.y, strict=True) if x > 0 and y > 0]
    return Line(line.name, line.slot, [x for x, _ in points], [y for _, y in points])


def hue(slot: int) -> str:
    """The colour of a run."""
    return color(f"s{slot % SERIES}")


def label(axes: Axes, x: str, y: str) -> None:
    """Axis names, the vertical one above its axis where it reads without a turned head; plain numbers on the ticks."""
    axes.set_xlabel(x)
    axes.set_title(y, loc="left", size=8.5, color=color("muted"), pad=6)
    for axis, scale in ((axes.xaxis, axes.get_xscale()), (axes.yaxis, axes.get_yscale())):
        if scale == "log":
            axis.set_minor_locator(ticker.NullLocator())  # they have no size, and took most of the time to draw
            if not isinstance(axis.get_major_locator(), ticker.FixedLocator):
                axis.set_major_formatter(ticker.FuncFormatter(_decade))
        else:
            axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.6g}".replace("-", "−")))


def _decade(value: float, _: int | None = None) -> str:
    exponent = round(math.log10(value))
    return f"{10.0**exponent:g}" if -2 <= exponent <= 3 else power(exponent)


def spread(sizes: Sequence[float], apart: float = 1.4) -> list[float]:
    """Those of the sorted sizes whose labels do not run into each other on a log axis."""
    kept: list[float] = []
    for size in sizes:
        if not kept or size >= apart * kept[-1]:
            kept.append(size)
    return kept


def log_ticks(axes: Axes, low: float, high: float) -> None:
    """Ticks at 1, 2, 5 × powers of ten: a perplexity axis rarely spans enough decades for powers alone."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [m * 10.0**d for d in decades for m in (1, 2, 5) if low / 1.3 <= m * 10.0**d <= high * 1.3]
    axes.yaxis.set_major_locator(ticker.FixedLocator(ticks))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.6g}"))


def note(axes: Axes, text: str, x: float) -> None:
    """A remark beside a vertical rule at x, near the top."""
    axes.annotate(
        text, (x, 0.97), (3, 0), xycoords=axes.get_xaxis_transform(), textcoords="offset points", va="top", size=7.5,
        color=color("muted"),
    )  # fmt: skip


def names(lines: Sequence[Line]) -> str:
    """The runs, for the description of a plot."""
    return ", ".join(line.name for line in lines) or "no run"
