"""The plots of the report, each a pure function from numbers to an inline ``<svg>``.

Runs keep one colour and one dash pattern through the whole page (``Line.slot``); the page prints the legend.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib import ticker
from matplotlib.figure import Figure

from taciturn.reporting.figures.drawing import (
    WIDTH,
    Line,
    draw,
    hue,
    label,
    log_ticks,
    names,
    note,
    panel,
    positive,
    spread,
)
from taciturn.reporting.figures.svg import color, inline, style
from taciturn.reporting.formats import setting

FAR = 30.0
"""A certified ε from here on excludes nothing that a plot could show."""


def epsilon_delta(lines: Sequence[Line], delta: float | None, key: str) -> str:
    """ε against δ, δ on a log axis; a rule at the δ of the claims."""
    with style(key):
        figure, axes = panel()
        axes.set_xscale("log")
        draw(axes, lines)
        if delta is not None:
            axes.axvline(delta, color=color("muted"), linewidth=0.8, dashes=(2, 2))
            note(axes, f"δ = {setting(delta)}", delta)
        axes.set_ylim(bottom=0)
        label(axes, "δ", "ε")
        return inline(figure, key, "ε against δ for " + names(lines))


def trade_off(lines: Sequence[Line], mus: Sequence[Line], points: Sequence[tuple[float, float]], key: str) -> str:
    """Detections against false alarms, both from 0 to 1, with each line's Gaussian curve, its point and guessing."""
    with style(key):
        figure, axes = panel()
        axes.set(xlim=(0, 1), ylim=(0, 1.02))
        axes.plot([0, 1], [0, 1], color=color("muted"), linewidth=0.8, dashes=(2, 2))
        for line in mus:
            axes.plot(line.x, line.y, color=hue(line.slot), linewidth=0.7, dashes=(1, 1.5), zorder=2)
        draw(axes, lines)
        for line, (x, y) in zip(lines, points, strict=True):
            axes.plot(
                [x], [y], marker="o", markersize=4.5, color=hue(line.slot), markeredgecolor=color("paper"), zorder=4
            )
        label(axes, "false alarms", "detected at most")
        return inline(figure, key, "What an attack detects at most at each rate of false alarms, for " + names(lines))


def epsilon_k(lines: Sequence[Line], what: str, key: str) -> str:
    """ε against how many change at once (``what``: records, users, …), k on a log axis."""
    with style(key):
        figure, axes = panel()
        axes.set_xscale("log")
        draw(axes, lines, marker="o")
        axes.set_ylim(bottom=0)
        sizes = sorted({x for line in lines for x in line.x})
        axes.xaxis.set_major_locator(ticker.FixedLocator(spread(sizes)))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        label(axes, f"k, {what} that change at once", "ε")
        return inline(figure, key, f"ε against the number of {what} that change at once, for {names(lines)}")


@dataclass(frozen=True, slots=True)
class Band:
    """A miss rate from labels: (γ, ε) at its lower bound, at the share of the sample, at its upper bound."""

    slot: int
    low: tuple[float, float]
    estimate: tuple[float, float]
    high: tuple[float, float]


def bayesian(lines: Sequence[Line], bands: Sequence[Band], key: str) -> str:
    """ε of a random secret against the policy's miss rate γ.

    The stretch that labels allow is shaded under each curve, with a tick at the estimate and a dot at the upper bound, which
    is what is claimed.
    """
    with style(key):
        figure, axes = panel()
        axes.set_xscale("log")
        draw(axes, lines)
        left = min((x for line in lines for x in line.x), default=1e-3)
        for band in bands:
            line = next(line for line in lines if line.slot == band.slot)
            low, high = max(band.low[0], left), band.high[0]
            inside = [(x, y) for x, y in zip(line.x, line.y, strict=True) if low <= x <= high]
            if inside:
                axes.fill_between(
                    [x for x, _ in inside], [y for _, y in inside], color=hue(band.slot), alpha=0.22, linewidth=0
                )
            for point, marker, size in ((band.estimate, "|", 9), (band.high, "o", 5)):
                if point[0] > 0 and math.isfinite(point[1]):
                    axes.plot(
                        *([c] for c in point), marker=marker, markersize=size, color=hue(band.slot),
                        markeredgecolor=color("paper") if marker == "o" else hue(band.slot), zorder=4,
                    )  # fmt: skip
        axes.set_ylim(bottom=0)
        label(axes, "miss rate γ of the policy", "ε")
        return inline(figure, key, "ε of a random secret against the miss rate γ for " + names(lines))


def utility(lines: Sequence[Line], x_label: str, measure: str, key: str) -> str:
    """Perplexity or accuracy on held-out text along training; perplexities over more than a factor of 8 get a log axis."""
    with style(key):
        figure, axes = panel()
        values = [y for line in lines for y in line.y if y > 0]
        if measure == "perplexity" and values and max(values) > 8 * min(values):
            axes.set_yscale("log")
        draw(axes, lines, marker="o" if all(len(line.x) <= 25 for line in lines) else None)
        if axes.get_yscale() == "log":
            log_ticks(axes, min(values), max(values))
        axes.xaxis.set_major_locator(ticker.MaxNLocator(8, integer=True))
        label(axes, x_label, measure)
        return inline(figure, key, f"Held-out {measure} along training for {names(lines)}")


