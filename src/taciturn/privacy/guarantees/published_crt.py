"""What CRT's paper says its training gains by redaction (Zhao, Li, Wang 2022, section 5.4 and Figure 6): published claims.

The paper fixes ε′ of DP-SGD at δ = 8e-5 and shows Bayesian ε, at the same δ, against the screening policy's miss rate γ.
Its Theorem 8.3 turns (ε′, δ) into (log(1 + γ(e^{ε′} − 1)), γδ); to stay at δ, ε′ is read at δ/γ. At ε′ = 1, γ = .1 this
gives .116, the .12 of the text, where DP-SGD is accounted by Rényi divergences under add and remove. That ε′ is not the
one Definition 2 asks for: a secret that becomes ``<MASK>`` substitutes a record (docs/guarantees.md §1).

    ε′ = 1, γ = .1, δ = 8e-5                                   q = .1, T = 100    q = .001, T = 20,000
    as published: Rényi, add and remove                         .116                .102
    exact, add and remove                                       .111                .109
    exact, substitution, noise for ε′ = 1 by add and remove     .354                .215
    closed form log(1 + γ(e − 1)), which belongs to γδ          .159                .159
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from scipy.optimize import brentq

from taciturn.errors import GuaranteeError, UsageError
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.privacy.accounting.renyi import renyi
from taciturn.privacy.guarantees.theorems import bayesian_simple


@dataclass(frozen=True, slots=True)
class AmplificationClaim:
    """One point of Figure 6. ``read`` is DP-SGD's ε at δ/γ; the status is always ``published-claim``."""

    epsilon: float
    delta: float
    gamma: float
    read: float
    noise_multiplier: float
    status: str = "published-claim"


def published_epsilon(rate: float, noise_multiplier: float, steps: int, delta: float) -> float:
    """DP-SGD's ε as such papers print it: Rényi divergences, add and remove. An upper bound of the wrong relation."""
    return renyi(compose({PoissonGaussian(rate, noise_multiplier): steps}, "add-remove")).epsilon(delta)


def published_noise(epsilon: float, rate: float, steps: int, delta: float) -> float:
    """σ for which :func:`published_epsilon` is ``epsilon``, to 1e-6."""
    if isinstance(epsilon, bool) or not 0 < epsilon < math.inf:
        raise UsageError(f"epsilon: expected a positive number, found {epsilon!r}")

    def excess(sigma: float) -> float:
        return published_epsilon(rate, sigma, steps, delta) - epsilon

    low = high = 1.0
    while excess(high) > 0:
        low, high = high, 2 * high
        if high > 1e4:
            raise GuaranteeError(f"epsilon {epsilon}: no noise up to 1e4 × the clipping norm spends as little")
    while low == high or (low > 0.1 and excess(low) <= 0):
        low, high = low / 2, low
    return float(brentq(excess, low, high, xtol=1e-6)) if excess(low) > 0 else low


def published_bayesian(epsilon: float, gamma: float, delta: float, rate: float, steps: int) -> AmplificationClaim:
    """Bayesian ε at ``delta`` as published, for DP-SGD of ``epsilon`` at ``delta`` and a policy that misses ``gamma``.

    >>> round(published_bayesian(1.0, 0.1, 8e-5, rate=0.1, steps=100).epsilon, 3)
    0.116
    """
    return next(iter(figure6(epsilon, [gamma], delta, rate, steps)))


def figure6(epsilon: float, gammas: Iterable[float], delta: float, rate: float, steps: int) -> list[AmplificationClaim]:
    """A curve of Figure 6: one claim for each miss rate, the noise set once. The paper prints neither rate nor steps."""
    sigma = published_noise(epsilon, rate, steps, delta)
    claims = []
    for gamma in gammas:
        if not 0 < gamma <= 1:
            raise UsageError(f"gamma: expected a miss rate in (0, 1], found {gamma!r}")
        read = published_epsilon(rate, sigma, steps, delta / gamma) if delta < gamma else 0.0
        claims.append(AmplificationClaim(bayesian_simple(read, gamma), delta, gamma, read, sigma))
    return claims
