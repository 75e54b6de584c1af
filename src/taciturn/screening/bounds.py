"""Upper bounds of shares from samples: exact ones for a simple random sample, Chernoff's for one drawn by strata.

All are one-sided and hold for every population, not on average over populations. Sampling without replacement makes them
a little wider than need be (Hoeffding 1963, Theorem 4; Uhlmann 1966 for Clopper and Pearson's).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from taciturn.errors import UsageError

Array = npt.NDArray[np.float64]

_STEPS = 60  # bisections of an exponent: far below rounding


def upper(hits: int, n: int, confidence: float = 0.95) -> float:
    """Largest share that ``hits`` of ``n`` leave possible (Clopper and Pearson 1934); 1 when n is 0.

    >>> round(upper(0, 200), 4), round(upper(20, 200), 3)
    (0.0149, 0.142)
    """
    from scipy.special import betaincinv  # slow to load, and screening itself needs no bound

    return 1.0 if hits >= n else float(betaincinv(hits + 1, n - hits, confidence))


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


def stratified_upper(strata: Sequence[Stratum], confidence: float = 0.95) -> float:
    """Largest share of all records with the property that the strata's samples leave possible.

    The statistic is the weighted estimate t = Σ W_h·hits_h/drawn_h with W_h the stratum's share of the records. For a share
    θ = Σ W_h·p_h, Chernoff gives P(T ≤ t) ≤ exp(λt)·Π (1 − p_h(1 − e^(−λW_h/drawn_h)))^drawn_h for every λ > 0. The bound
    is the smallest θ above t at which this is 1 − confidence for the worst division of θ among the strata. Without a hit
    it is exact: with proportional drawing, the bound of a simple random sample. A stratum nobody looked at may have the
    property throughout.
    """
    total = sum(s.size for s in strata)
    if not total:
        return 1.0
    weight = np.array([s.size / total for s in strata])
    drawn = np.array([float(s.drawn) for s in strata])
    seen = drawn > 0
    unseen = float(weight[~seen].sum())
    if not seen.any() or confidence >= 1:
        return 1.0
    weight, drawn = weight[seen], drawn[seen]
    hits = np.array([float(s.hits) for s in strata])[seen]
    each = weight / drawn  # what one record stands for
    estimate = float((each * hits).sum())
    log_alpha = math.log1p(-confidence)
    share = float(weight.sum())

    def bound(log_scale: float) -> float:
        rate = math.exp(log_scale) * float(drawn.sum())
        curve = -np.expm1(-rate * each)

        def worst(price: float) -> Array:
            """The division that the Lagrange multiplier ``price`` stands for; the log-probability is concave in it."""
            return np.asarray(np.clip((1 - curve / (price * each)) / curve, 0.0, 1.0))

        def log_probability(p: Array) -> float:
            with np.errstate(divide="ignore"):
                return rate * estimate + float((drawn * np.log1p(-np.minimum(p * curve, 1.0))).sum())

        low, high = float((curve / each).min()), float((curve / each / np.maximum(1 - curve, 1e-300)).max())
        if log_probability(np.ones_like(each)) > log_alpha:
            return share
        for _ in range(_STEPS):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if log_probability(worst(middle)) > log_alpha else (low, middle)
        return float((weight * worst(high)).sum())

    from scipy.optimize import minimize_scalar

    best = minimize_scalar(bound, bounds=(-8.0, 4.0), method="bounded", options={"xatol": 1e-3})
    return min(1.0, unseen + min(float(best.fun), bound(4.0), share))


def stratified_lower(strata: Sequence[Stratum], confidence: float = 0.95) -> float:
    """Smallest share of all records with the property that the strata's samples leave possible."""
    return 1.0 - stratified_upper([Stratum(s.size, s.drawn, s.drawn - s.hits) for s in strata], confidence)


def ratio_upper(hits: Sequence[Stratum], base: Sequence[Stratum], confidence: float = 0.95) -> float:
    """Largest share of ``hits`` among ``base``, which holds them (both over the same strata).

    hits / base grows with the hits and falls with the rest of the base: an upper bound of the one and a lower bound of the
    other, each failing for half of 1 − confidence.
    """
    half = 1 - (1 - confidence) / 2
    rest = [Stratum(b.size, b.drawn, b.hits - h.hits) for h, b in zip(hits, base, strict=True)]
    most, least = stratified_upper(hits, half), stratified_lower(rest, half)
    return most / (most + least)