def spent(lines: Sequence[Line], target: float | None, key: str) -> str:
    """ε spent so far, step by step; a rule at the target when all runs share one."""
    with style(key):
        figure, axes = panel()
        draw(axes, lines)
        if target is not None:
            axes.axhline(target, color=color("muted"), linewidth=0.8, dashes=(2, 2))
            axes.text(
                0.01, target, f"target {setting(target)}", transform=axes.get_yaxis_transform(), va="bottom", size=7.5
            )
        axes.set_ylim(0, 1.12 * max([target or 0.0, *(y for line in lines for y in line.y)]))
        label(axes, "step", "ε spent")
        return inline(figure, key, "ε spent along training for " + names(lines))


def against(rows: Sequence[tuple[str, int, float, float]], key: str) -> str:
    """Per row (name, slot, lower bound, certified ε) a bar from 0 to the lower bound and a rule at the certified ε.

    ε above ``FAR`` is drawn at the right edge with an arrow; a bar that crosses its rule refutes the claim.
    """
    with style(key):
        figure = Figure(figsize=(WIDTH, 0.7 + 0.42 * len(rows)), layout="constrained")
        axes = figure.add_subplot()
        finite = [v for _, _, low, high in rows for v in (low, high) if v <= FAR]
        edge = 1.18 * max([1.0, *finite])
        for place, (_, slot, low, high) in enumerate(rows):
            axes.barh(place, min(low, edge), height=0.45, color=hue(slot))
            axes.plot([0, min(high, edge)], [place, place], color=color("rule"), linewidth=1, zorder=1)
            if high <= FAR:
                axes.plot([high], [place], marker="|", markersize=14, markeredgewidth=2, color=color("text"))
            else:
                axes.plot([edge], [place], marker=">", markersize=5, color=color("text"), clip_on=False)
        axes.set_yticks(range(len(rows)), [name for name, *_ in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(0, edge)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("ε")
        told = "; ".join(f"{name}: at least {low:.3g}, certified {setting(high)}" for name, _, low, high in rows)
        return inline(figure, key, f"Lower bounds of attacks beside certified ε. {told}")


def exposure(rows: Sequence[tuple[str, int, Sequence[float]]], top: float, p95: float | None, key: str) -> str:
    """One histogram per run (name, slot, exposures) in bins of one bit, over what chance alone gives.

    top: bits of perfect memorisation, log2 of the number of candidates. The outline is the expected count of a model that
    never saw the canaries: a bin [a, a+1) holds 2^−a − 2^−(a+1) of them. p95: the 95 % point of the highest under chance.
    """
    bins = list(range(math.ceil(top) + 1))
    with style(key):
        figure = Figure(figsize=(WIDTH, 0.5 + 0.9 * len(rows)), layout="constrained")
        panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (name, slot, values) in zip(panels, rows, strict=True):
            expected = [len(values) * 2.0 ** -(a + 1) for a in bins[:-1]]
            axes.hist(values, bins=bins, color=hue(slot), rwidth=0.86)
            axes.stairs(expected, bins, color=color("muted"), linewidth=1, baseline=None)
            if p95 is not None:
                axes.axvline(p95, color=color("muted"), linewidth=0.8, dashes=(2, 2))
            axes.set_ylim(0, max(1, len(values)))
            axes.yaxis.set_major_locator(ticker.MaxNLocator(2, integer=True))
            axes.grid(visible=False, axis="x")
            axes.set_title(name, loc="left", size=8.5, pad=3)
        if p95 is not None:
            note(panels[0], f"95 % of chance: {p95:.2f}", p95)
        panels[-1].set_xlim(0, bins[-1])
        panels[-1].xaxis.set_major_locator(ticker.MultipleLocator(5))
        panels[-1].set_xlabel("exposure (bits)")
        return inline(figure, key, "Histogram of canary exposures for " + ", ".join(name for name, _, _ in rows))


def roc(lines: Sequence[Line], log: bool, key: str) -> str:
    """True against false positive rate, with the diagonal of a coin."""
    low = 1e-3
    with style(key):
        figure, axes = panel()
        if log:
            axes.set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1))
        else:
            axes.set(xlim=(0, 1), ylim=(0, 1))
        diagonal = [low, 1] if log else [0, 1]
        axes.plot(diagonal, diagonal, color=color("muted"), linewidth=0.8, dashes=(2, 2))
        draw(axes, [positive(line) if log else line for line in lines])
        label(axes, "false positive rate", "true positive rate")
        return inline(figure, key, f"{'Log–log ' if log else ''}ROC of the membership attack for " + names(lines))


def what_if(lines: Sequence[Line], x: str, y: str, log: bool, key: str) -> str:
    """A cost against one parameter of a plan, ``log`` for its axis; several lines are named in a legend."""
    with style(key):
        figure, axes = panel()
        if log:
            axes.set_xscale("log")
        draw(axes, lines, marker="o" if all(len(line.x) <= 25 for line in lines) else None)
        if len(lines) > 1:
            drawn = list(reversed(axes.get_lines()))
            axes.legend(drawn, [line.name for line in lines], frameon=False, fontsize=7.5)
        axes.set_ylim(bottom=0)
        label(axes, x, y)
        return inline(figure, key, f"{y} against {x}" + (f" for {names(lines)}" if len(lines) > 1 else ""))
