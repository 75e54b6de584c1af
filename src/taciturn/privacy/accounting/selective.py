"""Accounting of Selective DP-SGD: every noise it adds, composed, and no amplification by sampling.

What one step shows of a drawn record when its secrets change and its public text does not (`training/updates/selective.py`):

- the noised LSTM state after each of at most R sensitive runs. Given the states before it, a state is a vector of norm at
  most C_h plus N(0, (σ_h·C_h)²): a Gaussian pair at ±1 in units of C_h. Public losses are functions of noised states and
  public tokens, so they show nothing else (post-processing);
- the noised sum of clipped private gradients, a Gaussian pair at ±1 in units of C, given those states.

Adaptive composition of Gaussian pairs is the Gaussian pair whose squared distances add up (Dong, Roth, Su 2022, Corollary
2): N(+1) against N(−1) at σ_eff = (1/σ² + R/σ_h²)^(−1/2). The noiseless gradient of public tokens shows who was drawn, so
the coin of the record is given to the attacker: over T steps

    δ(ε) = Σ_j Bin(T, q)(j) · δ_Gauss(ε; μ = 2√j/σ_eff),

and both directions agree by symmetry. Neighbours are substitutions with equal redacted texts (JFT, Definition 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from taciturn.errors import GuaranteeError, UsageError
from taciturn.privacy.accounting import mixture_coins
from taciturn.privacy.accounting.events import SelectiveGaussian
from taciturn.privacy.accounting.mixture_coins import Side
from taciturn.privacy.accounting.pairs import Mixture, Pair, binomial
from taciturn.privacy.accounting.tradeoff import Curve
from taciturn.privacy.accounting.user_entity import noise_for


@dataclass(frozen=True, slots=True)
class Selective:
    """``steps`` equal steps, as a :class:`.mixture_coins.Law`, for ``group`` records that change together.

    Of the k records m ~ Bin(k, q) are drawn, which the attacker sees: their sum moves by 2mC at most, and each has up to R
    noised states of its own, so a step is one Gaussian pair at 2·√(m²/σ² + mR/σ_h²).
    """

    event: SelectiveGaussian
    steps: int
    group: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 0:
            raise UsageError(f"steps: expected a whole number ≥ 0, found {self.steps!r}")
        if isinstance(self.group, bool) or not isinstance(self.group, int) or self.group < 1:
            raise UsageError(f"group: expected a whole number ≥ 1 of records, found {self.group!r}")

    def sides(self, tail: float) -> tuple[Side, ...]:
        """One direction, as the other is its mirror: for each number of records drawn a Gaussian pair, or nothing."""
        at, nowhere = Mixture(np.ones(1), np.zeros(1)), Mixture(np.zeros(1), np.zeros(1))
        drawn = binomial(self.group, self.event.rate, tail)
        outcomes = []
        for m, log_weight in zip(drawn.j.tolist(), drawn.log_weight.tolist(), strict=True):
            pair = Pair(at, at, self._spread(m) ** -0.5) if m else Pair(nowhere, nowhere, 1.0)
            outcomes.append((math.exp(log_weight), pair))
        return (Side(tuple(outcomes), drawn.dropped),)

    def epsilon(self, delta: float) -> float:
        """Smallest certified ε at ``delta``, by substitution.

        >>> round(Selective(SelectiveGaussian(0.01, 4.0, 8.0, 4), 200).epsilon(1e-5), 2)
        7.04
        """
        return mixture_coins.epsilon(self, delta) if self.steps else 0.0

    @property
    def whole(self) -> float:
        return 2 * math.sqrt(self.steps * self._spread(self.group))

    def curve(self, delta: float) -> Curve:
        return mixture_coins.curve(self, delta)

    def _spread(self, m: float) -> float:
        """(half the distance between the worlds)² when ``m`` of the records are drawn."""
        event = self.event
        return m * m / event.noise_multiplier**2 + m * event.runs / event.state_noise**2


Made = Callable[[float], SelectiveGaussian]


def balanced(rate: float, runs: int) -> Made:
    """Events by their parameter noise σ, the states sharing what the parameters cost: σ_h = σ·√R, so σ_eff = σ/√2.

    >>> balanced(0.1, 4)(2.0)
    SelectiveGaussian(rate=0.1, noise_multiplier=2.0, state_noise=4.0, runs=4)
    """
    return lambda sigma: SelectiveGaussian(rate, sigma, sigma * math.sqrt(runs), runs)


def calibrated(epsilon: float, delta: float, steps: int, made: Made) -> SelectiveGaussian:
    """The event with the least σ, to 1e-3 and never too small, whose ``steps`` cost at most ``epsilon`` at ``delta``.

    Raises GuaranteeError when no σ is enough: ``made`` fixes a state noise that alone costs more.
    """
    try:
        return made(noise_for(epsilon, lambda sigma: Selective(made(sigma), steps).epsilon(delta)))
    except GuaranteeError as error:
        states = Selective(made(1e5), steps).epsilon(delta)
        raise GuaranteeError(
            f"epsilon {epsilon:g} is out of reach: noised states alone cost {states:.3g} at δ = {delta:g} over {steps} "
            "steps; raise state_noise (or leave it out), or lower runs, the rate or the steps"
        ) from error
