"""How much noise a target needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from taciturn.errors import GuaranteeError, UsageError
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import Event, PoissonGaussian, Relation

SMALLEST, _LARGEST = 1e-2, 1e5
_CLOSE = 5e-4


def _up(value: float) -> float:
    """Rounded up to six significant digits: readable, and on the safe side."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 5)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.6g}")


def noise_multiplier(
    epsilon: float,
    delta: float,
    rate: float,
    steps: int,
    relation: Relation,
    beside: Mapping[Event, int] = MappingProxyType({}),
) -> float:
    """Smallest σ, to 1e-3, for which ``steps`` Poisson steps at ``rate`` spend at most ``epsilon`` at ``delta``, together
    with the steps ``beside`` them, whose noise is given.

    The accountant that will certify the run is the one asked here, at exactly the σ returned.

    Raises:
        UsageError: a target, rate or number of steps that makes no sense.
        GuaranteeError: no σ up to 1e5 reaches the target.

    >>> noise_multiplier(3.0, 1e-5, rate=0.01, steps=1000, relation="substitution") < 0.968
    True
    """
    if isinstance(epsilon, bool) or not 0 < epsilon < math.inf:
        raise UsageError(f"epsilon: expected a positive number, found {epsilon!r}")
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise UsageError(f"steps: expected a whole number ≥ 1, found {steps!r}")

    def spent(sigma: float) -> float:
        step = PoissonGaussian(rate, sigma)
        return compose({**beside, step: steps + beside.get(step, 0)}, relation).epsilon(delta)

    if not (least := compose(beside, relation).epsilon(delta)) < epsilon:
        raise GuaranteeError(
            f"epsilon {epsilon} is out of reach: what is released beside the steps spends {least:.4g} at delta {delta:g}; "
            "give it more noise, or raise epsilon or delta"
        )
    low, high = _bracket(spent, epsilon)
    low_spent, high_spent = spent(low), spent(high)
    while high / low > 1 + _CLOSE and low_spent > epsilon:
        guess = _interpolate(low, low_spent, high, high_spent, epsilon)
        middle = min(max(guess, low * (1 + _CLOSE / 3)), high / (1 + _CLOSE / 3))
        # A guess that lands just beside the root leaves one end where it was; step across to pin it.
        found = spent(middle)
        if found <= epsilon:
            high, high_spent = middle, found
            probe = max(low, middle / (1 + _CLOSE))
        else:
            low, low_spent = middle, found
            probe = min(high, middle * (1 + _CLOSE))
        if low < probe < high:
            found = spent(probe)
            if found <= epsilon:
                high, high_spent = probe, found
            else:
                low, low_spent = probe, found
    sigma = _up(high)
    while spent(sigma) > epsilon:
        sigma = _up(sigma * (1 + 1e-5))
    return sigma


def _bracket(spent: Callable[[float], float], epsilon: float) -> tuple[float, float]:
    """σ that is too small (or the smallest considered) and σ that is enough, a factor of two apart."""
    high = 1.0
    if spent(high) <= epsilon:
        while high / 2 >= SMALLEST and spent(high / 2) <= epsilon:
            high /= 2
        return high / 2, high
    while spent(high) > epsilon:
        high *= 2
        if high > _LARGEST:
            raise GuaranteeError(
                f"epsilon {epsilon} is out of reach: even noise of {_LARGEST:.0e} × the clipping norm spends more; "
                "lower the rate or the number of steps, or raise epsilon or delta"
            )
    return high / 2, high


def _interpolate(low: float, low_spent: float, high: float, high_spent: float, target: float) -> float:
    """Secant in log σ, log ε; the midpoint where an end has no logarithm."""
    middle = math.sqrt(low * high)
    if not (math.isfinite(low_spent) and high_spent > 0):
        return middle
    slope = math.log(low_spent / high_spent)
    if slope <= 0:
        return middle
    share = math.log(low_spent / target) / slope
    return float(low * (high / low) ** min(max(share, 0.02), 0.98))
