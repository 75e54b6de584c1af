"""A second accountant for the tests, of another kind than the product's: masses are split linearly between two grid points
(which keeps the mean loss, and is exact to second order, not a bound), one FFT composes all steps, and the window comes
from Chernoff bounds. Shares no code with taciturn or dp_accounting. Also Rényi divergences by the binomial formula."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, log_ndtr, logsumexp
from scipy.stats import binom

SIZE = 1 << 19
CELLS = 100_000
Law = dict[int, float]
Step = tuple[Law, Law, float, int]


def law(*kinds: tuple[int, float]) -> Law:
    """How many units are drawn, of ``number`` units at ``rate`` for each kind."""
    total = np.ones(1)
    for number, rate in kinds:
        total = np.convolve(total, binom.pmf(np.arange(number + 1), number, rate))
    return {j: float(weight) for j, weight in enumerate(total) if weight > 0}


def substitution(q: float, sigma: float, count: int, k: int = 1) -> list[list[Step]]:
    return [[(law((k, q)), law((k, q)), sigma, count)]]


def add_remove(q: float, sigma: float, count: int, k: int = 1) -> list[list[Step]]:
    return [[(law((k, q)), {0: 1.0}, sigma, count)], [({0: 1.0}, law((k, q)), sigma, count)]]


def _loss(up: Law, down: Law, sigma: float, x: np.ndarray) -> np.ndarray:
    def density(weights: Law, sign: int) -> np.ndarray:
        return logsumexp([math.log(w) + (sign * j * x - j * j / 2) / sigma**2 for j, w in weights.items()], axis=0)

    return density(up, 1) - density(down, -1)


def _one_step(up: Law, down: Law, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Losses at the middles of fine cells of x, and the cells' masses under P."""
    x = np.linspace(-9 * sigma - 1, 9 * sigma + max(up) + 1, CELLS + 1)
    cdf = sum(w * np.exp(log_ndtr((x - j) / sigma)) for j, w in up.items())
    return _loss(up, down, sigma, (x[1:] + x[:-1]) / 2), np.diff(cdf)


def _window(parts: list[tuple[np.ndarray, np.ndarray, int]], miss: float) -> float:
    """A length of which the composed loss leaves less than ``miss`` on either side."""
    reach = 0.0
    coarse = [(losses[::50], np.add.reduceat(mass, np.arange(0, CELLS, 50)), count) for losses, mass, count in parts]
    for sign in (1, -1):
        best = math.inf
        for order in np.geomspace(1e-3, 1e4, 60):
            logs = sum(
                count * logsumexp(sign * order * losses, b=np.clip(mass, 1e-300, None))
                for losses, mass, count in coarse
            )
            best = min(best, (logs - math.log(miss)) / order)
        reach = max(reach, best)
    return reach


def composed(steps: list[Step], delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Losses on a grid and their masses, for all ``steps`` together."""
    parts = [(*_one_step(up, down, sigma), count) for up, down, sigma, count in steps]
    limit = _window(parts, delta * 1e-6)
    width = 2 * limit / SIZE
    spectrum = np.ones(SIZE // 2 + 1, dtype=complex)
    for losses, mass, count in parts:
        place = np.clip(losses / width + SIZE // 2, 0, SIZE - 2)
        below = place.astype(int)
        share = place - below
        pmf = np.bincount(below, weights=mass * (1 - share), minlength=SIZE)
        pmf += np.bincount(below + 1, weights=mass * share, minlength=SIZE)
        spectrum *= np.fft.rfft(np.roll(pmf, -(SIZE // 2))) ** count
    pmf = np.roll(np.fft.irfft(spectrum, SIZE), SIZE // 2).clip(0)
    return (np.arange(SIZE) - SIZE // 2) * width, pmf


def epsilon(directions: list[list[Step]], delta: float) -> float:
    """The worse direction's ε at ``delta``."""
    worst = 0.0
    for steps in directions:
        losses, pmf = (each[SIZE // 2 :] for each in composed(steps, delta))  # losses ≥ 0

        def excess(at: float, losses: np.ndarray = losses, pmf: np.ndarray = pmf) -> float:
            above = losses > at
            return float(pmf[above] @ -np.expm1(at - losses[above])) - delta

        low, high = 0.0, float(losses[-1])
        if excess(low) <= 0:
            continue
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        worst = max(worst, high)
    return worst


def renyi_epsilon(q: float, sigma: float, count: int, delta: float) -> float:
    """Add and remove by Rényi divergences of whole orders (Mironov, Talwar, Zhang 2019; the formula Opacus uses)."""
    best = math.inf
    for order in range(2, 257):
        j = np.arange(order + 1)
        logs = gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1) + (j * j - j) / (2 * sigma**2)
        logs = logs + (0 if q == 1 else (order - j) * math.log1p(-q)) + j * math.log(q)
        total = logs[-1] if q == 1 else logsumexp(logs)
        value = count * total / (order - 1)
        best = min(best, value + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1))
    return max(best, 0.0)
