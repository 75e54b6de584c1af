"""Rényi divergences of a run, by quadrature, and the ε they give; for what is stated in them, not for certificates.

Private selection (Papernot and Steinke 2022) is a theorem about Rényi divergences, and the papers' claims were computed
with them. A run's own ε comes from :mod:`taciturn.privacy.accounting.accountant`, which is smaller. One step is the
dominating pair of pairs.py, so substitution is covered like add and remove; Rényi divergences are mixtures of hockey sticks,
so a pair that dominates dominates them too, and they add up over steps, chosen adaptively or not (Mironov 2017, Prop. 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import logsumexp

from taciturn.errors import UsageError
from taciturn.privacy.accounting.accountant import Profile
from taciturn.privacy.accounting.effort import pay
from taciturn.privacy.accounting.events import PoissonGaussian, Relation
from taciturn.privacy.accounting.pairs import Array, Mixture, Pair, dominating, loss
from taciturn.privacy.accounting.tradeoff import POINTS, Curve, floor_of

ORDERS = tuple(
    float(order) for order in np.unique(np.concatenate((1 + np.geomspace(1e-2, 10, 90), np.geomspace(11, 1024, 60))))
)
_POINTS = 1 << 18  # most nodes of one quadrature; orders that would need more are left out
_REACH = 14  # standard deviations kept on either side: e^{-98} of the integrand is left out
_ROUNDING = 2e-13  # on every logarithm of an integral: a sum of up to 2^18 doubles


@dataclass(frozen=True, slots=True)
class RenyiCurve:
    """D_α in nats, the worse direction, at each order α > 1; an upper bound up to quadrature, whose error is added."""

    orders: tuple[float, ...]
    values: tuple[float, ...]

    def epsilon(self, delta: float) -> float:
        """Smallest ε these orders give at ``delta`` (Canonne, Kamath, Steinke 2020, Prop. 12).

        >>> from taciturn.privacy.accounting.accountant import compose
        >>> run = compose({PoissonGaussian(0.01, 1.0): 1000}, "add-remove")
        >>> round(renyi(run).epsilon(1e-5), 2)  # 1.83 by privacy loss distributions
        2.1
        """
        if isinstance(delta, bool) or not 0 < delta < 1:
            raise UsageError(f"delta: expected a probability in (0, 1), found {delta!r}")
        order, value = np.array(self.orders), np.array(self.values)
        found = value + np.log1p(-1 / order) - (math.log(delta) + np.log(order)) / (order - 1)
        return max(0.0, float(found.min()))

    def delta(self, epsilon: float) -> float:
        """Smallest δ these orders give at ``epsilon``, from the same inequality."""
        order, value = np.array(self.orders), np.array(self.values)
        logs = (order - 1) * (value - epsilon) + (order - 1) * np.log1p(-1 / order) - np.log(order)
        return float(np.exp(min(0.0, float(logs.min()))))

    def curve(self, delta: float) -> Curve:
        """Points of δ(ε), four decades further than ``delta``."""
        floor = floor_of(delta)
        epsilons = np.linspace(0.0, self.epsilon(floor), POINTS)
        return Curve(epsilons, np.array([self.delta(float(each)) for each in epsilons]), floor)


def renyi(profile: Profile, orders: tuple[float, ...] = ORDERS) -> RenyiCurve:
    """The Rényi curve of a run, from the direct formula ∫ p^α q^{1−α} of each step's dominating pair.

    Orders whose integrals are too wide (small noise, high order) are left out. A curve with a ``reason`` has none.
    """
    if any(not 1 < order < math.inf for order in orders):
        raise UsageError("orders: expected finite numbers above 1")
    if profile.reason is not None:
        return RenyiCurve(orders, (math.inf,) * len(orders))
    directions: list[Array] = [np.zeros(len(orders))]
    for event, count in profile.counts:
        steps = _step(event, profile.relation, profile.group, orders)
        directions = [
            (directions[min(d, len(directions) - 1)] + count * np.array(steps[min(d, len(steps) - 1)]))
            for d in range(max(len(directions), len(steps)))
        ]
    worst = np.max(directions, axis=0)
    keep = np.isfinite(worst)
    return RenyiCurve(tuple(np.array(orders)[keep].tolist()), tuple(worst[keep].tolist()))


@lru_cache(maxsize=256)
def _step(event: PoissonGaussian, relation: Relation, group: int, orders: tuple[float, ...]) -> list[tuple[float, ...]]:
    """D_α of one step for each direction; ∞ where the quadrature would be too wide."""
    return [_divergences(pair, orders) for pair in dominating(event, relation, group, 0.0)]


def _divergences(pair: Pair, orders: tuple[float, ...]) -> tuple[float, ...]:
    """(log ∫ p^α q^{1−α})/(α − 1). The integrand is analytic in a strip and falls like a Gaussian, so the trapezoidal rule
    errs by e^{−2π·width/h}: below 1e-16 for h ≤ σ/16 and h ≤ σ²/2k (the zeros of p and q lie πσ²/k off the line)."""
    sigma, most = pair.sigma, float(max(pair.upper.j[-1], pair.lower.j[-1]))
    h = min(sigma / 16, sigma**2 / (2 * max(most, 1.0)))
    low = -_REACH * sigma - most
    ends = [min((2 * order - 1) * most + _REACH * sigma, low + _POINTS * h) for order in orders]
    pay(int((max(ends) - low) / h) * (len(orders) + 1))
    x = np.arange(low, max(ends) + h, h)
    still = Mixture(np.zeros(1), np.zeros(1))
    up, ratio = loss(Pair(pair.upper, still, sigma), x)[0], loss(pair, x)[0]  # log p/N(0), log p/q
    base = -0.5 * (x / sigma) ** 2 + math.log(h / (sigma * math.sqrt(2 * math.pi)))
    found = []
    for order, end in zip(orders, ends, strict=True):
        if (2 * order - 1) * most + _REACH * sigma > end:
            found.append(math.inf)
            continue
        n = int((end - low) / h) + 2
        log_integral = float(logsumexp(base[:n] + up[:n] + (order - 1) * ratio[:n]))
        found.append((max(log_integral, 0.0) + _ROUNDING) / (order - 1))
    return tuple(found)
