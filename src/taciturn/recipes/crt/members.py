"""What CRT's two membership figures say: which rows exceed chance, and whether a model tells more where π misses more."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist

from taciturn.recipes.crt.curves import TITLES, Cells, order, unique, value
from taciturn.recipes.crt.sizes import KINDS, name_of


def findings(found: Mapping[str, Cells], attack: str) -> list[str]:
    """attack: membership or group_membership, the prefix of a cell's keys."""
    return [line for name, cells in found.items() for line in _of(TITLES[name], cells, attack)]


def _of(title: str, cells: Cells, attack: str) -> list[str]:
    gammas = sorted({gamma for _, _, gamma, _ in cells})
    null = next((each[f"{attack}_mean"] for each in cells.values() if f"{attack}_mean" in each), None)
    if null is None:
        return [f"{title}. Too few texts with secrets for this attack in this size."]
    crt, crt_limit = _top(cells, ("CRT", "CRT with skeletons"), attack, null)
    plain, limit = _top(cells, ("redacted",), attack, null)
    chance = f"by chance the best threshold is right in {null[0]:.2f} on average"
    lines = [
        f"{title}. "
        + order(
            crt <= crt_limit,
            f"rows of CRT stay within chance (at most {crt:.2f}; {chance}, and the highest of them above "
            f"{crt_limit:.2f} in "
            "one case of twenty).",
            f"a row of CRT reaches {crt:.2f}, above the {crt_limit:.2f} of chance. A noiseless phase on public "
            f"text and "
            "skeletons shows who was there, which confidentiality does not promise to hide.",
        ),
        order(
            plain > limit,
            f"models without noise exceed chance ({plain:.2f} against {limit:.2f}).",
            f"models without noise stay within chance too in this size ({plain:.2f}; limit {limit:.2f}), so that "
            f"the attack says "
            "little here of those with noise.",
        ),
    ]
    for kind in KINDS:
        first, last = (value(cells, kind, "redacted", g, attack) for g in (gammas[0], gammas[-1]))
        if first is not None and last is not None:
            rises = "it rises with γ, as in the paper" if last > first else "it does not rise with γ"
            lines.append(
                f"AUC of {name_of(kind, 'redacted')}: {first:.2f} at γ = {gammas[0]:g}, {last:.2f} at "
                f"{gammas[-1]:g}; {rises}."
            )
    return lines


def _top(cells: Cells, rows: tuple[str, ...], attack: str, null: list[float]) -> tuple[float, float]:
    """The highest accuracy of some rows, and what chance exceeds in one case of twenty with as many cells: Bonferroni, with
    normal tails from the null's mean and 95 % point."""
    found = [each[f"{attack}_accuracy"] for each in unique(cells, rows)]
    sd = (null[1] - null[0]) / NormalDist().inv_cdf(0.95)
    return max(found), null[0] + sd * NormalDist().inv_cdf(1 - 0.05 / len(found))
