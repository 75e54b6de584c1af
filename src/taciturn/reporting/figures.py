"""The figures of each section: a plot, one sentence on how to read it, and the table of its formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from taciturn.reporting import plots
from taciturn.reporting.formats import bits, bound, count, general, probability, rate
from taciturn.reporting.plots import Line

ROWS = 13
"""Rows of a table under a plot; longer curves are shown at evenly spread points."""

_NEIGHBOURS = {"substitution": "one record's secret replaced", "add-remove": "one record added or removed"}


@dataclass(frozen=True, slots=True)
class Plot:
    """svg: trusted markup of our own making. rows: cells already formatted. tall: may stand beside two others."""

    title: str
    text: str
    svg: Markup
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    tall: bool = False


def budget(content: Mapping[str, Any]) -> Iterator[Plot]:
    """ε against δ, one plot per neighbouring relation, and ε against γ."""
    for relation, runs in content["epsilon_delta"].items():
        lines = _lines(runs, "delta", "epsilon")
        shared = {run["claimed_delta"] for run in runs}
        delta = shared.pop() if len(shared) == 1 else None
        key = f"eps-delta-{relation.replace(' ', '-')}"
        yield Plot(
            f"ε against δ, {relation}",
            f"Neighbours: {_NEIGHBOURS.get(relation, relation)}. Below the curve nothing is guaranteed.",
            Markup(plots.epsilon_delta(lines, delta, key)),
            ("δ", *(line.name for line in lines)),
            [(general(x), *map(bound, ys)) for x, *ys in _table(lines)],
        )
    runs = [run for run in content["epsilon_gamma"] if run["gamma"]]
    if runs:
        lines = _lines(runs, "gamma", "epsilon")
        dots = [(run["slot"], *run["measured"]) for run in runs if run["measured"] is not None]
        yield Plot(
            "ε of a random secret against the miss rate",
            _gamma_words(runs),
            Markup(plots.bayesian(lines, dots, "eps-gamma")),
            ("γ", *(line.name for line in lines)),
            [(general(x, 2), *map(bound, ys)) for x, *ys in _table(lines)],
        )


def training(content: Mapping[str, Any]) -> Iterator[Plot]:
    """Held-out perplexity, and ε spent, along training."""
    runs = content["training"]["perplexity"]
    if runs:
        axis = "epoch" if all(_rising(run["epoch"]) for run in runs) else "step"
        lines = _lines(runs, axis, "perplexity")
        yield Plot(
            f"Perplexity per {axis}",
            "On held-out text; lower is better.",
            Markup(plots.perplexity(lines, axis, "perplexity")),
            (axis, *(line.name for line in lines)),
            [(count(x), *map(general, ys)) for x, *ys in _table(lines)],
        )
    runs = content["training"]["spent"]
    if runs:
        lines = _lines(runs, "step", "epsilon")
        yield Plot(
            "ε spent along training",
            "At the δ of the plan. Only noisy steps on private records spend anything.",
            Markup(plots.spent(lines, content["training"]["target"], "spent")),
            ("step", *(line.name for line in lines)),
            [(count(x), *map(bound, ys)) for x, *ys in _table(lines)],
        )


def attacks(content: Mapping[str, Any]) -> Iterator[Plot]:
    """Exposure histogram and ROC curves."""
    found = content["attacks"]["exposure"]
    if found["runs"]:
        rows = [(run["run"], run["slot"], run["exposures"]) for run in found["runs"]]
        longest = max(len(values) for _, _, values in rows)
        ranked = [sorted(values, reverse=True) for _, _, values in rows]
        yield Plot(
            "Canary exposure",
            "Bars count canaries; the outline is what a model that never saw them gives. "
            f"{bits(found['bits'])} bits is perfect memorisation.",
            Markup(plots.exposure(rows, found["bits"], found["p95"], "exposure")),
            ("canary, highest first", *(name for name, _, _ in rows)),
            [(str(i + 1), *(bits(v[i]) if i < len(v) else "" for v in ranked)) for i in range(min(longest, 20))],
            tall=len(rows) > 2,
        )
    for attack in sorted({run["attack"] for run in content["attacks"]["roc"]}, reverse=True):
        runs = [run for run in content["attacks"]["roc"] if run["attack"] == attack]
        lines = _lines(runs, "fpr", "tpr")
        key = attack.replace(" ", "-")
        head = ("false positive rate", *(line.name for line in lines))
        for log in (False, True):
            grid = (0.001, 0.01, 0.02, 0.05, 0.1) if log else (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
            yield Plot(
                f"ROC of the {attack} attack" + (", logarithmic" if log else ""),
                "Few false alarms: the left end is where an attacker is sure." if log else "The diagonal is a coin.",
                Markup(plots.roc(lines, log, f"roc-{key}{'-log' if log else ''}")),
                head,
                [(probability(x), *(rate(_step(line, x)) for line in lines)) for x in grid],
            )


def _lines(runs: Sequence[Mapping[str, Any]], x: str, y: str) -> list[Line]:
    return [Line(run["run"], run["slot"], run[x], run[y]) for run in runs]


def _table(lines: Sequence[Line], most: int = ROWS) -> Iterator[tuple[float | None, ...]]:
    """(x, y of each line) at up to ``most`` of the x values that occur; None where a line has no such point."""
    xs = sorted({x for line in lines for x in line.x})
    if len(xs) > most:
        xs = [xs[round(i * (len(xs) - 1) / (most - 1))] for i in range(most)]
    at = [dict(zip(line.x, line.y, strict=True)) for line in lines]
    return ((x, *(values.get(x) for values in at)) for x in xs)


def _step(line: Line, x: float) -> float:
    """The true positive rate reached at a false positive rate of at most x."""
    return max((t for f, t in zip(line.x, line.y, strict=True) if f <= x), default=0.0)


def _rising(values: Sequence[float | None]) -> bool:
    """Whether there is a number for each evaluation and each is larger than the one before."""
    known = [v for v in values if v is not None]
    return len(known) == len(values) and all(a < b for a, b in pairwise(known))


def _gamma_words(runs: Sequence[Mapping[str, Any]]) -> str:
    deltas = " or ".join(bound(delta) for delta in sorted({run["delta"] for run in runs}))
    words = f"For a secret drawn at random, at δ = {deltas}; one that was missed keeps the ε at γ = 1."
    if any(run["measured"] for run in runs):
        words += " Dots: miss rates bounded from labels."
    if any(run["delta2"] for run in runs):
        words += " δ includes the share that both policies may miss."
    if not all(run["established"] for run in runs):
        words += " No secrets were labelled: drawn as if the policies never both missed one, which is not established."
    return words
