"""CRT, Figure 2: perplexity against Bayesian ε along training."""

from __future__ import annotations

import math
from typing import Any

from taciturn.recipes.cells import Row, Work
from taciturn.recipes.crt.bench import benches
from taciturn.recipes.crt.curves import (
    DIFFERS,
    MEDIUM,
    NEEDS,
    OUR_SETTING,
    PAPER_SETTING,
    TITLES,
    Bars,
    Cells,
    bars,
    results,
    row_runs,
    value,
)
from taciturn.recipes.crt.sizes import DELTA, EPSILON, OURS, name_of
from taciturn.recipes.recipe import Inputs, Plot, Recipe, Results, Series, Table, statements
from taciturn.recipes.verdicts import Order, sentences

GAMMA = 0.1

RECIPE = Recipe(
    name="crt-figure2",
    paper="crt",
    item="Figure 2",
    title="perplexity against Bayesian ε",
    asks="What does confidentiality cost, and what does redaction save?",
    paper_setting=PAPER_SETTING + " Each point is a model at one epoch; γ = .1; S-DP is shown with a perfect policy.",
    our_setting=OUR_SETTING + " Points are taken along the noised steps.",
    differs=(
        *DIFFERS,
        "Two ε are given for each point: by the paper's accounting (Rényi, add and remove, read at δ/γ), and what "
        "holds "
        "(exact, substitution, both directions, δ₂ = 0: π_c is taken to miss nothing).",
        "S-DP has no place on the axis: where π misses a secret its ε is infinite, and a perfect π makes "
        "redaction's 0.",
    ),
    published=(
        statements(
            "Perplexity and Bayesian ε",
            "section 5.2 and the caption, read from the text only: the points' numbers are not printed",
            (
                "CRT-GPT and DPSGD-GPT perform in general better than S-DP-LSTM, CRT-LSTM and DPSGD-LSTM",
                "CRT-GPT is close to Non-private-GPT in perplexity",
                "CRT-GPT is better than DPSGD-GPT by a much lower ε",
                "all models do better on CustomerSim than on MultiWOZ",
            ),
        ),
    ),
    needs=NEEDS,
    medium=MEDIUM,
)


def run(inputs: Inputs, work: Work) -> Results:
    """Curves of the noised rows at γ = .1 (in the smoke size: at the γ it has), and the ends of all rows."""
    plots, tables, found, says, claims, gains = [], [], {}, [], [], []
    for name, bench in benches(inputs, work).items():
        gammas = bench.setting.gammas
        gamma = GAMMA if GAMMA in gammas else gammas[-1]
        cells: dict[tuple[str, str, float, int], Row] = {
            (kind, row, gamma, seed): bench.cell(kind, row, gammas[0] if row == "DPSGD" else gamma, seed)
            for seed in range(bench.setting.seeds)
            for kind, row in bench.setting.lines
        }
        found[name] = cells
        lines = [
            line for kind, row in bench.setting.lines if "holds" in cells[kind, row, gamma, 0]
            if (line := _curve(cells[kind, row, gamma, 0], name_of(kind, row)))
        ]  # fmt: skip
        title = f"{TITLES[name]}: perplexity against Bayesian ε at δ = {DELTA:g}, γ = {gamma:g}"
        caption = "First run. DPSGD redacts nothing: its ε is of one secret."
        plots.append(
            Plot(name, title, "Bayesian ε that holds", "test perplexity", tuple(lines), log_y=True, caption=caption)
        )
        tables.append(_table(name, cells, gamma))
        bar = bars(inputs, work, name)
        claims += orders(TITLES[name], cells, bar, gamma)
        gains += ours(TITLES[name], cells, bar, gamma)
        says += [_price(TITLES[name], cells, gamma, kind) for kind in bench.setting.kinds[-1:]]
    return results(inputs, work, found, plots, tables, [*sentences(claims, gains), *says, ELSEWHERE])


def _curve(cell: Row, name: str) -> Series | None:
    points = [(e, p["perplexity"]) for e, p in zip(cell["holds"], cell["points"], strict=True) if p["private"]]
    return Series(name, tuple(e for e, _ in points), tuple(p for _, p in points)) if points else None


