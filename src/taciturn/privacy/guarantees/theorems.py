"""Theorem 8 of CRT (Zhao, Li, Wang 2022) in the form that holds; docs/guarantees.md has the proofs.

Every function takes plain numbers and profiles. Nothing here knows what was trained.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from taciturn.errors import UsageError
from taciturn.exact_bounds import finite_upper, upper
from taciturn.privacy.accounting.accountant import Profile


def _probability(name: str, value: float, *, closed: bool = True) -> float:
    inside = 0 <= value <= 1 if closed else 0 < value < 1
    if isinstance(value, bool) or not inside:
        raise UsageError(f"{name}: expected a probability, found {value!r}")
    return float(value)


# Recall from labels


def recall_bound(misses: int, labelled: int, confidence: float = 0.95, population: int | None = None) -> float:
    """Upper bound of a miss rate: ``misses`` of ``labelled`` secrets, one-sided; Clopper and Pearson's, or, where they are
    drawn without replacement from ``population`` or fewer, the hypergeometric one (guarantees.md §3.3).

    The bound is wrong for at most a share 1 − ``confidence`` of random label samples. No labels: 1.

    >>> round(recall_bound(20, 200), 3), round(recall_bound(0, 200), 4), recall_bound(0, 60, population=60)
    (0.142, 0.0149, 0.0)
    """
    _probability("confidence", confidence, closed=False)
    if not 0 <= misses <= labelled:
        raise UsageError(f"misses: expected between 0 and {labelled} labelled secrets, found {misses}")
    if population is None:
        return upper(misses, labelled, confidence)
    return finite_upper(misses, labelled, population, confidence)


def labels_needed(miss_rate: float, misses: int = 0, confidence: float = 0.95) -> int:
    """Fewest labelled secrets, ``misses`` of them missed, that certify a miss rate of at most ``miss_rate``.

    >>> labels_needed(8e-5)
    37446
    """
    _probability("miss_rate", miss_rate, closed=False)
    high = misses + 1
    while recall_bound(misses, high, confidence) > miss_rate:
        high *= 2
    low = max(misses, high // 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if recall_bound(misses, middle, confidence) <= miss_rate else (middle, high)
    return high


# Groups (8.2)


def group_blackbox_delta(epsilon: float, delta: float, k: int) -> float:
    """δ at kε for k changes, each (ε, δ): the geometric sum δ(e^{kε} − 1)/(e^ε − 1); tight for black boxes.

    One or more says nothing; ∞ stands for a sum too large for a float.
    """
    if epsilon == 0:
        return k * delta
    if (k - 1) * epsilon > 700:
        return math.inf
    return delta * math.exp((k - 1) * epsilon) * (math.expm1(-k * epsilon) / math.expm1(-epsilon))


def group_blackbox_epsilon(profile: Profile, k: int, delta: float) -> float:
    """Smallest kε at which the whole curve of one change, used as a black box, gives ``delta`` for k changes."""
    if k == 1:
        return profile.epsilon(delta)

    def enough(epsilon: float) -> bool:
        single = profile.delta(epsilon)
        if single == 0:
            return True
        log_delta = math.log(single) + (k - 1) * epsilon
        log_delta += math.log(k) if epsilon == 0 else math.log(math.expm1(-k * epsilon) / math.expm1(-epsilon))
        return log_delta <= math.log(delta)

    single = profile.epsilon(delta)
    if math.isinf(single):
        return math.inf
    return k * _smallest(enough, single, 1e-5)


def _smallest(enough: Callable[[float], bool], start: float, relative: float) -> float:
    """Smallest number ≥ 0, to ``relative`` and never too small, that is ``enough``; ∞ if none below 2^60 × start."""
    if enough(0.0):
        return 0.0
    low, high = 0.0, max(start, 1e-6)
    for _ in range(60):
        if enough(high):
            break
        low, high = high, 2 * high
    else:
        return math.inf
    while high - low > relative * high and high > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class GroupBound:
    """ε for k changed records: through the black box, through the tight pair, and the smaller of the two."""

    k: int
    blackbox: float
    tight: float

    @property
    def epsilon(self) -> float:
        return min(self.blackbox, self.tight)


def group(profile: Profile, k: int, delta: float) -> GroupBound:
    """Both bounds of Theorem 8.2 for k changed records; ``profile`` is the curve of one."""
    return GroupBound(k, group_blackbox_epsilon(profile, k, delta), profile.for_group(k).epsilon(delta))


# Bayesian confidentiality (8.3)


@dataclass(frozen=True, slots=True)
class BayesianBound:
    """ε at ``delta`` when the secret is drawn from μ; ``forward`` and ``reverse`` are the two directions."""

    forward: float
    reverse: float
    delta: float

    @property
    def epsilon(self) -> float:
        return max(self.forward, self.reverse)


def averaged(detected: Profile, missed: Profile, m: float, delta: float) -> tuple[float, float]:
    """(ε, δ) of a secret that is missed with probability at most m, one coin for the whole run (guarantees.md §4.1b).

    detected, missed: the curves of the two cases. By joint convexity δ(ε) ≤ (1 − m)·δ_detected(ε) + m·δ_missed(ε). Where
    the missed case has no curve at all its δ is 1, and the statement is made at δ if m < δ, else at δ + m.
    """
    _probability("miss rate", m, closed=True)
    _probability("delta", delta, closed=False)
    if missed.reason is not None:
        total = delta if m < delta else min(delta + m, 1 - 1e-12)
        rest = (total - m) / (1 - m) if m < 1 else 0.0
        return (detected.epsilon(min(rest, 1 - 1e-12)) if rest > 0 else math.inf), total

    def enough(epsilon: float) -> bool:
        return (1 - m) * detected.delta(epsilon) + m * missed.delta(epsilon) <= delta

    low, high = 0.0, missed.epsilon(delta)
    if not math.isfinite(high) or enough(low):
        return (low if enough(low) else high), delta
    while high - low > 1e-4 * max(1.0, high):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high, delta


def bayesian_simple(epsilon: float, gamma: float) -> float:
    """The paper's closed form log(1 + γ(e^ε − 1)), which goes with δ scaled by γ.

    >>> round(bayesian_simple(1.0, 0.1), 4)
    0.1586
    """
    _probability("gamma", gamma)
    if gamma == 0 or epsilon == 0:
        return 0.0
    if epsilon > 600:
        return epsilon + math.log(gamma + (1 - gamma) * math.exp(-epsilon))
    return math.log1p(gamma * math.expm1(epsilon))


def bayesian_delta_reverse(profile: Profile, epsilon: float, gamma: float, delta2: float) -> float:
    """δ of the masked run against the run with x ~ μ, at ``epsilon``: 0 once ε ≥ −log(1 − γ)."""
    kept = 1 - math.exp(epsilon) * (1 - gamma)
    if kept <= 0:
        return 0.0
    seen = (gamma - delta2) * math.exp(epsilon)
    return kept * (profile.delta(math.log(seen / kept)) if seen > 0 else 1.0)


def bayesian(profile: Profile, gamma: float, delta2: float, delta: float) -> BayesianBound:
    """Theorem 8.3 inverted over the composed curve, both directions.

    Args:
        profile: substitution curve of one record.
        gamma: (bound on the) probability that π misses x ~ μ.
        delta2: (bound on the) probability that π and π_c both miss it; spent from ``delta``.
        delta: total δ. ε = ∞ unless it exceeds ``delta2``.
    """
    _probability("gamma", gamma)
    _probability("delta2", delta2)
    _probability("delta", delta, closed=False)
    if delta2 > gamma:
        raise UsageError(f"delta2: what both policies miss ({delta2}) cannot exceed what the first misses ({gamma})")
    if gamma <= delta:  # a miss is rarer than δ: the coin alone pays for it
        return BayesianBound(0.0, 0.0, delta)
    if delta2 >= delta:
        return BayesianBound(math.inf, math.inf, delta)
    forward = bayesian_simple(profile.epsilon((delta - delta2) / gamma), gamma)

    def enough(epsilon: float) -> bool:
        return bayesian_delta_reverse(profile, epsilon, gamma, delta2) <= delta

    vanishes = -math.log1p(-gamma) if gamma < 1 else profile.epsilon(delta)
    reverse = min(_smallest(enough, vanishes, 1e-5), vanishes) if gamma < 1 else _smallest(enough, vanishes, 1e-5)
    return BayesianBound(forward, reverse, delta)
