"""What CRT's two membership figures say: the orders of the paper, and which rows exceed chance."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist

from taciturn.recipes.cells import Work
from taciturn.recipes.crt.curves import TITLES, Cells, bars, leaks, unique
from taciturn.recipes.crt.sizes import OURS
from taciturn.recipes.recipe import Inputs
from taciturn.recipes.verdicts import sentences


def findings(inputs: Inputs, work: Work, found: Mapping[str, Cells], attack: str) -> list[str]:
    """attack: membership or group_membership, the prefix of a cell's keys."""
    claims = [
        order
        for name, cells in found.items()
        for what, metric in (
            ("membership accuracy", attack),
            ("accuracy on the secret's own tokens", f"secret_{attack}"),
        )
        for order in leaks(TITLES[name], what, cells, bars(inputs, work, name), f"{metric}_accuracy")
    ]
    return [*sentences(claims), *(_chance(TITLES[name], cells, attack) for name, cells in found.items())]


def _chance(title: str, cells: Cells, attack: str) -> str:
    """Where the highest rows lie beside what the best threshold is right in when nothing leaked."""
    null = next((each[f"{attack}_mean"] for each in cells.values() if f"{attack}_mean" in each), None)
    if null is None:
        return f"{title}. Too few texts with secrets for this attack in this size."
    parts = []
    for name, rows in (("of CRT", ("CRT", *OURS)), ("without noise", ("redacted",))):
        top, limit = _top(cells, rows, attack, null)
        where = "above" if top > limit else "not above"
        parts.append(f"the highest accuracy of models {name} is {top:.2f}, {where} {limit:.2f}")
    return (
        f"{title}. By chance the best threshold is right in {null[0]:.2f} on average, and the highest of so many models "
        f"above the limit named in one case of 20: {'; '.join(parts)}. Not above chance is no evidence of no leak; "
        "a noiseless phase on public text and skeletons may show who was there, which no confidentiality promises to hide."
    )


def _top(cells: Cells, rows: tuple[str, ...], attack: str, null: list[float]) -> tuple[float, float]:
    """The highest accuracy of some rows, and what chance exceeds in one case of twenty with as many cells: Bonferroni, with
    normal tails from the null's mean and 95 % point."""
    found = [each[f"{attack}_accuracy"] for each in unique(cells, rows)]
    sd = (null[1] - null[0]) / NormalDist().inv_cdf(0.95)
    return max(found), null[0] + sd * NormalDist().inv_cdf(1 - 0.05 / len(found))
