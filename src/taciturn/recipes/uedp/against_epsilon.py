"""Utility against ε, by entity category and in both readings: what Figures 2, 3a and 6 of UeDP have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taciturn.recipes.cells import Row
from taciturn.recipes.recipe import Cell, Plot, Series, Table
from taciturn.recipes.uedp.bench import TARGET, Bench

COLUMNS = ("row", "score", "σ/β", "ε as published", "ε that holds", "about")


def compared(bench: Bench, title: str) -> tuple[tuple[Plot, ...], Table, list[str]]:
    """Two plots (the paper's axis, the axis that holds), a table of where each run ends, and what it says."""
    published = {category: bench.as_published(category) for category in bench.categories}
    squared = bench.as_published(bench.categories[0], squared=True)
    ours = {category: bench.ours(category) for category in bench.categories}
    user, as_private = bench.user_level(), bench.user_level(TARGET)
    levels = {"de-identified": bench.de_identified(), "no-DP": bench.no_dp()}
    start = bench.start()
    claimed = [_series(f"Algorithm 1, {name}", row["curve"], 2) for name, row in published.items()]
    claimed.append(_series(f"Algorithm 1, {bench.categories[0]}, code's noise", squared["curve"], 2))
    held = [_series(f"uedp, {name}", row["curve"], 3) for name, row in ours.items()]
    held += [_series(f"Algorithm 1, {name}", row["curve"], 3) for name, row in list(published.items())[:1]]
    levels_user = _series("user-level DP", user["curve"], 2), _series("user-level DP", as_private["curve"], 3)
    plots = (
        _panel("claimed", f"{title}, ε as the paper accounts it", bench.metric, [*claimed, levels_user[0]], levels,
                   "This axis is a claim: Theorem 1 does not hold."),
        _panel("holds", f"{title}, ε that holds", bench.metric, [*held, levels_user[1]], levels,
                   "uedp: for half of all pairs of a user and an entity. user-level DP says nothing of entities."),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [("before training", start, None, None, None, "")]
    rows += [
        ("no-DP", levels["no-DP"], None, None, float("inf"), ""),
        ("de-identified", levels["de-identified"], None, None, None, ""),
    ]
    rows += [_row(f"Algorithm 1, {name}", row, "holders") for name, row in published.items()]
    rows.append(_row(f"Algorithm 1, {bench.categories[0]}, code's noise", squared, "holders"))
    rows += [_row(f"uedp, {name}", row, "median") for name, row in ours.items()]
    rows.append(_row(f"user-level DP, z = {bench.plan.scale:g}", user, ""))
    rows.append(_row(f"user-level DP, ε = {TARGET:g}", as_private, ""))
    note = (
        "holders: users of the entity that most users hold; k: units that go with the median pair of user and entity."
    )
    table = Table(f"{title}: {bench.metric}", COLUMNS, tuple(rows), note=note)
    return plots, table, findings(published, squared, ours, as_private, levels, start)


def _row(name: str, row: Row, about: str) -> tuple[Cell, ...]:
    _, score, claim, holds = row["curve"][-1]
    said = {"holders": "{} holders", "median": "k = {}"}.get(about, "").format(int(row["facts"].get(about, 0)))
    return (name, score, row["sigma"]["private"], claim, holds, said)


def findings(
    published: dict[str, Row],
    squared: Row,
    ours: dict[str, Row],
    user: Row,
    levels: dict[str, float],
    start: float,
) -> list[str]:
    """Order against user-level DP and de-identification, and what the claim is worth."""
    end = {name: row["curve"][-1] for name, row in published.items()}
    learned = [name for name, row in end.items() if row[1] < 0.95 * start]
    worst = max(end.values(), key=lambda row: row[3] / row[2])
    mine = {name: row["curve"][-1][1] for name, row in ours.items()}
    user_score = user["curve"][-1][1]
    ahead = [name for name, score in mine.items() if score < user_score]
    lines = []
    if learned:
        lines.append(f"As in the paper: Algorithm 1 with its printed noise learns, for {', '.join(learned)}.")
    else:
        lines.append(
            f"Not as in the paper: with its noise as printed Algorithm 1 learns nothing ({start:.3g} before, "
            f"{min(row[1] for row in end.values()):.3g} after at best)."
        )
    _, score, claim, holds = squared["curve"][-1]
    lines.append(
        f"With the deviation squared, as in the released code, it reaches {score:.3g} at a claim of {claim:.2f}; "
        f"what holds for that "
        f"noise is {holds:,.0f}." if holds < float("inf") else
        f"With the deviation squared, as in the released code, it reaches {score:.3g} at a claim of {claim:.2f}; "
        f"nothing finite holds "
        "for that noise."
    )  # fmt: skip
    lines.append(
        f"The claim and what holds differ by up to {worst[3] / worst[2]:.1f} times ({worst[2]:.2f} and {worst[3]:.2f})."
    )
    if ahead and len(ahead) == len(mine):
        lines.append(f"As in the paper: uedp is ahead of user-level DP at equal ε = {TARGET:g}, for every category.")
    else:
        lines.append(
            f"Not as in the paper: at equal ε = {TARGET:g} uedp is ahead of user-level DP for "
            f"{', '.join(ahead) or 'no category'}. The two protect different things: user-level DP says nothing of "
            f"an entity "
            "that many users write about."
        )
    beaten = [name for name, score in mine.items() if score < levels["de-identified"]]
    lines.append(
        f"Not as in the paper: de-identification ({levels['de-identified']:.3g}) is better than uedp; noise costs "
        f"more than masks "
        "at this size."
        if not beaten
        else f"As in the paper: uedp is better than de-identification for {', '.join(beaten)}."
    )
    return lines


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