def _table(name: str, cells: Cells, gamma: float) -> Table:
    rows = []
    for (kind, row, _, seed), cell in cells.items():
        if not seed:
            ends = {"redacted": (math.inf, 0.0), "S-DP": (math.inf, math.inf), "S-DP as accounted": (math.inf, EPSILON)}
            holds, published = ends.get(row) or (cell["holds"][-1], cell["published"][-1])
            scores = (value(cells, kind, row, gamma, metric) for metric in ("perplexity", "outside"))
            rows.append((name_of(kind, row), *scores, cell["sigma"], published, holds))
    columns = ("model", "perplexity", "outside secrets", "σ", "ε as published", "ε that holds")
    note = (
        "Non-private models read redacted text. The paper counts that as 0, which is true of a secret that π finds; those "
        "that it misses, a share γ, are trained on in the open, and no finite ε holds for a random secret at δ below γ."
    )
    return Table(
        f"{TITLES[name]}: at the end of training, γ = {gamma:g}", columns, tuple(rows), note=note, bounds=columns[-1:]
    )


ELSEWHERE = "Samples of the papers' own data are compared in [results](../results.md#4-crt-and-its-variants)."
NEAR = 1.1
"""How many times the perplexity of the non-private model still counts as close to it."""


def orders(title: str, cells: Cells, bar: Bars, gamma: float) -> list[Order]:
    """Section 5.2: GPTs before LSTMs among the noised rows, CRT-GPT close to Non-private-GPT and before DPSGD-GPT."""

    def row(kind: str, name: str) -> Any:
        return row_runs(cells, bar, kind, name, gamma, "perplexity")

    found = [
        Order(f"{title}, {name}-GPT has a lower perplexity than the LSTMs with noise", row("GPT", name), row("LSTM", other),
              f"{other}-LSTM")
        for name in ("CRT", "DPSGD")
        for other in ("S-DP", "CRT", "DPSGD")
        if row("GPT", name) and row("LSTM", other)
    ]  # fmt: skip
    if row("GPT", "redacted") is None:
        return found
    near = row("GPT", "redacted").scaled(NEAR)
    return [
        *found,
        Order(
            f"{title}, CRT-GPT is close to Non-private-GPT, below {NEAR:g} times its perplexity",
            row("GPT", "CRT"),
            near,
        ),
        Order(f"{title}, CRT-GPT has a lower perplexity than DPSGD-GPT", row("GPT", "CRT"), row("GPT", "DPSGD")),
    ]


def ours(title: str, cells: Cells, bar: Bars, gamma: float) -> list[Order]:
    """At equal ε: ours before CRT and before DP-SGD, and CRT before DP-SGD for an LSTM too (for GPT the paper has that);
    over all tokens, and outside secrets, of which a redacted text shows the share alone that π missed."""
    pairs = [*((each, "CRT") for each in OURS), *((each, OURS[0]) for each in OURS[1:]), *((o, "DPSGD") for o in OURS)]
    there = {(kind, row) for kind, row, _, _ in cells}
    metrics = {"over all tokens": "perplexity", "outside secrets": "outside"}
    return [
        Order(
            f"{title}, {name_of(kind, ahead)} has a lower perplexity than {name_of(kind, behind)}", first, second, where
        )
        for kind, more in (("LSTM", [*pairs, ("CRT", "DPSGD")]), ("GPT", pairs))
        for ahead, behind in more
        if {(kind, ahead), (kind, behind)} <= there
        for where, metric in metrics.items()
        if (first := row_runs(cells, bar, kind, ahead, gamma, metric))
        and (second := row_runs(cells, bar, kind, behind, gamma, metric))
    ]


def _price(title: str, cells: Cells, gamma: float, kind: str) -> str:
    from taciturn.reporting.formats import bound

    crt, dp = cells[kind, "CRT", gamma, 0], cells[kind, "DPSGD", gamma, 0]
    return (
        f"{title}. The Bayesian ε of CRT-{kind} is {bound(crt['holds'][-1])}, that of DPSGD-{kind} "
        f"{bound(dp['holds'][-1])}; the first is of a random secret, and for one that π missed it is the same 3."
    )
