"""The figures of each section: a plot, one sentence on how to read it, and the table of its formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from taciturn.privacy.accounting.tradeoff import TradeOff
from taciturn.reporting.figures import plots
from taciturn.reporting.figures.drawing import Line
from taciturn.reporting.formats import bits, bound, count, general, least, probability, rate
from taciturn.reporting.sections import flow
from taciturn.reporting.sections.attacks import GRID

ROWS = 13
"""Rows of a table under a plot; longer curves are shown at evenly spread points."""

_NEIGHBOURS = {
    "substitution": "one record's secret replaced",
    "substitution of a detected secret": "a secret that the policy detects replaced, in one record",
    "add-remove": "one record there or not",
    "add-remove of a user": "one user there or not, with all records",
    "add-remove of units of a user and an entity": "what one user wrote about one entity there or not, in so many units",
}


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
    """What attacks find at most and ε against δ and against k, one plot per neighbouring relation and unit; ε against γ."""
    for number, (relation, runs) in enumerate(content["attacked"].items()):
        lines, mus = _lines(runs, "false_alarms", "detected"), _lines(runs, "false_alarms", "gaussian")
        points = [(run["trade_off"]["false_alarms"], run["trade_off"]["detected"]) for run in runs]
        yield Plot(
            f"What an attack finds at most, {relation}",
            f"Neighbours: {_changes(relation)}. No attack on the model lies above the curve; dots: the Gaussian curve of "
            f"its μ; dashes: guessing. {'; '.join(_attack_words(run, len(runs) > 1) for run in runs)}.",
            Markup(plots.trade_off(lines, mus, points, f"attacks-{number}")),
            ("false alarms", *(line.name for line in lines)),
            [(general(x), *(bound(y) for y in ys)) for x, *ys in _table(lines)],
        )
    for number, (relation, runs) in enumerate(content["epsilon_delta"].items()):
        lines = _lines(runs, "delta", "epsilon")
        shared = {run["claimed_delta"] for run in runs}
        delta = shared.pop() if len(shared) == 1 else None
        yield Plot(
            f"ε against δ, {relation}",
            f"Neighbours: {_changes(relation)}. Below the curve nothing is guaranteed.",
            Markup(plots.epsilon_delta(lines, delta, f"eps-delta-{number}")),
            ("δ", *(line.name for line in lines)),
            [(general(x), *map(bound, ys)) for x, *ys in _table(lines)],
        )
    for number, (what, runs) in enumerate(content["epsilon_k"].items()):
        lines = _lines(runs, "k", "epsilon")
        units, _, relation = what.partition(", ")
        deltas = " or ".join(bound(delta) for delta in sorted({run["delta"] for run in runs}))
        change = "secrets in k records at once" if relation.startswith("sub") else f"k {units} at once, there or not"
        yield Plot(
            f"ε against k {units}" + (f", {relation}" if units == "records" else ""),
            f"At δ = {deltas}, by {relation}: {change}. Above an ε of 10 almost nothing is excluded.",
            Markup(plots.epsilon_k(lines, units, f"eps-k-{number}")),
            ("k", *(line.name for line in lines)),
            [(count(x), *map(bound, ys)) for x, *ys in _table(lines)],
        )
    runs = [run for run in content["epsilon_gamma"] if run["gamma"]]
    if runs:
        lines = _lines(runs, "gamma", "epsilon")
        yield Plot(
            "ε of a random secret against the miss rate",
            _gamma_words(runs),
            Markup(plots.bayesian(lines, [_band(run) for run in runs if run["band"]], "eps-gamma")),
            ("γ", *(line.name for line in lines)),
            [(general(x), *map(bound, ys)) for x, *ys in _table(lines)],
        )


def _changes(relation: str) -> str:
    return _NEIGHBOURS.get(relation.partition(", ")[0], relation)


def _attack_words(run: Mapping[str, Any], named: bool) -> str:
    told = TradeOff.from_json(run["trade_off"])
    return (
        f"{run['run'] + ': at' if named else 'At'} {told.alarms()} false alarms at most {told.share()}; {told.label()}"
    )


def _band(run: Mapping[str, Any]) -> plots.Band:
    low, estimate, high = ((run["band"]["gamma"][at], run["band"]["epsilon"][at]) for at in ("low", "estimate", "high"))
    return plots.Band(run["slot"], low, estimate, high)


def training(content: Mapping[str, Any]) -> Iterator[Plot]:
    """Held-out perplexity and accuracy, and ε spent, along training."""
    for measure, text, show in (
        ("accuracy", "Of classes, on held-out text; higher is better.", rate),
        ("perplexity", "On held-out text; lower is better.", general),
    ):
        runs = content["training"][measure]
        if runs:
            axis = "epoch" if all(_rising(run["epoch"]) for run in runs) else "step"
            lines = _lines(runs, axis, measure)
            yield Plot(
                f"{measure.capitalize()} per {axis}",
                text,
                Markup(plots.utility(lines, axis, measure, measure)),
                (axis, *(line.name for line in lines)),
                [(count(x), *map(show, ys)) for x, *ys in _table(lines)],
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


def against(content: Mapping[str, Any]) -> Iterator[Plot]:
    """Lower bounds beside certified ε, those of one notion, relation, unit and δ in one plot."""
    compared: dict[str, list[Mapping[str, Any]]] = {}
    for row in content["against"]:
        if row["upper"] is not None and row["lower"] is not None:
            compared.setdefault(row["about"], []).append(row)
    for number, (about, rows) in enumerate(compared.items()):
        drawn = [(f"{row['run']}, {row['attack']}", row["slot"], row["lower"], row["upper"]) for row in rows]
        yield Plot(
            f"Lower against upper bound: {about}",
            "Bar: the ε that an attack proves at least. Rule: the certified ε; an arrow is one too large to draw. A bar "
            "beyond its rule would refute the claim.",
            Markup(plots.against(drawn, f"against-{number}")),
            ("model and attack", "at least", "certified"),
            [(name, least(low), bound(high)) for name, _, low, high in drawn],
        )


def pictures(content: Mapping[str, Any]) -> list[Markup]:
    """Where the records of each corpus went."""
    return [Markup(flow.picture(entry)) for entry in content["corpora"]]


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
        reached = [dict(run["at"]) for run in runs]
        for log in (False, True):
            grid = [x for x in GRID if not log or x <= 0.1]
            yield Plot(
                f"ROC of the {attack} attack" + (", logarithmic" if log else ""),
                "Few false alarms: the left end is where an attacker is sure." if log else "The diagonal is a coin.",
                Markup(plots.roc(lines, log, f"roc-{key}{'-log' if log else ''}")),
                head,
                [(probability(x), *(rate(at[x]) for at in reached)) for x in grid],
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


def _rising(values: Sequence[float | None]) -> bool:
    """Whether there is a number for each evaluation and each is larger than the one before."""
    known = [v for v in values if v is not None]
    return len(known) == len(values) and all(a < b for a, b in pairwise(known))


def _gamma_words(runs: Sequence[Mapping[str, Any]]) -> str:
    deltas = " or ".join(bound(delta) for delta in sorted({run["delta"] for run in runs}))
    words = f"For a secret drawn at random, at δ = {deltas}; one that was missed keeps the ε at γ = 1."
    if any(run["band"] for run in runs):
        levels = {f"{100 * run['band']['confidence']:g} %" for run in runs if run["band"]}
        words += (
            f" Shaded: γ between its Clopper–Pearson bounds (each {' or '.join(sorted(levels))}); tick: the share of the "
            "labels; dot: the upper end, which is claimed."
        )
    if any(run["delta2"] for run in runs):
        words += " δ includes the share that both policies may miss."
    if not all(run["established"] for run in runs):
        words += " No secrets were labelled: drawn as if the policies never both missed one, which is not established."
    return words
