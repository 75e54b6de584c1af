"""Upper bounds of shares from samples: exact ones for a simple random sample, a betting test for one drawn by strata.

All are one-sided and hold for every population, not on average over populations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from taciturn.errors import UsageError
from taciturn.exact_bounds import upper

Array = npt.NDArray[np.float64]

_GRID: Array = -np.expm1(-np.exp(np.linspace(math.log(1e-6), math.log(30.0), 40_000)))  # shares that are tested


def lower(hits: int, n: int, confidence: float = 0.95) -> float:
    """Smallest share that ``hits`` of ``n`` leave possible."""
    return 1.0 - upper(n - hits, n, confidence) if n else 0.0


def needed(bound: float, misses: int = 0, confidence: float = 0.95) -> int:
    """How many secrets, with ``misses`` of them missed, make ``upper`` at most ``bound``.

    >>> needed(0.01), needed(0.01, misses=2), needed(8e-5)
    (299, 628, 37446)
    """
    if not 0 < bound < 1:
        raise UsageError(f"the wanted bound must lie in (0, 1), found {bound:g}")
    low, high = misses, max(1, misses)
    while upper(misses, high, confidence) > bound:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if upper(misses, middle, confidence) <= bound else (middle, high)
    return high


def needed_at(bound: float, rate: float, confidence: float = 0.95, most: int = 10**7) -> int | None:
    """How many secrets it takes if the share ``rate`` of them is missed, rounded up; None when no number up to ``most``
    will do, as when the rate is not below the bound."""
    if rate >= bound:
        return None
    low, high = 0, 1
    while upper(math.ceil(rate * high), high, confidence) > bound:
        if high >= most:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if upper(math.ceil(rate * middle), middle, confidence) <= bound else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class Stratum:
    """size: records of the stratum. drawn: of those looked at. hits: of those with the property."""

    size: int
    drawn: int
    hits: int


def ratio_upper(
    hits: Sequence[Stratum], base: Sequence[Stratum], confidence: float = 0.95, expected: float | None = None
) -> float:
    """Largest share of ``hits`` among ``base``, which holds them (both over the same strata), by a test of every share θ.

    Under "the hits are at least the share θ of the base" the scores z (1 − θ of a hit, −θ of the rest of the base, 0 of
    others) have a sum of at least 0 over all records. With bets x_h = x·s_h/c (s_h = size/drawn: what one record stands for)
    the product of 1 − x_h·z over the sample has a mean of at most exp(−Σ drawn_h·x_h·mean_h(z)) ≤ 1, as 1 − y ≤ e^−y;
    without replacement it is no larger (Hoeffding 1963, Theorem 4). So it is 1/(1 − confidence) or more with a probability
    of at most 1 − confidence (Markov; bets as in Waudby-Smith, Ramdas 2024). Where a record stands for more than c, up to
    infinity in a stratum nobody looked at, the bet is x and what is left of the stratum may be of hits throughout. x and c
    are fixed before any label is seen: for each θ the best ones if ``expected`` of the sample are of the base. A wrong guess
    (by default, all of them) widens the bound and does not break it.

    Drawn by size and without a hit it is Clopper and Pearson's of as many of the base, to three digits, if ``expected`` is
    no more than 1.5 times what was found. It is never above what it would be if all records nobody looked at were hits.
    """
    drawn = sum(b.drawn for b in base)
    total, found, lost = sum(b.size for b in base), sum(b.hits for b in base), sum(h.hits for h in hits)
    if not found:
        return 1.0
    unseen = total - drawn
    certain = (lost + unseen) / (found + unseen)
    if certain == 0.0 or not 0 < confidence < 1:
        return certain
    log_alpha = -math.log1p(-confidence)

    def left(c: float) -> float:
        return sum(max(0.0, b.size / c - b.drawn) for b in base)

    c = min((b.size / b.drawn for b in base if b.drawn), key=lambda c: c * (log_alpha + left(c)))
    theta = _GRID
    smaller = _expected_share(theta, float(expected or drawn), log_alpha)
    bet = (1 - smaller / theta) / (1 - theta)
    log, wanted = np.zeros_like(theta), log_alpha + bet * (1 - theta) * left(c)
    for h, b in zip(hits, base, strict=True):
        x = bet * min(1.0, b.size / b.drawn / c) if b.drawn else bet
        if h.hits:
            with np.errstate(divide="ignore"):
                log += h.hits * np.log(np.maximum(1 - x * (1 - theta), 0.0))
        log += (b.hits - h.hits) * np.log1p(x * theta)
    kept = np.flatnonzero(log < wanted)  # what is possible; a share between two of the grid is at least the lower one
    if not len(kept):
        return min(certain, float(theta[0]))
    return min(certain, float(theta[kept[-1] + 1]) if kept[-1] + 1 < len(theta) else 1.0)


def _expected_share(theta: Array, n: float, log: float) -> Array:
    """Of ``n`` with the share θ of hits, the share so small that Chernoff's bound of it is about e^−log; whole hits."""
    mean = n * theta
    middle = mean - np.sqrt(2 * mean * (1 - theta) * log) + log / 3 * (1 - 2 * theta)
    return np.minimum(np.maximum(np.floor(middle), 0.0) / n, theta)
