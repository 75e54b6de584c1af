"""What UeDP's Algorithm 1 as printed really gives, beside what its paper says it gives.

The printed algorithm clips per *user* (bound β) and samples users, then entities. Removing user u' and entity e'
changes the update of every holder of e', by up to 2β each, so the paper's Theorem 1 (sensitivity β for one user, rate
q_u·q_e) does not hold (docs/guarantees.md, UeDP). For an entity held by at most K users besides u', two bounds do:

* ``chain``: through D0, the data without u' and all K holders. D loses K+1 users, D' loses K; the two curves of
  deletions add up by the triangle inequality of hockey sticks, and δ is split so as to make the sum smallest.
* ``direct``: K+1 users out, K users (the same, without e') in: the pair Bin(K+1, q_u) against Bin(K, q_u) of
  Schuchardt et al. 2024, Theorem 3.8. One curve for both, so it is smaller.

:func:`published_claim` is the paper's own number, for reproduction: a published claim, never a guarantee.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, logsumexp, xlog1py, xlogy

from taciturn.errors import UsageError
from taciturn.privacy.accounting.accountant import Profile
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.privacy.accounting.user_entity import Exchange, Units

_SPLITS = 12  # tries at splitting δ; ε is flat around the best split


@dataclass(frozen=True, slots=True)
class PublishedBound:
    """ε at ``delta`` of Algorithm 1 as printed, for entities of at most ``holders`` other users; both are proved.

    forward, reverse: the chain's ε for M(D) against M(D') and for M(D') against M(D).
    """

    holders: int
    delta: float
    forward: float
    reverse: float
    direct: float

    @property
    def chain(self) -> float:
        return max(self.forward, self.reverse)

    @property
    def epsilon(self) -> float:
        return min(self.chain, self.direct)


def _through(first: Profile, second: Profile, delta: float) -> float:
    """Smallest ε₁ + ε₂ with δ₁ + e^{ε₁}·δ₂ ≤ δ, δ₁ on the ``first`` curve and δ₂ on the ``second``.

    H_{e^{ε₁+ε₂}}(P‖R) ≤ H_{e^{ε₁}}(P‖Q) + e^{ε₁}·H_{e^{ε₂}}(Q‖R).
    """
    best = math.inf

    def total(logit: float) -> float:
        nonlocal best
        share = 1 / (1 + math.exp(-logit))
        one = first.epsilon(share * delta)
        left = (1 - share) * delta * math.exp(-min(one, 800.0))
        found = one + second.epsilon(left) if left > 1e-290 else math.inf
        best = min(best, found)
        return min(found, 1e12)

    if not second.counts:
        return first.epsilon(delta)
    if not first.counts:
        return second.epsilon(delta)
    minimize_scalar(total, bounds=(-4.0, 6.0), method="bounded", options={"maxiter": _SPLITS})
    return best


def published_bound(
    holders: int, user_rate: float, noise_multiplier: float, steps: int, delta: float
) -> PublishedBound:
    """A bound that holds for Algorithm 1 as printed, noise ``noise_multiplier`` × β on the sum of the users' updates.

    Args:
        holders: K ≥ 0, how many users besides the removed one hold the removed entity at most.
        user_rate: q_u. Entity coins and weights ≤ 1 only shrink an update, and are not counted.

    The chain needs both orders of the curves: δ_{K+1} + e^{ε_{K+1}}·δ_K forward, δ_K + e^{ε_K}·δ_{K+1} in reverse.
    """
    users = Units((user_rate,), noise_multiplier, steps)
    more, fewer = users.profile(holders + 1), users.profile(holders)
    forward, reverse = _through(more, fewer, delta), _through(fewer, more, delta)
    if steps == 0:
        return PublishedBound(holders, delta, 0.0, 0.0, 0.0)
    direct = exchanged(holders, user_rate, noise_multiplier, steps).epsilon(delta)
    return PublishedBound(holders, delta, forward, reverse, direct)


def exchanged(holders: int, user_rate: float, noise_multiplier: float, steps: int) -> Exchange:
    """The law of the direct bound."""
    return Exchange(((holders + 1, user_rate),), ((holders, user_rate),), noise_multiplier, steps)


@dataclass(frozen=True, slots=True)
class PublishedClaim:
    """The ε that the paper's procedure prints. Its status is always ``published-claim``: nothing proves it."""

    epsilon: float
    delta: float
    rate: float
    order: int
    status: str = "published-claim"


def published_claim(
    user_rate: float,
    entity_rate: float,
    sensitive_share: float,
    scale: float,
    steps: int,
    delta: float,
    largest_order: int = 64,
) -> PublishedClaim:
    """ε as the UeDP paper's curves have it: moments accountant (Abadi et al. 2016, Theorem 2), λ ≤ 64.

    ε = min_λ (T·α(λ) + ln 1/δ)/λ at q = q_u·q_e·``sensitive_share`` (the share of sentences with a sensitive entity)
    and noise ``scale`` z. As λ stops at 64, no curve falls below ln(1/δ)/64, .18 at δ = 1e-5, where the published
    values sit. User-level curves of the paper are ``entity_rate`` = ``sensitive_share`` = 1, its estimator f_E has
    ``sensitive_share`` = 1. The printed values come out at q_u = 50/946 (CONLL-2003), 500/7536 (AG) and 100/1592 (SEC),
    whole numbers of the users of its Table II, and not at the .05 its text names:

        T = 50, z = 2 (f_E+, f_E, user)      printed              computed
        CONLL-2003                           .52, .62, 1.18       .519, .613, 1.176
        AG                                   .50, .75, 1.48       .501, .746, 1.473
        SEC                                  .40, .71, 1.40       .399, .709, 1.394
        SEC, T = 500                         .19, .24, .26, .73, .81, user 4.08
                                             .186, .244, .261, .731, .810, user 4.080

    >>> round(published_claim(0.05, 0.5, 0.01, 2.5, 100, 1e-5).epsilon, 2)
    0.18
    """
    rate = user_rate * entity_rate * sensitive_share
    for name, value in (("entity_rate", entity_rate), ("sensitive_share", sensitive_share)):
        if not 0 < value <= 1:
            raise UsageError(f"{name}: expected a share in (0, 1], found {value!r}")
    PoissonGaussian(user_rate, scale)
    if not 0 < delta < 1:
        raise UsageError(f"delta: expected a probability in (0, 1), found {delta!r}")
    values = [
        (steps * _log_moment(rate, scale, order) - math.log(delta)) / order for order in range(1, largest_order + 1)
    ]
    best = int(np.argmin(values))
    return PublishedClaim(values[best], delta, rate, best + 1)


def _log_moment(rate: float, scale: float, order: int) -> float:
    """α(λ) = log E_{N(0)}[(dP/dN(0))^{λ+1}], P = (1−q)N(0) + qN(1); the larger of the two (Mironov et al. 2019)."""
    top = order + 1
    j = np.arange(top + 1)
    choose = gammaln(top + 1) - gammaln(j + 1) - gammaln(top - j + 1)
    return float(logsumexp(choose + xlogy(j, rate) + xlog1py(top - j, -rate) + j * (j - 1) / (2 * scale**2)))
