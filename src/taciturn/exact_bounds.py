"""Exact upper bounds of a share from a simple random sample, one-sided, for every population."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from taciturn.errors import UsageError

Array = npt.NDArray[np.float64]

_LARGE = 20  # times the sample: beyond, what a known size gains is below three per cent
_EFFORT = 3 * 10**5  # less than a second: a certificate may name any numbers


def upper(hits: int, n: int, confidence: float = 0.95) -> float:
    """Largest share that ``hits`` of ``n`` leave possible (Clopper and Pearson 1934), drawn from any number with or without
    replacement; 1 when n is 0.

    The binomial tail at ``hits`` bounds the hypergeometric one from above where ``hits`` is at least 1 below the mean, or 0
    (Uhlmann 1966). So where the bound leaves a mean that is nearer, nearly all being hits, it is 1 (guarantees.md §3.3).

    >>> round(upper(0, 200), 4), round(upper(20, 200), 3), upper(199, 200)
    (0.0149, 0.142, 1.0)
    """
    from scipy.special import betaincinv  # slow to load, and screening itself needs no bound

    if hits >= n:
        return 1.0
    share = float(betaincinv(hits + 1, n - hits, confidence))
    return share if hits == 0 or n * share - hits >= 1 else 1.0


@lru_cache(maxsize=4096)
def finite_upper(hits: int, n: int, population: int, confidence: float = 0.95) -> float:
    """Largest share that ``hits`` of ``n`` leave possible, drawn without replacement from ``population`` or fewer.

    The largest M/K of n ≤ K ≤ ``population`` for which at most ``hits`` among n of K with M hits have a probability above
    1 − confidence (hypergeometric; Konijn 1973, Buonaccorsi 1987 for one K). Given that n of K were drawn they are a simple
    random sample of the K, so the bound holds whichever K is true. It is exact where all were drawn, and ``upper``, which is
    no smaller, beyond 20 times the sample and where it takes long to compute. 1 when n is 0.

    >>> finite_upper(0, 60, 60), round(finite_upper(0, 60, 90), 4), round(finite_upper(0, 60, 10**9), 4)
    (0.0, 0.0256, 0.0487)
    """
    if population < n:
        raise UsageError(f"a sample of {n} cannot come from a population of {population}")
    if hits >= n or population > _LARGE * n or (hits + 1) * (population - n) > _EFFORT:
        return upper(hits, n, confidence)
    sizes = np.arange(n, population + 1, dtype=np.float64)
    low = np.full_like(sizes, hits)  # possible: at most ``hits`` are seen for certain
    high = sizes - (n - hits) + 1
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        possible = _hypergeometric(hits, sizes, middle, n) > (1 - confidence) * (1 - 1e-6)  # rounding must widen
        low, high = np.where(possible, middle, low), np.where(possible, high, middle)
    return float((low / sizes).max())


def _hypergeometric(hits: int, sizes: Array, among: Array, n: int) -> Array:
    """P(at most ``hits`` in ``n`` drawn of ``sizes`` that hold ``among``), element by element; 1 where ``hits`` is above the
    mean. From the last term down, where each is the next one times a ratio: (hits + 1) × len(sizes) steps."""
    from scipy.special import betaln

    def log_choose(a: Array, b: Array | int) -> Array:
        return np.asarray(-betaln(a - b + 1.0, b + 1.0) - np.log1p(a))

    rest = sizes - among
    below = (hits < n * among / sizes) & (n - hits <= rest)
    among, rest = np.where(below, among, hits), np.where(below, rest, n)
    log = log_choose(among, hits) + log_choose(rest, n - hits) - log_choose(sizes, n)
    term = np.where(below, np.exp(np.minimum(log, 0.0)), 0.0)
    total = term.copy()
    for x in range(hits, 0, -1):
        term = term * x * (rest - n + x) / ((among - x + 1) * (n - x + 1))
        total += term
        if (term <= 1e-12 * total).all():
            break
    return np.where(below, total, 1.0)
