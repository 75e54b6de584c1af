"""What a privacy curve says of every attack at once: the trade-off curve, one μ for it, and one sentence.

A curve is a list of points (ε_i, δ_i), each a bound of both hockey-stick divergences. Whoever decides between the two
worlds and raises false alarms at rate α detects at most

    min_i min(δ_i + e^{ε_i}·α,  1 − e^{−ε_i}·(1 − δ_i − α))

(Dong, Roth, Su 2022, Proposition 2.5, for each point), whatever points there are: leaving some out only raises it. μ of
Gaussian DP (their Definition 2.6) is the least whose curve G_μ lies nowhere above the convex polygon 1 − that bound. As G_μ
is convex, it is enough to look at the polygon's corners, so no grid of α is involved (docs/guarantees.md §1.1). Beyond the
last point nothing is said: μ comes with the δ down to which it holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri, ndtri_exp

from taciturn.privacy.accounting.pairs import Array

POINTS = 512
FALSE_ALARMS = 0.01
"""The rate of the sentence: at 1 % false alarms an attack finds at most so many."""
DIGITS = 4
_MARGIN = 1e-9  # relative, on μ: what doubles lose on the way from a curve's points to its corners


@dataclass(frozen=True, slots=True)
class Curve:
    """``deltas[i]`` bounds both directions at ``epsilons[i]`` ≥ 0 (ascending).

    floor: δ below which the points are too coarse to speak. whole: a μ that is known to hold for all of the curve, down to
    δ = 0 (that of the same steps on full batches); ∞ where none is.
    """

    epsilons: Array
    deltas: Array
    floor: float
    whole: float = math.inf

    def at(self, epsilons: Array) -> Array:
        """Bounds between the points: chords in e^ε, in which every privacy curve is convex; behind the last, its δ."""
        right = np.clip(np.searchsorted(self.epsilons, epsilons), 1, max(len(self.epsilons) - 1, 1))
        if len(self.epsilons) == 1:
            return np.where(epsilons < self.epsilons[0], 1.0, self.deltas[0])
        low, high = self.epsilons[right - 1], self.epsilons[right]
        share = _share(low, np.clip(epsilons, low, high), high)
        inside = (1 - share) * self.deltas[right - 1] + share * self.deltas[right]
        return np.where(epsilons < self.epsilons[0], 1.0, inside)

    def detected(self, false_alarms: Array) -> Array:
        """The largest true positive rate at each rate of false alarms, whichever of the two worlds raises the alarm."""
        alpha = np.asarray(false_alarms, dtype=float)[..., None]
        with np.errstate(divide="ignore"):
            up = self.deltas + np.exp(np.minimum(self.epsilons + np.log(alpha), 1.0))
        complement = 1 - np.exp(-self.epsilons) * (1 - self.deltas - alpha)
        found = np.minimum(up, complement).min(axis=-1)
        best = np.minimum(found, gaussian(self.whole, alpha[..., 0]))
        return np.asarray(np.clip(best, alpha[..., 0], 1.0))

    def mu(self, floor: float) -> float:
        """The least μ with G_μ below the polygon from δ = 1 down to ``floor``; ∞ if the points do not reach that far."""
        enough = np.flatnonzero(self.deltas <= floor)
        if not len(enough) or self.deltas[enough[0]] >= 1:
            return math.inf
        epsilons, deltas = _hull(self.epsilons[: enough[0] + 1], self.deltas[: enough[0] + 1])
        corner = math.log1p(-deltas[0]) - float(np.logaddexp(0.0, epsilons[0]))  # where the first line meets its mirror
        found = -2 * float(ndtri_exp(corner))
        if len(epsilons) > 1:
            step, fall = np.diff(epsilons), -np.diff(deltas)
            with np.errstate(divide="ignore"):
                alpha = np.log(fall) - epsilons[1:] - np.log(-np.expm1(-step))
            beta = np.clip(1 - deltas[:-1] - fall / np.expm1(np.minimum(step, 700)) - 1e-15, 0, 1)
            found = max(found, float(np.max(-ndtri_exp(alpha) - ndtri(beta))))
        return max(0.0, found) * (1 + _MARGIN)


NOTHING = Curve(np.zeros(1), np.zeros(1), 0.0, 0.0)
"""Of two worlds that are the same."""


def floor_of(delta: float, rounding: float = 0.0) -> float:
    """Down to which δ a μ is stated beside an (ε, ``delta``) claim: a power of ten, four decades below it where the rounding
    of the transforms lets one look so far.

    >>> floor_of(1e-5), floor_of(8e-5), floor_of(1e-5, 3e-10)
    (1e-09, 1e-08, 1e-08)
    """
    least = max(1e-10, 1e-4 * delta, 10 * rounding)
    return min(delta, float(f"1e{math.ceil(math.log10(least) - 1e-9)}"))


def gaussian(mu: float, false_alarms: Array) -> Array:
    """1 − G_μ: what the best test between N(0, 1) and N(μ, 1) detects."""
    return np.asarray(ndtr(ndtri(false_alarms) + mu)) if math.isfinite(mu) else np.ones_like(false_alarms)


def combined(first: Curve, second: Curve, how: Callable[[Array, Array], Array]) -> Curve:
    """Two curves as one, ``how`` joining what they say at every ε that either has: the larger, or a mixture over a coin
    that both worlds share."""
    epsilons = np.union1d(first.epsilons, second.epsilons)
    deltas = how(first.at(epsilons), second.at(epsilons))
    return Curve(epsilons, deltas, max(first.floor, second.floor), max(first.whole, second.whole))


def _share(low: Array, at: Array, high: Array) -> Array:
    """(e^at − e^low) / (e^high − e^low)."""
    span = np.maximum(high - low, 1e-300)
    return np.asarray(np.exp(at - high) * np.expm1(low - at) / np.expm1(-span))


def _hull(epsilons: Array, deltas: Array) -> tuple[Array, Array]:
    """The points on the lower convex hull in (e^ε, δ), without those that say nothing (δ ≥ 1): true curves are convex there,
    so a bound above the chord of two others adds nothing."""
    kept: list[int] = []
    for k in np.flatnonzero(deltas < 1):
        while len(kept) > 1:
            i, j = kept[-2], kept[-1]
            share = float(_share(epsilons[i], epsilons[j], epsilons[k]))
            if deltas[j] < (1 - share) * deltas[i] + share * deltas[k]:
                break
            kept.pop()
        if kept and deltas[k] >= deltas[kept[-1]]:
            continue
        kept.append(int(k))
    return epsilons[kept], deltas[kept]


@dataclass(frozen=True, slots=True)
class TradeOff:
    """What any attack on a claim can do; what is printed of it is rounded up.

    mu: μ of Gaussian DP at every δ from ``down_to_delta`` up (0: the whole curve). detected: the largest share that an
    attack finds at the rate ``false_alarms``, from the curve itself, which says less than μ would. Both as computed, so that
    two machines differ in their last digits and not in a rounded one (rounding.py).
    """

    mu: float
    down_to_delta: float
    false_alarms: float
    detected: float

    @staticmethod
    def of(curve: Curve, epsilon: float, delta: float) -> TradeOff:
        """Of a claim (``epsilon``, ``delta``) with this curve."""
        epsilons, order = np.unique(np.append(curve.epsilons, epsilon), return_index=True)
        deltas = np.append(curve.deltas, delta)[order]
        deltas[epsilons >= epsilon] = np.minimum(deltas[epsilons >= epsilon], delta)
        known = Curve(epsilons, deltas, curve.floor, curve.whole)
        floor = curve.floor if known.mu(curve.floor) < math.inf else delta
        mu = known.mu(floor)
        if shortened(curve.whole) <= shortened(mu):  # equal but for what is printed: the one that holds everywhere
            mu, floor = curve.whole, 0.0
        return TradeOff(mu, floor, FALSE_ALARMS, float(known.detected(np.array([FALSE_ALARMS]))[0]))

    @property
    def limits(self) -> bool:
        """Whether the sentence says that an attack misses something, to the digits that are printed."""
        return self._thousandths() < 1

    def to_json(self) -> dict[str, Any]:
        return {
            "mu": "inf" if self.mu == math.inf else self.mu,
            "down_to_delta": self.down_to_delta,
            "false_alarms": self.false_alarms,
            "detected": self.detected,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> TradeOff:
        """Inverse of :meth:`to_json`; TypeError or ValueError on anything else."""
        mu = value.get("mu")
        fields = {**value, "mu": math.inf if mu == "inf" else mu}
        if any(isinstance(each, bool) or not isinstance(each, int | float) for each in fields.values()):
            raise ValueError("trade_off: expected numbers")
        return TradeOff(**fields)

    def label(self) -> str:
        """μ with the δ it reaches down to."""
        number = "∞" if self.mu == math.inf else f"{shortened(self.mu):.{DIGITS}g}"
        return f"μ = {number}" + (
            f" at every δ from {shortened(self.down_to_delta, 3):g} up" if self.down_to_delta else ""
        )

    def alarms(self) -> str:
        """``false_alarms`` in per cent."""
        return f"{100 * self.false_alarms:g} %"

    def share(self) -> str:
        """``detected`` in per cent, rounded up."""
        return f"{100 * self._thousandths():.3g} %"

    def _thousandths(self) -> float:
        return min(1.0, math.ceil(1000 * self.detected - 1e-9) / 1000)


def shortened(value: float, digits: int = DIGITS) -> float:
    """The next number of so many digits; one that is so short already stays (closed forms are exact to a few ulp).

    >>> shortened(1.41421356), shortened(2.0000000000000004), shortened(0.014947, 3), shortened(1e-8, 3)
    (1.415, 2.0, 0.015, 1e-08)
    """
    if not 0 < value < math.inf:
        return value
    exponent = math.floor(math.log10(value)) - digits + 1
    return float(f"{math.ceil(value * 10.0**-exponent * (1 - 1e-13))}e{exponent}")
