"""Utility against ε, by entity category and in both readings: what Figures 2, 3a and 6 of UeDP have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from taciturn.recipes.cells import Row
from taciturn.recipes.recipe import Cell, Plot, Results, Series, Table
from taciturn.recipes.uedp.bench import TARGET, Bench
from taciturn.recipes.verdicts import Order, Runs, merged, sentences

UNSAID = "User-level DP says nothing of an entity that many users write about."
COLUMNS = ("row", "score", "σ/β", "ε as published", "ε that holds", "about")


def side_by_side(benches: Sequence[Bench], *first: Plot) -> Results:
    """Each bench compared, on one page, whose orders are corrected together. first: a plot that stands before."""
    several = len(benches) > 1
    plots, tables, found, says = list(first), list[Table](), list[Order](), list[str]()
    for each in benches:
        drawn, table, told, more = compared(each, each.name, f"{each.name}, " if several else "")
        plots += [replace(plot, key=f"{plot.key}-{each.name.lower()}") if several else plot for plot in drawn]
        tables.append(table)
        found += told
        says += [f"{each.name}: {line}" if several else line for line in more]
    setting = " ".join(each.setting() for each in benches)
    return Results(setting, tuple(plots), tuple(tables), (*sentences(found), *says, UNSAID))


def compared(bench: Bench, title: str, at: str = "") -> tuple[tuple[Plot, ...], Table, list[Order], list[str]]:
    """Two plots of the first run (the paper's axis, the one that holds), a table of where runs end, the paper's orders, and
    what else it says. at: what a category's name is said after, where a page has several benches."""
    found = [_Run.of(each) for each in bench.each_run()]
    first = found[0]
    claimed = [_series(f"Algorithm 1, {name}", row["curve"], 2) for name, row in first.published.items()]
    claimed.append(_series(f"Algorithm 1, {bench.categories[0]}, code's noise", first.squared["curve"], 2))
    held = [_series(f"uedp, {name}", row["curve"], 3) for name, row in first.ours.items()]
    held += [_series(f"Algorithm 1, {name}", row["curve"], 3) for name, row in list(first.published.items())[:1]]
    levels_user = _series("user-level DP", first.user["curve"], 2), _series("user-level DP", first.private["curve"], 3)
    plots = (
        _panel("claimed", f"{title}, ε as the paper accounts it", bench.metric, [*claimed, levels_user[0]], first.levels,
                   "This axis is a claim: Theorem 1 does not hold."),
        _panel("holds", f"{title}, ε that holds", bench.metric, [*held, levels_user[1]], first.levels,
                   "uedp: for half of all pairs of a user and an entity. user-level DP says nothing of entities."),
    )  # fmt: skip
    note = (
        "holders: users of the entity that most users hold; k: units that go with the median pair of user and entity."
    )
    tables = [each.rows(bench) for each in found]
    rows = {name: bench.runs(name, [float(run[name][0] or 0) for run in tables]) for name in tables[0]}
    table = Table(f"{title}: {bench.metric}", COLUMNS, merged(tables), note=note)
    squared = rows[f"Algorithm 1, {bench.categories[0]}, code's noise"]
    return plots, table, orders(bench.categories, rows, at), _worth(first, squared.mean)


@dataclass(frozen=True, slots=True)
class _Run:
    """All rows of one run."""

    published: dict[str, Row]
    squared: Row
    ours: dict[str, Row]
    user: Row
    private: Row
    levels: dict[str, float]
    start: float

    @staticmethod
    def of(bench: Bench) -> _Run:
        return _Run(
            {category: bench.as_published(category) for category in bench.categories},
            bench.as_published(bench.categories[0], squared=True),
            {category: bench.ours(category) for category in bench.categories},
            bench.user_level(),
            bench.user_level(TARGET),
            {"de-identified": bench.de_identified(), "no-DP": bench.no_dp()},
            bench.start(),
        )

    def rows(self, bench: Bench) -> dict[str, tuple[Cell, ...]]:
        """Cells of the table by name."""
        made: dict[str, tuple[Cell, ...]] = {
            "before training": (self.start, None, None, None, ""),
            "no-DP": (self.levels["no-DP"], None, None, float("inf"), ""),
            "de-identified": (self.levels["de-identified"], None, None, None, ""),
        }
        made |= {f"Algorithm 1, {name}": _row(row, "holders") for name, row in self.published.items()}
        made[f"Algorithm 1, {bench.categories[0]}, code's noise"] = _row(self.squared, "holders")
        made |= {f"uedp, {name}": _row(row, "median") for name, row in self.ours.items()}
        made[f"user-level DP, z = {bench.plan.scale:g}"] = _row(self.user, "")
        made[f"user-level DP, ε = {TARGET:g}"] = _row(self.private, "")
        return made


def _row(row: Row, about: str) -> tuple[Cell, ...]:
    _, score, claim, holds = row["curve"][-1]
    said = {"holders": "{} holders", "median": "k = {}"}.get(about, "").format(int(row["facts"].get(about, 0)))
    return (score, row["sigma"]["private"], claim, holds, said)


def orders(categories: Sequence[str], rows: Mapping[str, Runs], at: str = "") -> list[Order]:
    """Section VI d: Algorithm 1 learns with its printed noise; at equal ε user-entity privacy is of more use than user-level
    DP, which protects less and other things; and of more use than masks."""
    start = replace(rows["before training"], floor=None)
    found = [
        Order(
            "Algorithm 1 with its printed noise is ahead of its start", rows[f"Algorithm 1, {each}"], start, at + each
        )
        for each in categories
    ]
    for name, behind in ((f"user-level DP at equal ε = {TARGET:g}", f"user-level DP, ε = {TARGET:g}"),
                         ("de-identification", "de-identified")):  # fmt: skip
        found += [
            Order(f"uedp is ahead of {name}", rows[f"uedp, {each}"], rows[behind], at + each) for each in categories
        ]
    return found


def _worth(run: _Run, squared: float) -> list[str]:
    """What the claimed ε of the first run is worth beside the one that holds. squared: the mean score with the noise of the
    released code."""
    ends = {name: row["curve"][-1] for name, row in run.published.items()}
    worst = max(ends.values(), key=lambda row: row[3] / row[2])
    _, _, claim, holds = run.squared["curve"][-1]
    bound = (
        f"what holds for that noise is {holds:,.0f}" if holds < float("inf") else "nothing finite holds for that noise"
    )
    return [
        f"With the deviation squared, as in the released code, it reaches {squared:.3g} at a claim of {claim:.2f}; {bound}.",
        f"The claim and what holds differ by up to {worst[3] / worst[2]:.1f} times ({worst[2]:.2f} and {worst[3]:.2f}).",
    ]


def reported(rows: tuple[tuple[str, float, float], ...], title: str, source: str) -> Table:
    """Numbers of the text: (row, ε, value)."""
    return Table(title, ("row", "ε", "value"), rows, source)


def open_marks(rows: tuple[tuple[str, float, float], ...]) -> tuple[Series, ...]:
    """The same as marks."""
    names = dict.fromkeys(name for name, _, _ in rows)
    return tuple(
        Series(
            name,
            tuple(e for n, e, _ in rows if n == name),
            tuple(v for n, _, v in rows if n == name),
            published=True,
            line=False,
        )
        for name in names
    )


def _series(name: str, curve: list[list[Any]], column: int) -> Series:
    """Score against the ε in ``column`` of a curve, without points where it is infinite."""
    points = [(row[column], row[1]) for row in curve if row[column] is not None and row[column] < float("inf")]
    return Series(name, tuple(x for x, _ in points), tuple(y for _, y in points))


def _rule(name: str, value: float, x: tuple[float, ...]) -> Series:
    """A level drawn from the smallest to the largest ε."""
    return Series(name, (min(x), max(x)), (value, value))


def _panel(key: str, title: str, metric: str, curves: list[Series], levels: Mapping[str, float], caption: str) -> Plot:
    """Curves against ε with levels across."""
    x = tuple(value for each in curves for value in each.x)
    drawn = (*curves, *(_rule(name, value, x) for name, value in levels.items())) if x else tuple(curves)
    return Plot(key, title, "ε at δ = 1e-5", metric, tuple(drawn), log_y=metric == "perplexity", caption=caption)
