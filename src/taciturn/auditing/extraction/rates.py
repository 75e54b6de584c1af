"""Findings of rates: how many values of the training text an attack has, against values of text that was never seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import hypergeom

from taciturn.auditing.finding import CLEAR, LEAK, Finding, verdict_of
from taciturn.auditing.lower_bounds.two_sided import clopper_pearson

LEAST = 20
"""Fewest values on each side for a verdict."""

BLIND = "a blind baseline tells the values of one side better: the two sides differ without any model"


def two_sides(
    name: str,
    own: Sequence[Sequence[bool]],
    theirs: Sequence[Sequence[bool]] | None,
    positive: float,
    detail: Mapping[str, Any],
    blind: Sequence[Sequence[bool]] | None = None,
) -> Finding:
    """A finding of two sides, members and non-members; what the base model tells (``theirs``) is not counted. blind: what
    is told without any model."""
    before = theirs or [[False] * len(side) for side in own]
    counted = [sum(a and not b for a, b in zip(*pair, strict=True)) for pair in zip(own, before, strict=True)]
    by_base = None if theirs is None else float(np.mean(theirs[0]))
    detail = {**detail, "right": sum(own[0])}
    found = rates(name, counted[0], len(own[0]), counted[1], len(own[1]), by_base, positive, detail)
    return found if blind is None else _beside(found, blind)


def _beside(found: Finding, blind: Sequence[Sequence[bool]]) -> Finding:
    """The finding with its blind baseline: if that tells members' values better than others' too, the sides differ."""
    (hits, n), (unseen, m) = ((sum(side), len(side)) for side in blind)
    controls = {**found.controls, "blind": hits / n, "blind_unseen": unseen / m}
    above = float(hypergeom.sf(hits - 1, n + m, hits + unseen, n))
    below = float(hypergeom.cdf(hits, n + m, hits + unseen, n))
    # Where members' values are easier told blind, an attack may seem to work; where either side's are, it may seem not to.
    doubted = above < LEAK if found.null["p"] < CLEAR else 2 * min(above, below) < LEAK
    if not doubted:
        return replace(found, controls=controls)
    return replace(found, controls=controls, verdict="inconclusive", notes=(*found.notes, BLIND))


def rates(
    name: str, hits: int, n: int, unseen: int, m: int, base: float | None, positive: float, detail: Mapping[str, Any]
) -> Finding:
    """A finding of ``hits`` of ``n`` values trained on against ``unseen`` of ``m`` never seen."""
    p = float(hypergeom.sf(hits - 1, n + m, hits + unseen, n))
    low, high = clopper_pearson(unseen, m)
    problems = []
    if min(n, m) < LEAST:
        problems.append(f"fewer than {LEAST} different values on a side")
    if positive < 0.5:
        problems.append("the positive control failed: the attack misses an over-fitted model's data")
    return Finding(
        attack=name,
        score=hits / n,
        unit_of_score="share of values",
        interval=clopper_pearson(hits, n),
        null={"mean": unseen / m, "p95": high, "p": p},
        controls={"positive": positive, "negative": unseen / m, **({} if base is None else {"base": base})},
        verdict=verdict_of(p, problems),
        detail={
            **detail,
            "hits": hits,
            "values": n,
            "hits_unseen": unseen,
            "values_unseen": m,
            "unseen_interval": (low, high),
        },
        notes=tuple(problems),
    )
