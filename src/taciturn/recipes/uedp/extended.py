"""Utility over q_s, the rate of extended entities, in both readings: Figures 3b, 5 and 7 of UeDP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

from taciturn.recipes.cells import Row
from taciturn.recipes.recipe import Cell, Plot, Series, Table
from taciturn.recipes.uedp.bench import TARGET, Bench
from taciturn.recipes.verdicts import Order, Runs, merged

RATES = (0.0, 0.25, 0.5, 1.0)
MECHANISMS = ("Algorithm 1", "Algorithm 1, code's noise", "uedp")


def sweep(bench: Bench, category: str) -> tuple[Plot, Table, list[Order], str]:
    """Algorithm 1 with its printed noise and with its code's, and uedp, at every q_s; the paper's orders, and what else it
    says."""
    rates = bench.inputs.pick((0.0, 1.0), RATES, RATES)
    found = [
        {name_of(m, q): _run(each, category, m, q) for m in MECHANISMS for q in rates} for each in bench.each_run()
    ]
    rows = {name: bench.runs(name, [run[name]["curve"][-1][1] for run in found]) for name in found[0]}
    curves = [Series(m, rates, tuple(rows[name_of(m, q)].mean for q in rates)) for m in MECHANISMS]
    start = mean(each.start() for each in bench.each_run())
    curves.append(Series("before training", rates, (start,) * len(rates)))
    plot = Plot("extended", f"{bench.name}, {category}", "q_s", bench.metric, tuple(curves), log_y=not bench.classifies,
                caption=f"uedp at ε = {TARGET:g} for its median pair at every q_s.")  # fmt: skip
    columns = ("row", bench.metric, "σ/β", "ε as published", "ε that holds")
    cells = [{name: _cells(row) for name, row in run.items()} for run in found]
    sigmas = [found[0][name_of("uedp", q)]["sigma"]["private"] for q in rates]
    free = (
        f"q_s is no free dial: the claimed ε does not look at it, what holds takes the larger of q_e and q_s, so σ of uedp "
        f"is the same below q_e and grows above it ({min(sigmas):.2f} to {max(sigmas):.2f})."
    )
    return plot, Table(f"q_s, {category}", columns, merged(cells)), orders(rates, rows), free


def name_of(mechanism: str, rate: float) -> str:
    return f"{mechanism}, q_s = {rate:g}"


def orders(rates: Sequence[float], rows: Mapping[str, Runs]) -> list[Order]:
    """Section VI d: every q_s above 0 is better than 0."""
    return [
        Order(f"{m} is better at a q_s above 0 than at 0", rows[name_of(m, q)], rows[name_of(m, 0.0)], f"{q:g}")
        for m in MECHANISMS
        for q in rates
        if q > 0
    ]


def _run(bench: Bench, category: str, mechanism: str, rate: float) -> Row:
    if mechanism == "uedp":
        return bench.ours(category, extended_rate=rate)
    return bench.as_published(category, squared=mechanism != MECHANISMS[0], extended_rate=rate)


def _cells(row: Row) -> tuple[Cell, ...]:
    _, score, claim, holds = row["curve"][-1]
    return (score, row["sigma"]["private"], claim, holds)
