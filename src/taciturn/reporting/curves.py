"""ε as a function of δ and of the policy's miss rate, recomputed from a run's ledger."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from taciturn.privacy.accountant import Profile
from taciturn.privacy.claims import Cost
from taciturn.privacy.theorems import bayesian

DELTAS = tuple(10.0 ** (-k / 2) for k in range(4, 21))
"""1e-2 down to 1e-10, two to a decade."""

GAMMAS = tuple(10.0 ** (-k / 4) for k in range(13))
"""1 down to 1e-3, four to a decade."""

Points = list[tuple[float, float]]


def epsilon_delta(cost: Cost, deltas: Sequence[float] = DELTAS) -> Points:
    """(δ, ε) points, without those where ε is ∞."""
    return _finite((delta, cost.epsilon(delta)) for delta in deltas)


def epsilon_gamma(profile: Profile, delta: float, delta2: float, gammas: Sequence[float] = GAMMAS) -> Points:
    """(γ, ε) points of the Bayesian bound (docs/guarantees.md, Theorem 8.3), without those where ε is ∞.

    γ runs over miss rates of the policy above δ₂, the rate at which it and the conservative policy both miss.
    """
    return _finite((gamma, bayesian(profile, gamma, delta2, delta).epsilon) for gamma in gammas if gamma > delta2)


def _finite(points: Iterable[tuple[float, float]]) -> Points:
    return [(x, y) for x, y in points if math.isfinite(y)]
