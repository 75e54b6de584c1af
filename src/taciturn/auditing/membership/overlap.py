"""How many non-members are near-copies of members: on those a model that remembers members does as well, so that a leak
does not show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from taciturn.screening.cleaning.minhash import WIDTH, Near

LIKE = 0.5
"""A non-member is a near-copy if one member has at least this share of its shingles, runs of five words."""

MOST = 0.2
"""Share of near-copies among the non-members above which finding nothing says nothing."""

_FREQUENT = 200
"""Members that a shingle stands in beyond which only so many of them are looked at."""


def overlap(members: Sequence[str], nonmembers: Sequence[str]) -> dict[str, float]:
    """near_copies: share of the non-members. shared: share of their shingles that stand in any member.

    >>> overlap(["a b c d e f", "g h i j k"], ["a b c d e z", "l m n o p"])["near_copies"]
    0.5
    """
    near = Near()
    holders: dict[int, list[int]] = {}
    for number, shingles in enumerate(near.shingles(members)):
        for shingle in shingles.tolist():
            held = holders.setdefault(shingle, [])
            if len(held) < _FREQUENT:
                held.append(number)
    copies, shares = 0, []
    for shingles in near.shingles(nonmembers):
        found = [holders[shingle] for shingle in shingles.tolist() if shingle in holders]
        most = max(Counter(number for held in found for number in held).values(), default=0)
        copies += most >= LIKE * len(shingles)
        shares.append(len(found) / len(shingles))
    return {
        "near_copies": copies / len(nonmembers),
        "shared": float(np.mean(shares)),
        "words": WIDTH,
        "like": LIKE,
        "most": MOST,
    }


def near_copies(found: dict[str, float]) -> list[str]:
    """Why an attack that finds nothing has shown nothing; empty where there are few enough."""
    if found["near_copies"] <= MOST:
        return []
    return [
        f"{100 * found['near_copies']:.0f} % of the non-members are near-copies of members (at most {100 * MOST:.0f} % for "
        "a verdict that nothing leaked): what was learned of a member helps them as well"
    ]
