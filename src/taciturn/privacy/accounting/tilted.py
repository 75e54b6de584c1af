"""δ far in the tail, where a plain transform sees only its own rounding: compose an exponentially tilted loss instead.

For any θ ≥ 0 the loss distribution p of a step becomes p_θ(l) = p(l)·e^{θl − K(θ)}, K(θ) = log Σ p(l)·e^{θl}. A sum of
independent losses is tilted by the same θ, so with K_T the sum of the steps' K

    δ(ε) = Σ_{l>ε} (1 − e^{ε−l})·p^{*T}(l) = e^{K_T(θ) − θε} · Σ_{l>ε} (1 − e^{ε−l})·e^{−θ(l−ε)}·p_θ^{*T}(l).

Every weight behind the factor is in [0, 1], so what a transform misplaces of the tilted mass costs at most that share of the
factor, which is a Chernoff bound: with the θ that makes it least, ε is the mean of the tilted sum and the rounding is small
against δ itself, however small that is. The identity holds at every θ, so a poor one is only less sharp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, next_fast_len, rfft
from scipy.interpolate import CubicSpline

from taciturn.privacy.accounting import grids
from taciturn.privacy.accounting.effort import pay
from taciturn.privacy.accounting.pairs import Array, Grid

_OUTSIDE = 1e-18  # tilted mass that may lie outside the window of a transform, on either side
_SPREAD = (2.0, 4.0, 8.0)  # orders of the Chernoff bounds of that, in 1/deviations
_ORDERS = np.geomspace(1e-3, 1e5, 49)  # where K is tabled to choose θ


class Tail:
    """One direction of a run, as grids of one width with their numbers of steps: its δ where that is tiny."""

    def __init__(self, side: Sequence[tuple[Grid, int]]) -> None:
        self.width = side[0][0].width
        self.counts = [count for _, count in side]
        self.steps = sum(self.counts)
        self.drift = sum(count * grid.drift for grid, count in side)
        self.first = sum(count * grid.low for grid, count in side)
        self.lost = -math.expm1(sum(count * math.log1p(-min(grid.infinity, 0.5)) for grid, count in side))
        self.losses = [(grid.low + np.flatnonzero(grid.probs > 0)) * grid.width for grid, _ in side]
        self.logs = [np.log(grid.probs[grid.probs > 0]) for grid, _ in side]
        self.cells = [np.flatnonzero(grid.probs > 0) for grid, _ in side]

    def delta(self, epsilon: float) -> float:
        """Upper bound of the hockey-stick divergence at ``epsilon``; 1 where the window would be too wide."""
        return self.near(epsilon)(epsilon)

    def near(self, epsilon: float) -> Callable[[float], float]:
        """δ as a function of ε from one composition, tilted to be sharp near ``epsilon`` and a bound everywhere."""
        theta = self._theta(epsilon - self.drift)
        each, tilted = self._tilted(theta)
        low, high = self._window(tilted)
        length = int(next_fast_len(max(high - low + 1, *(int(cells[-1]) + 1 for cells in self.cells)), real=True))
        if length > grids.COMPOSED:
            return lambda _: 1.0
        mass = np.maximum(np.roll(self._composed(tilted, length), self.first - low), 0.0)
        losses = (low + np.arange(length)) * self.width
        largest = max(theta * float(np.abs(at).max()) for at in self.losses) + max(map(abs, each))
        cumulant = sum(n * k for n, k in zip(self.counts, each, strict=True))

        def delta(epsilon: float) -> float:
            epsilon -= self.drift
            first = int(np.searchsorted(losses, epsilon, side="right"))
            at = losses[first:] - epsilon  # beyond ε
            inside = float(-np.expm1(-at) * np.exp(-theta * at) @ mass[first:])
            # A transform is off by rounding() of its norm; over 2^20 cells that is at most 2^10 times as much mass.
            charged = inside + 2 * _OUTSIDE + 2.0**10 * grids.rounding(self.steps)
            log_factor = cumulant - theta * epsilon
            log_factor += 2.0**-50 * (self.steps * largest + abs(theta * epsilon))  # of the sums and of the exponents
            return min(1.0, self.lost + math.exp(min(log_factor + math.log(charged), 0.0)))

        return delta

    def _cumulants(self, theta: float) -> list[float]:
        """K(θ) of each event's step."""
        pay(4 * sum(map(len, self.losses)))
        return [_log_sum(theta * at + log) for at, log in zip(self.losses, self.logs, strict=True)]

    @cached_property
    def _table(self) -> CubicSpline:
        """K_T(θ) over log θ, to choose θ by; the bound itself takes the exact value at what was chosen."""
        totals = [sum(n * k for n, k in zip(self.counts, self._cumulants(theta), strict=True)) for theta in _ORDERS]
        return CubicSpline(np.log(_ORDERS), totals)

    def _theta(self, epsilon: float) -> float:
        """θ > 0 at which the tilted sum's mean is near ``epsilon``: from the table, then by Newton's steps."""
        logs = np.linspace(math.log(_ORDERS[0]), math.log(_ORDERS[-1]), 2000)
        theta = math.exp(float(logs[np.argmin(self._table(logs) - np.exp(logs) * epsilon)]))
        for _ in range(6):
            mean, deviation = self._standing(self._tilted(theta)[1])
            if abs(epsilon - mean) <= deviation / 4:
                break
            theta = min(max(theta + (epsilon - mean) / deviation**2, theta / 2), 2 * theta)
        return theta

    def _tilted(self, theta: float) -> tuple[list[float], list[Array]]:
        """K(θ) of each event's step, and its tilted distribution."""
        each = self._cumulants(theta)
        return each, [np.exp(theta * at + log - k) for at, log, k in zip(self.losses, self.logs, each, strict=True)]

    def _standing(self, tilted: Sequence[Array]) -> tuple[float, float]:
        """Mean and deviation of the tilted sum."""
        mean = variance = 0.0
        for n, p, at in zip(self.counts, tilted, self.losses, strict=True):
            one = float(p @ at)
            mean, variance = mean + n * one, variance + n * float(p @ (at - one) ** 2)
        return mean, max(math.sqrt(variance), self.width)

    def _window(self, tilted: Sequence[Array]) -> tuple[int, int]:
        """Cells between which all but ``_OUTSIDE`` of the tilted sum lies on either side, by Chernoff bounds."""
        pay(8 * len(_SPREAD) * sum(map(len, tilted)))
        mean, deviation = self._standing(tilted)
        with np.errstate(divide="ignore"):
            logs = [np.log(p) for p in tilted]
        at = [losses - mean / self.steps for losses in self.losses]

        def reach(sign: int) -> float:
            """How far beyond its mean the tilted sum may lie."""
            return min(
                (
                    sum(
                        n * _log_sum(log + sign * order / deviation * beyond)
                        for n, log, beyond in zip(self.counts, logs, at, strict=True)
                    )
                    - math.log(_OUTSIDE)
                )
                * deviation
                / order
                for order in _SPREAD
            )

        return math.floor((mean - reach(-1)) / self.width), math.ceil((mean + reach(+1)) / self.width)

    def _composed(self, tilted: Sequence[Array], length: int) -> Array:
        """The sum's distribution, wrapped around; what lies outside the window lands in it, which only adds."""
        pay(40 * length * len(tilted))
        product = np.ones(length // 2 + 1, dtype=complex)
        for mass, cells, count in zip(tilted, self.cells, self.counts, strict=True):
            step = np.zeros(length)
            step[cells] = mass
            product *= rfft(step) ** count
        return np.asarray(irfft(product, length))


def epsilon(tails: Sequence[Tail], delta: float, high: float) -> float:
    """Smallest ε ≤ ``high``, a bound already, with δ(ε) ≤ ``delta`` in every direction of a run.

    At a δ near the rounding of a plain transform the digits of ε would be those of one machine (rounding.py); these are not.
    """
    for _ in range(3):
        sides = [tail.near(high) for tail in tails]
        found = grids.invert(partial(_worst, sides), delta, high)
        if found > 0.99 * high:
            break
        high = found
    return min(found, high)


def _worst(sides: Sequence[Callable[[float], float]], epsilon: float) -> float:
    return max(delta(epsilon) for delta in sides)


def _log_sum(values: npt.NDArray[np.floating[Any]]) -> float:
    """log Σ e^values."""
    peak = float(values.max())
    return peak + math.log(float(np.exp(values - peak).sum()))
