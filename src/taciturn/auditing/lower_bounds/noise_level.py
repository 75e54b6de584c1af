"""How much of the noise that a ledger writes down can have been there at most, told from the guesses of one run.

A family of privacy curves, one for each multiple of the ledger's noise: the guesses refute those with more noise than there
was, which is far tighter than what (ε, δ) alone says of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from taciturn.auditing.lower_bounds.f_dp import Curve, curve_of, rejected
from taciturn.auditing.lower_bounds.one_run import OneRun
from taciturn.privacy.accounting.accountant import Profile, compose
from taciturn.privacy.accounting.events import Event, KindsGaussian, PoissonGaussian, Relation, SelectiveGaussian
from taciturn.privacy.accounting.selective import Selective

LEAST, MOST = 2.0**-5, 2.0**7
"""Noise, as a multiple of the ledger's, between which the bound looks."""


class Family(Protocol):
    """Privacy curves of a run by ``factor``, the noise there was as a multiple of what the ledger says."""

    def curve(self, factor: float) -> Curve: ...

    def epsilon(self, factor: float, delta: float) -> float: ...


@dataclass(frozen=True, slots=True)
class Steps:
    """Noisy steps that ``group`` of the units they draw are told from. counts: event → steps; others than Poisson-sampled
    Gaussians are left out."""

    counts: Mapping[Event, int]
    relation: Relation
    group: int = 1

    def profile(self, factor: float) -> Profile:
        noisy: dict[Event, int] = {}
        for event, count in self.counts.items():
            plain = event.worst if isinstance(event, KindsGaussian) else event
            if isinstance(plain, PoissonGaussian):
                changed = PoissonGaussian(plain.rate, plain.noise_multiplier * factor)
                noisy[changed] = noisy.get(changed, 0) + count
        return compose(noisy, self.relation, self.group)

    def curve(self, factor: float) -> Curve:
        return curve_of(self.profile(factor))

    def epsilon(self, factor: float, delta: float) -> float:
        return self.profile(factor).epsilon(delta)


@dataclass(frozen=True, slots=True)
class SelectiveSteps:
    """Steps of Selective DP-SGD, by substitution of one record's detected secrets; states and sums have ``factor`` alike."""

    event: SelectiveGaussian
    steps: int

    def _law(self, factor: float) -> Selective:
        event = self.event
        changed = replace(
            event, noise_multiplier=event.noise_multiplier * factor, state_noise=event.state_noise * factor
        )
        return Selective(changed, self.steps)

    def curve(self, factor: float) -> Curve:
        return curve_of(self._law(factor))

    def epsilon(self, factor: float, delta: float) -> float:
        return self._law(factor).epsilon(delta)


def noise_upper(once: OneRun, family: Family, confidence: float = 0.95) -> float:
    """The noise that can have been there at most, as a multiple of what the ledger says; ``MOST`` for no bound.

    The guesses refute every curve of ``family`` with more. Below 1: less noise than was written down.
    """
    low, high = LEAST, MOST
    if not rejected(once, family.curve(high), confidence):
        return high
    if not rejected(once, family.curve(1.0), confidence):
        low = 1.0
    else:
        high = 1.0
    while high / low > 1.05:
        middle = float(np.sqrt(low * high))
        if rejected(once, family.curve(middle), confidence):
            high = middle
        else:
            low = middle
    return high
