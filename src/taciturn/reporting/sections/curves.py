"""ε as a function of δ, of how many change at once, and of the policy's miss rate, and what attacks can find at most;
recomputed from a run's ledger."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn.privacy.accounting.accountant import Profile, compose
from taciturn.privacy.accounting.events import Event, NonPrivate, Relation, SelectiveGaussian, TwoLevelGaussian
from taciturn.privacy.accounting.tradeoff import Curve, TradeOff, gaussian
from taciturn.privacy.guarantees.claims import Cost, Curved, epsilon_spent
from taciturn.privacy.guarantees.claims import cost as composed
from taciturn.privacy.guarantees.theorems import bayesian

DELTAS = tuple(10.0**-k for k in range(2, 11))
"""1e-2 down to 1e-10."""

GAMMAS = (1.0, 0.5, 0.25, 0.1, 0.05, 0.025, 0.01, 0.005, 0.002, 0.001)

SIZES = (1, 2, 3, 5, 8, 12, 20, 32, 50, 80, 130, 200)
"""How many change at once; a curve stops behind the first ε above ``ENOUGH``."""

ALARMS = (0.0, *(float(f"{rate:.3g}") for rate in np.geomspace(1e-4, 0.5, 38)), *(k / 20 for k in range(11, 21)))
"""Rates of false alarms that a trade-off curve is drawn at."""

ENOUGH = 10.0
"""An ε from which on almost nothing is excluded."""

Points = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Spending:
    """ε of a run for what its target is about: the parts that are the same in both worlds cost nothing."""

    counts: Mapping[Event, int]
    relation: Relation
    group: int
    free: tuple[str, ...]

    @staticmethod
    def of(plan: Mapping[str, Any], counts: Mapping[Event, int]) -> Spending:
        """Of a run of ``plan`` (plan.json)."""
        cost = Cost.of(plan, counts)
        return Spending(counts, cost.relation, cost.group, tuple(plan.get("free") or ()))

    @property
    def noised(self) -> bool:
        """Whether a step had noise."""
        return any(n and not isinstance(event, NonPrivate) for event, n in self.counts.items())

    @property
    def detected_only(self) -> bool:
        """Whether the cost is of a secret that the policy detects, and of no other."""
        return bool(self.free) or any(isinstance(event, SelectiveGaussian) for event in self.counts)

    @property
    def grows(self) -> bool:
        """Whether there is a curve in the number of units: the laws of two-level and selective steps are of their own."""
        return not any(isinstance(event, TwoLevelGaussian | SelectiveGaussian) for event in self.counts)

    def epsilon(self, delta: float, group: int | None = None) -> float:
        """At δ, when ``group`` units change at once; ∞ where a step without noise read what a secret may be in."""
        return epsilon_spent(self.counts, self.relation, delta, self.group if group is None else group, self.free)

    def composed(self) -> Curved | None:
        """The noised steps together; None where ε is ∞."""
        return composed(self.counts, self.relation, self.group, self.free)


@dataclass(frozen=True, slots=True)
class Attacks:
    """The most that an attack detects at each of ``ALARMS``: of the run, and of the Gaussian curve that its μ stands for."""

    told: TradeOff
    detected: list[float]
    gaussian: list[float]


def attacks(cost: Spending, delta: float) -> Attacks | None:
    """The trade-off curve of what a run's target is about; None where nothing bounds it."""
    found = cost.composed()
    if found is None:
        return None
    curve: Curve = found.curve(delta)
    told, rates = TradeOff.of(curve, found.epsilon(delta), delta), np.array(ALARMS)
    return Attacks(told, curve.detected(rates).tolist(), gaussian(told.mu, rates).tolist())


def epsilon_delta(cost: Spending, deltas: Sequence[float] = DELTAS) -> Points:
    """(δ, ε) points, without those where ε is ∞."""
    return _finite((delta, cost.epsilon(delta)) for delta in deltas)


def epsilon_k(cost: Spending, delta: float, sizes: Sequence[int] = SIZES) -> Points:
    """(k, ε) points for k that change at once, up to the first above ``ENOUGH`` and the k that the plan is about."""
    points: Points = []
    for k in sorted({*sizes, cost.group}):
        if points and points[-1][1] > ENOUGH and k > cost.group:
            break
        points.append((float(k), cost.epsilon(delta, k)))
    return _finite(points)


def bayesian_curve(counts: Mapping[Event, int], delta: float, delta2: float) -> Callable[[float], float]:
    """γ → ε of the Bayesian bound (docs/guarantees.md, Theorem 8.3) at δ, of which δ₂ pays for what both policies miss."""
    profile: Profile = compose(counts, "substitution")
    return lambda gamma: bayesian(profile, max(gamma, delta2), delta2, delta).epsilon


def epsilon_gamma(curve: Callable[[float], float], delta2: float, gammas: Iterable[float] = GAMMAS) -> Points:
    """(γ, ε) points for miss rates of the policy above δ₂, the rate at which both policies miss; those where ε is finite."""
    return _finite((gamma, curve(gamma)) for gamma in sorted(set(gammas), reverse=True) if gamma > delta2)


def _finite(points: Iterable[tuple[float, float]]) -> Points:
    return [(x, y) for x, y in points if math.isfinite(y)]
