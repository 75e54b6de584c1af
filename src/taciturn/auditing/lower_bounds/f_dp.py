"""One-run auditing against a whole privacy curve, not one (ε, δ) of it (Mahloujifar, Melis, Chaudhuri 2024, f-DP form).

A trade-off curve f says how well neighbours can be told apart at every rate of error at once. Let P have all that a run on
the drawn coins shows and g(R) be the least probability that an event of probability R keeps when one coin is turned. Of the
number c of right guesses out of r, for every level i

    Σ_{j ≥ i−1} (r − j)·P(c = j) / m  ≥  g(Σ_{j ≥ i} j·P(c = j) / m),

since turning the coin of a right guess leaves a wrong one and i − 1 right ones; g is convex, so the mean over the m coins
may be taken inside (Jensen). Among the laws with P(c ≥ v) = τ, the one with τ at v, then as little as each level allows
from there down and the rest at 0, satisfies these if any does: moving what is above v down to v, or what a level has above
its need one level down, keeps them all. So τ is refuted exactly when that law needs more than 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from taciturn.auditing.lower_bounds.one_run import OneRun
from taciturn.privacy.guarantees.claims import Curved

Floor = Callable[[float], float]
"""g: the least probability, with one coin turned, of an event of this probability. Convex, increasing, at most x."""


@dataclass(frozen=True, slots=True)
class Curve:
    """(ε, δ(ε)) at some ε, all of which hold in both directions: g is the largest that any of them gives."""

    epsilons: NDArray[np.float64]
    deltas: NDArray[np.float64]

    def __call__(self, R: float) -> float:
        up = np.exp(-self.epsilons) * (R - self.deltas)
        complement = 1 - self.deltas - np.exp(self.epsilons) * (1 - R)
        return max(0.0, float(up.max()), float(complement.max()))


def curve_of(profile: Curved, delta: float = 1e-5) -> Curve:
    """A certified privacy curve, read from ε = 0 to beyond where δ is ``delta`` (any of its points may be left out)."""
    found = profile.curve(delta)
    return Curve(found.epsilons, found.deltas)


def gaussian(mu: float) -> Floor:
    """g of telling N(0, 1) from N(μ, 1), the curve G_μ (Dong, Roth, Su 2022, Definition 2.6)."""
    return lambda R: float(ndtr(ndtri(min(R, 1.0)) - mu))


def refuted(m: int, r: int, v: int, g: Floor, alpha: float) -> bool:
    """Whether at least ``v`` right ones of ``r`` guesses about ``m`` coins have probability below ``alpha`` under ``g``.

    >>> refuted(1000, 100, 99, gaussian(0.5), 0.05), refuted(1000, 100, 70, gaussian(0.5), 0.05)
    (True, False)
    """
    if not 0 <= v <= r <= m:
        raise ValueError(f"expected 0 ≤ right ≤ guesses ≤ coins, found {v}, {r}, {m}")
    total, right, wrong = alpha, alpha * v / m, alpha * (r - v) / m
    for i in range(v, 0, -1):
        missing = g(right) - wrong
        if missing > 0:
            share = m * missing / (r - i + 1)
            total += share
            if total > 1:
                return True
            right, wrong = right + share * (i - 1) / m, wrong + missing
    return False


def rejected(once: OneRun, g: Floor, confidence: float = 0.95) -> bool:
    """Whether the guesses of a run refute ``g``; the confidence is split over the shares that were tried."""
    alpha = (1 - confidence) / max(len(once.guesses), 1)
    return any(
        refuted(once.canaries, r, v, g, alpha) for r, v in zip(once.guesses, once.right, strict=True) if 2 * v > r
    )


def mu_lower(once: OneRun, confidence: float = 0.95) -> float:
    """The largest μ whose Gaussian curve G_μ the guesses refute; 0 when there is none."""
    low, high = 0.0, 16.0
    if not rejected(once, gaussian(0.0), confidence):
        return 0.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if rejected(once, gaussian(middle), confidence) else (low, middle)
    return low
