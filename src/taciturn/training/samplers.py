"""How a step draws, and what a noised step that draws like this costs."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Protocol

from taciturn.errors import UsageError
from taciturn.privacy.accounting.events import Event, KindsGaussian, PoissonGaussian, TwoLevelGaussian


class Sampler(Protocol):
    """How a step draws. Only the samplers of this module can be accounted for, so only they are taken."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def divisor(self, records: int) -> float:
        """What the units of a step weigh on average, one each by default: the constant that a noised sum is divided by."""

    def gaussian(self, noise_multiplier: float) -> Event:
        """A step that draws like this, clips, sums and adds so much noise. Raises UsageError where it has no accounting."""


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Minibatches of a fresh permutation, every record once an epoch. No privacy: for parts that cost nothing."""

    batch_size: int

    def divisor(self, records: int) -> float:  # noqa: ARG002
        return float(self.batch_size)

    def gaussian(self, noise_multiplier: float) -> Event:  # noqa: ARG002
        raise UsageError(
            "clipped and noised steps need Poisson sampling, got Shuffle. Amplification by sampling, and with it ε, holds "
            "for records drawn independently; shuffled batches have another, larger cost that is not accounted for here"
        )


@dataclass(frozen=True, slots=True)
class Poisson:
    """Each record joins each step independently with probability ``rate``; a step may be empty, and still is one."""

    rate: float

    def divisor(self, records: int) -> float:
        return self.rate * records

    def gaussian(self, noise_multiplier: float) -> Event:
        return PoissonGaussian(self.rate, noise_multiplier)


@dataclass(frozen=True, slots=True)
class PoissonKinds:
    """Units of several kinds, one kind after the other: ``counts`` of them, drawn independently at ``rates``. weights: what
    the clipped gradients of a kind are multiplied by, at most 1."""

    rates: tuple[float, ...]
    counts: tuple[int, ...]
    weights: tuple[float, ...] = (1.0, 1.0)

    def divisor(self, records: int) -> float:  # noqa: ARG002
        return sum(map(prod, zip(self.rates, self.counts, self.weights, strict=True)))

    def gaussian(self, noise_multiplier: float) -> Event:
        return KindsGaussian(self.rates, noise_multiplier)


@dataclass(frozen=True, slots=True)
class UserEntity:
    """Coins for users, for detected entities and for extended ones (UeDP, Algorithm 1, lines 8 and 10).

    A unit (user-entity) joins if its user and all its entities do; of a user's records (unit user) those join that hold a
    drawn entity. ``counts``: users, detected entities, extended entities. expected: the constant that sums are divided by.
    limits: for two-level coins, what the corpus was checked to keep: units of a user, users of an entity besides it, units
    of a user and an entity; None where the guarantee does not need them.
    """

    user_rate: float
    entity_rate: float
    extended_rate: float
    counts: tuple[int, int, int]
    expected: float
    limits: tuple[int, int, int] | None = None

    @property
    def rates(self) -> tuple[float, float, float]:
        return self.user_rate, self.entity_rate, self.extended_rate

    def divisor(self, records: int) -> float:  # noqa: ARG002
        return self.expected

    def gaussian(self, noise_multiplier: float) -> Event:
        if self.limits is None:
            return PoissonGaussian(self.user_rate, noise_multiplier)  # entity coins only shrink what a user adds
        rate = max(self.entity_rate, self.extended_rate)  # the fewer are drawn, the less a removal changes
        return TwoLevelGaussian(self.user_rate, rate, *self.limits, noise_multiplier)


SAMPLERS = (Shuffle, Poisson, PoissonKinds, UserEntity)
"""All there are: a phase takes no other."""
