"""A plot of a recipe as an SVG file that stands alone, in light and dark: published numbers open, ours filled."""

from __future__ import annotations

from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from taciturn.recipes.recipe import Plot, Series
from taciturn.reporting.figures.drawing import DASHES
from taciturn.reporting.figures.svg import SERIES, color, inline, style

WIDTH, HEIGHT = 5.4, 3.2
"""Inches of the axes' part; the legend below adds a row for two curves."""

_LIGHT = {
    "paper": "#fdfdfc", "text": "#1b1d21", "muted": "#5b616b", "rule": "#c9ccd1", "grid": "#e6e7e9", "s0": "#2563b8",
    "s1": "#b4540a", "s2": "#23774c", "s3": "#7b47b5", "s4": "#b02a55", "s5": "#15757f", "s6": "#6b6a1b", "s7": "#4b5563",
}  # fmt: skip
_DARK = {
    "paper": "#15171b", "text": "#e7e8ea", "muted": "#a2a9b4", "rule": "#474d57", "grid": "#2a2e35", "s0": "#7db0f5",
    "s1": "#f2a25c", "s2": "#71c99a", "s3": "#c39bf0", "s4": "#f28bac", "s5": "#62c6d1", "s6": "#cfcd6c", "s7": "#b4bcc8",
}  # fmt: skip
"""The report's colours (reporting/style.css), which a file that stands alone has to bring with it."""


FEW = 6
"""Places on a logarithmic axis that are each given their number."""


def draw(plot: Plot, key: str) -> str:
    """The text of an SVG file. key: prefix of its ids. The same plot gives the same bytes.

    A series and its published counterpart bear one name and share a colour.
    """
    with style(key):
        rows = (len(plot.series) + (plot.level is not None) + 1) // 2
        figure = Figure(figsize=(WIDTH, HEIGHT + 0.22 * rows), layout="constrained")
        axes = figure.add_subplot()
        if plot.log_x:
            axes.set_xscale("log")
        if plot.log_y:
            axes.set_yscale("log")
        hues = {name: i for i, name in enumerate(dict.fromkeys(each.name for each in plot.series))}
        for each in plot.series:
            _series(axes, each, hues[each.name])
        if plot.level is not None:
            axes.axhline(plot.level[1], color=color("muted"), linewidth=0.9, dashes=(2, 2), label=plot.level[0])
        _axes(axes, plot)
        if plot.series:
            figure.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=8)
        return _alone(inline(figure, key, described(plot)))


def described(plot: Plot) -> str:
    """What the plot shows, for people who do not see it."""
    names = ", ".join(_label(each) for each in plot.series)
    return f"{plot.title}: {plot.y} against {plot.x} for {names or 'nothing'}"


def _series(axes: Axes, each: Series, hue: int) -> None:
    """Published: open squares, dashes; ours: filled dots, the dash pattern of the slot. Long curves have no marks."""
    tone = color(f"s{hue % SERIES}")
    marks = len(each.x) <= 30
    shape = "s" if each.published else "o" if hue < SERIES else "^"
    pattern = (1.5, 2) if each.published else DASHES[(hue + 3 * (hue // SERIES)) % len(DASHES)]
    axes.plot(
        each.x, each.y, color=tone, marker=shape if marks else None, markersize=6 if each.published else 4,
        markerfacecolor=color("paper") if each.published else tone, linewidth=1.6, zorder=4 if each.published else 3,
        linestyle="none" if not each.line else (0, pattern) if pattern else "solid", label=_label(each),
    )  # fmt: skip
    if each.low:
        axes.fill_between(each.x, each.low, each.high, color=tone, alpha=0.15, linewidth=0)


def _label(each: Series) -> str:
    return f"{each.name} (paper)" if each.published else each.name


def _axes(axes: Axes, plot: Plot) -> None:
    axes.set_xlabel(plot.x)
    axes.set_title(plot.y, loc="left", size=8.5, color=color("muted"), pad=6)
    if plot.names:
        axes.set_xticks(range(len(plot.names)), plot.names)
        axes.set_xlim(-0.5, len(plot.names) - 0.5)
        if max(map(len, plot.names)) * len(plot.names) > 60:
            axes.tick_params(axis="x", rotation=25)
    else:
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(_plain))
        if plot.log_x:
            axes.xaxis.set_minor_locator(ticker.NullLocator())
            if len(measured := sorted({x for each in plot.series for x in each.x})) <= FEW:
                axes.set_xticks(measured)  # powers of ten alone would leave most without a number
    if plot.log_y:
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5), numticks=9))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(_plain))


def _plain(value: float, _: int | None = None) -> str:
    return f"{value:,.6g}".replace("-", "−")


def _alone(svg: str) -> str:
    """An inline `<svg>` as a file: its own colours for both schemes, a typeface, a size, and a ground."""

    def variables(tones: dict[str, str]) -> str:
        return "svg{" + "".join(f"--{name}:{tone};" for name, tone in tones.items()) + "}"

    css = (
        f"{variables(_LIGHT)}@media (prefers-color-scheme:dark){{{variables(_DARK)}}}"
        "svg{background:var(--paper);fill:var(--text);font-family:system-ui,sans-serif;stroke-linejoin:round}"
    )
    head, rest = svg.split(">", 1)
    head = head.replace(
        "<svg ", '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" ', 1
    )
    return f"{head}><style>{css}</style>{rest}\n"
