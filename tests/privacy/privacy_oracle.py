"""Slow, separate arithmetic that the accountant is held against: quadrature of the hockey stick for one step, and a
bracket for many by rounding losses down and up on a fixed grid. Shares no code with taciturn or dp_accounting."""

from __future__ import annotations

import math

import mpmath
import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import binom


def pairs(q: float, k: int, relation: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """(weights of P at +j, weights of Q at −j) for every direction."""
    drawn = binom.pmf(np.arange(k + 1), k, q)
    still = np.eye(k + 1)[0]
    return [(drawn, drawn)] if relation == "substitution" else [(drawn, still), (still, drawn)]


def one_step_delta(q: float, sigma: float, epsilon: float, k: int, relation: str) -> float:
    """sup over directions of ∫ (p − e^ε q)₊, by root finding and exact normal tails in 40 digits."""
    worst = mpmath.mpf(0)
    with mpmath.workdps(40):
        for up, down in pairs(q, k, relation):

            def density(x, weights, sign):
                return sum(mpmath.mpf(float(w)) * mpmath.npdf(x, sign * j, sigma) for j, w in enumerate(weights) if w)

            def gap(x, up=up, down=down, density=density):
                return mpmath.log(density(x, up, 1)) - mpmath.log(density(x, down, -1)) - epsilon

            low, high = mpmath.mpf(-40 * sigma - k), mpmath.mpf(40 * sigma + k)
            if gap(high) <= 0:
                continue
            for _ in range(90):
                middle = (low + high) / 2
                low, high = (low, middle) if gap(middle) > 0 else (middle, high)

            def tail(weights, sign, at=high):
                return sum(
                    mpmath.mpf(float(w)) * mpmath.ncdf((sign * j - at) / sigma) for j, w in enumerate(weights) if w
                )

            worst = max(worst, tail(up, 1) - mpmath.exp(epsilon) * tail(down, -1))
    return float(worst)


def smallest(losses: np.ndarray, pmf: np.ndarray, lost: float, delta: float, limit: float) -> float:
    """ε in [0, limit] where lost + E(1 − e^{ε − loss})₊ falls to δ, to 40 binary digits of ``limit``."""

    def excess(epsilon: float) -> float:
        first = int(np.searchsorted(losses, epsilon, side="right"))
        found = lost + float(pmf[first:] @ -np.expm1(epsilon - losses[first:]))
        return math.log(max(found, 1e-300) / delta)

    if excess(0.0) <= 0:
        return 0.0
    return limit if excess(limit) > 0 else float(brentq(excess, 0.0, limit, xtol=limit * 2.0**-40, rtol=1e-12))


def epsilon_bracket(
    steps: list[tuple[float, float, int]], delta: float, k: int, relation: str, width: float, limit: float
) -> tuple[float, float]:
    """ε with every loss rounded down, and up, to multiples of ``width``; ``steps`` are (q, σ, count)."""
    size = 1 << math.ceil(math.log2(2 * limit / width))
    losses = (np.arange(size) - size // 2) * width
    bounds = []
    for rounding in (np.floor, np.ceil):
        worst = 0.0
        for direction in range(1 if relation == "substitution" else 2):
            spectrum, kept = np.ones(size // 2 + 1, dtype=complex), 1.0
            for q, sigma, count in steps:
                up, down = pairs(q, k, relation)[direction]
                x = np.linspace(-9 * sigma - 1, 9 * sigma + k + 1, 100_001)
                ratio = [
                    sum(w * np.exp((s * j * x - j * j / 2) / sigma**2) for j, w in enumerate(ws) if w)
                    for ws, s in ((up, 1), (down, -1))
                ]
                loss = np.log(ratio[0]) - np.log(ratio[1])
                cdf = sum(w * ndtr((x - j) / sigma) for j, w in enumerate(up))
                ends = loss[1:] if rounding is np.ceil else loss[:-1]
                index = rounding(ends / width).astype(int) + size // 2
                pmf = np.bincount(index, weights=np.diff(cdf), minlength=size)
                kept *= float(pmf.sum()) ** count
                spectrum *= np.fft.rfft(np.roll(pmf, -(size // 2))) ** count
            pmf = np.roll(np.fft.irfft(spectrum, size), size // 2).clip(0)
            lost = (1 - kept) if rounding is np.ceil else 0.0
            worst = max(worst, smallest(losses, pmf, lost, delta, limit))
        bounds.append(worst)
    return bounds[0], bounds[1]
