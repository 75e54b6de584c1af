"""Utility over q_s, the rate of extended entities, in both readings: Figures 3b, 5 and 7 of UeDP."""

from __future__ import annotations

from taciturn.recipes.recipe import Cell, Plot, Series, Table, comparison
from taciturn.recipes.uedp.bench import TARGET, Bench

RATES = (0.0, 0.25, 0.5, 1.0)


def sweep(bench: Bench, category: str) -> tuple[Plot, Table, list[str]]:
    """Algorithm 1 with its printed noise and with its code's, and uedp, at every q_s."""
    rates = bench.inputs.pick((0.0, 1.0), RATES, RATES)
    runs = {
        "Algorithm 1": [bench.as_published(category, extended_rate=q) for q in rates],
        "Algorithm 1, code's noise": [bench.as_published(category, squared=True, extended_rate=q) for q in rates],
        "uedp": [bench.ours(category, extended_rate=q) for q in rates],
    }
    start = bench.start()
    curves = [Series(name, rates, tuple(row["curve"][-1][1] for row in rows)) for name, rows in runs.items()]
    curves.append(Series("before training", rates, (start,) * len(rates)))
    plot = Plot("extended", f"{bench.name}, {category}", "q_s", bench.metric, tuple(curves), log_y=not bench.classifies,
                caption=f"uedp at ε = {TARGET:g} for its median pair at every q_s.")  # fmt: skip
    cells: list[tuple[Cell, ...]] = []
    for name, rows in runs.items():
        for q, row in zip(rates, rows, strict=True):
            _, score, claim, holds = row["curve"][-1]
            cells.append((f"{name}, q_s = {q:g}", score, row["sigma"]["private"], claim, holds))
    columns = ("row", bench.metric, "σ/β", "ε as published", "ε that holds")
    return plot, Table(f"q_s, {category}", columns, tuple(cells)), _says(curves, rates, runs["uedp"])


def _says(curves: list[Series], rates: tuple[float, ...], ours: list[dict[str, object]]) -> list[str]:
    lines = []
    for each in curves[:3]:
        best = rates[each.y.index(min(each.y))]
        better = [q for q, y in zip(rates, each.y, strict=True) if q > 0 and y < each.y[0]]
        verdict = (
            f"better than q_s = 0 at {', '.join(f'{q:g}' for q in better)}" if better else "at no q_s better than at 0"
        )
        lines.append(f"{comparison(bool(better))}, {each.name}: {verdict}; best at q_s = {best:g}.")
    if min(curves[0].y) >= curves[3].y[0]:
        lines.append(
            "Not as in the paper: with its noise as printed Algorithm 1 ends no better than it began at any q_s, so "
            "its order over q_s is chance."
        )
    sigmas = [row["sigma"]["private"] for row in ours]  # type: ignore[index]
    lines.append(
        "Not as in the paper: q_s is no free dial. Its accounting does not look at q_s at all; what holds takes the "
        "larger of q_e and "
        f"q_s, so σ of uedp is the same below q_e and grows above it ({min(sigmas):.2f} to {max(sigmas):.2f})."
    )
    return lines
