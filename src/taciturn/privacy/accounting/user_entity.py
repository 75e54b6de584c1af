"""Accounting of UeDP and of user-level DP: what it costs to remove k clipped units, and several ways to count them.

A unit is what one coin draws and one clip bounds: (user, entity set of a sentence) for ``uedp``, a user for user-level
DP. Noise is ``noise_multiplier`` × the clip bound β. Removing a user u' and an entity e' deletes units; the guarantee
is a curve over how many. docs/guarantees.md (UeDP and user level) proves each pair; the pairs with deletions and
insertions are Schuchardt et al. 2024, Theorem 3.8. Every ε here bounds both directions, for all ``steps`` together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np

from taciturn.errors import GuaranteeError, UsageError
from taciturn.privacy.accounting import mixture_coins
from taciturn.privacy.accounting.accountant import Profile, compose
from taciturn.privacy.accounting.events import PoissonGaussian, TwoLevelGaussian
from taciturn.privacy.accounting.largest_group import largest_group
from taciturn.privacy.accounting.mixture_coins import Side, convolve, merge
from taciturn.privacy.accounting.pairs import Mixture, Pair, binomial
from taciturn.privacy.accounting.tradeoff import Curve

Counts = int | Sequence[int]


def _whole(name: str, value: int, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise UsageError(f"{name}: expected a whole number ≥ {least}, found {value!r}")
    return int(value)


@dataclass(frozen=True, slots=True)
class Exchange:
    """``steps`` steps in which ``deleted`` units go and ``inserted`` units come, each list (number, rate) per kind.

    The pair is Σ_j Pr(deleted draw = j)·N(+j) against Σ_j Pr(inserted draw = j)·N(−j), and its mirror
    (Schuchardt et al. 2024, Theorem 3.8 with k₋ deletions and k₊ insertions; kinds add up by convolution).
    """

    deleted: tuple[tuple[int, float], ...]
    inserted: tuple[tuple[int, float], ...]
    noise_multiplier: float
    steps: int

    def sides(self, tail: float) -> tuple[Side, ...]:
        out, into = _drawn(self.deleted, tail), _drawn(self.inserted, tail)
        forward = Side(((1.0, Pair(out, into, self.noise_multiplier)),))
        if self.deleted == self.inserted:
            return (forward,)
        return forward, Side(((1.0, Pair(into, out, self.noise_multiplier)),))

    @property
    def whole(self) -> float:
        units = sum(number for number, _ in (*self.deleted, *self.inserted))
        return units * math.sqrt(self.steps) / self.noise_multiplier

    def epsilon(self, delta: float) -> float:
        return mixture_coins.epsilon(self, delta)

    def curve(self, delta: float) -> Curve:
        return mixture_coins.curve(self, delta)


def _drawn(kinds: tuple[tuple[int, float], ...], tail: float) -> Mixture:
    """How many of the units are drawn in one step."""
    nothing = Mixture(np.zeros(1), np.zeros(1))
    return reduce(convolve, (binomial(number, rate, tail) for number, rate in kinds if number), nothing)


@dataclass(frozen=True, slots=True)
class Units:
    """A run of the one-level estimator: one Poisson coin per unit, one gradient per unit clipped to β, noise σβ.

    rates: sampling rate per kind of unit, (q,) or (q_E, q_S). noise_multiplier: σ. selects: whether a cap chooses
    which units exist; then a removal makes room, and k deletions come with up to k insertions.

    >>> run = Units((0.05,), noise_multiplier=6.0, steps=200)
    >>> round(run.epsilon(7, delta=1e-5), 2)
    3.62
    """

    rates: tuple[float, ...]
    noise_multiplier: float
    steps: int
    selects: bool = False

    def __post_init__(self) -> None:
        if not self.rates:
            raise UsageError("rates: expected one sampling rate per kind of unit, found none")
        for rate in self.rates:
            PoissonGaussian(rate, self.noise_multiplier)  # refuses what is not a rate or a noise multiplier
        _whole("steps", self.steps)

    def profile(self, k: int) -> Profile:
        """The privacy curve of deleting any k units: all of them of the kind with the highest rate, the worst case.

        Worst because units of rate q < q' are units of rate q' thinned by a coin of q/q', the same in both worlds.
        """
        if _whole("k", k) == 0:
            return compose({}, "add-remove")
        event = PoissonGaussian(max(self.rates), self.noise_multiplier)
        return compose({event: int(self.steps)}, "substitution" if self.selects else "add-remove", int(k))

    def epsilon(self, k: Counts, delta: float) -> float:
        """ε_k at ``delta`` for any k units, or for exactly (k_E, k_S) of each kind."""
        if isinstance(k, int | np.integer):
            return self.profile(k).epsilon(delta)
        if len(k) != len(self.rates):
            raise UsageError(f"k: expected {len(self.rates)} counts, one per sampling rate, found {len(k)}")
        numbers: dict[float, int] = {}
        for number, rate in zip(k, self.rates, strict=True):
            if _whole("k", number):
                numbers[rate] = numbers.get(rate, 0) + int(number)
        if len(numbers) <= 1 or not self.steps:
            rate, total = next(iter(numbers.items()), (self.rates[0], 0))
            return Units((rate,), self.noise_multiplier, self.steps, self.selects).profile(total).epsilon(delta)
        kinds = tuple((number, rate) for rate, number in sorted(numbers.items()))
        return Exchange(kinds, kinds if self.selects else (), self.noise_multiplier, self.steps).epsilon(delta)

    def curve(self, ks: Iterable[int], delta: float) -> dict[int, float]:
        """ε_k for each k: where a corpus stands (its median, 95 % and largest number of units per removed pair).

        Every user-entity pair whose removal deletes at most k units has (ε_k, ``delta``).
        """
        return {int(k): self.epsilon(k, delta) for k in ks}

    def largest_k(self, delta: float, epsilon: float = 10.0, most: int = 100_000) -> int:
        """Largest k ≤ ``most`` with ε_k ≤ ``epsilon``; 0 if not even one unit is covered."""
        return largest_group(self.profile(1), delta, epsilon, most)


def deletion_epsilon(
    k: int, rate: float, noise_multiplier: float, steps: int, delta: float, *, selects: bool = False
) -> float:
    """ε_k: Σ_j Bin(k, rate)(j)·N(j) against N(0), both directions, ``steps`` times.

    selects: a cap chooses units, so k deletions come with k insertions: against Σ_j Bin(k, rate)(j)·N(−j).

    >>> round(deletion_epsilon(1, 0.01, 1.0, 1000, 1e-5), 2)  # one user: add/remove, user-level DP
    1.83
    """
    return Units((rate,), noise_multiplier, steps, selects).epsilon(k, delta)


def user_profile(rate: float, noise_multiplier: float, steps: int) -> Profile:
    """User-level DP (McMahan et al. 2018): Poisson users, per-user clip β, noise σβ on the sum; add or remove one.

    It is the curve of one deleted unit.
    """
    return Units((rate,), noise_multiplier, steps).profile(1)


@dataclass(frozen=True, slots=True)
class TwoLevel(TwoLevelGaussian):
    """``steps`` equal steps of two-level coins: a unit is used iff its user and all its entities are drawn.

    user_rate, entity_rate: q_u and q_e. units_per_user: at most M units of one user. users_per_entity: at most K
    other users hold an entity, each with at most ``units_per_user_entity`` = L units of it.

    The coins of the other users also drive units that stay, so they are given to the attacker: with j ~ Bin(K, q_u) of
    the entity's users drawn, a ~ Bern(q_u) and b ~ Bern(q_e) hidden, a step's loss is Σ_j Pr(j)·PLD[aM + bLj].

    >>> run = TwoLevel(0.05, 0.5, units_per_user=10, users_per_entity=5, units_per_user_entity=1,
    ...                noise_multiplier=15.0, steps=100)
    >>> round(run.epsilon(1e-5), 3)
    2.161
    """

    steps: int
    _LEAST: ClassVar[int] = 0

    def __post_init__(self) -> None:
        TwoLevelGaussian.__post_init__(self)  # a dataclass with slots is another class than the one super() means
        _whole("steps", self.steps)

    def deleted(self, holders: int) -> Mixture:
        """Law of aM + bLj, the units a removal takes out of one step, given j = ``holders``."""
        a, b = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
        weights = np.where(a, self.user_rate, 1 - self.user_rate) * np.where(b, self.entity_rate, 1 - self.entity_rate)
        return merge(a * self.units_per_user + b * self.units_per_user_entity * holders, weights)

    def sides(self, tail: float) -> tuple[Side, ...]:
        nothing, holders = Mixture(np.zeros(1), np.zeros(1)), binomial(self.users_per_entity, self.user_rate, tail)
        cases = [
            (math.exp(weight), self.deleted(int(j))) for j, weight in zip(holders.j, holders.log_weight, strict=True)
        ]
        removal = tuple((weight, Pair(out, nothing, self.noise_multiplier)) for weight, out in cases)
        addition = tuple((weight, Pair(nothing, out, self.noise_multiplier)) for weight, out in cases)
        return Side(removal, holders.dropped), Side(addition, holders.dropped)

    @property
    def whole(self) -> float:
        units = self.units_per_user + self.units_per_user_entity * self.users_per_entity
        return units * math.sqrt(self.steps) / self.noise_multiplier

    def epsilon(self, delta: float) -> float:
        """ε at ``delta`` for removing (or adding) one user and one entity."""
        return mixture_coins.epsilon(self, delta) if self.steps else 0.0

    def curve(self, delta: float) -> Curve:
        return mixture_coins.curve(self, delta)


def noise_for(epsilon: float, spent: Callable[[float], float], most: float = 1e5) -> float:
    """Smallest σ, to 1e-3 and never too small, whose ``spent(σ)`` is at most ``epsilon``; ``spent`` decreases in σ.

    The function that will certify the run is the one asked here, at exactly the σ returned.

    Raises:
        GuaranteeError: no σ up to ``most`` reaches the target.

    >>> round(noise_for(3.62230, lambda sigma: deletion_epsilon(7, 0.05, sigma, 200, 1e-5)), 2)
    6.0
    """
    if isinstance(epsilon, bool) or not 0 < epsilon < math.inf:
        raise UsageError(f"epsilon: expected a positive number, found {epsilon!r}")
    low = high = 1.0
    while spent(high) > epsilon:
        low, high = high, 2 * high
        if high > most:
            raise GuaranteeError(
                f"epsilon {epsilon} is out of reach: even noise of {most:.0e} × the clip bound spends more; "
                "lower the rate, the number of steps or the number of units, or raise epsilon or delta"
            )
    while low == high or (low > 1e-2 and spent(low) <= epsilon):
        low, high = low / 2, low
    while high / low > 1 + 5e-4:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if spent(middle) <= epsilon else (middle, high)
    return high
