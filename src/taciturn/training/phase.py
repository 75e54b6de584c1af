"""A phase of a run: what it reads, how it draws, what a step does with what it drew, and what that costs.

The privacy event of a phase is derived from its sampler and rule, so the rate and the noise that are accounted for are
the ones that run.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import Literal

from taciturn.errors import UsageError
from taciturn.privacy.accounting.events import (
    Event,
    KindsGaussian,
    NonPrivate,
    Part,
    PoissonGaussian,
    SelectiveGaussian,
    TwoLevelGaussian,
)
from taciturn.training.phase_terms import (
    ClipNoise,
    Fill,
    Plain,
    Poisson,
    PoissonKinds,
    Residual,
    Rule,
    Sampler,
    SelectiveState,
    Shuffle,
    UserEntity,
)
from taciturn.training.schedules import Optimiser

Unit = Literal["record", "user", "user-entity", "residual"]
"""What is drawn and clipped as one: a record; all of a user's records; a user's records about one set of entities; a
private record beside its skeleton."""


@dataclass(frozen=True, slots=True)
class Phase:
    """``steps`` updates over the units of ``reads`` (their number is ``records``), each time the phase comes up.

    unit: what the sampler draws and the rule clips. rows: numbers of the records of ``reads`` that count, None for all.
    fill: what stands for masks in a plain phase. packed: a batch is laid end to end and cut into blocks of so many tokens,
    which no guarantee covers; 0 for records as they are.

    Raises UsageError for a sampler, or a sampler and a rule together, that have no accounting, naming the guarantee they
    would break.
    """

    name: str
    reads: tuple[Part, ...]
    records: int
    sampler: Sampler
    rule: Rule
    steps: int
    optimiser: Optimiser
    unit: Unit = "record"
    rows: tuple[int, ...] | None = None
    fill: Fill | None = None
    packed: int = 0

    def __post_init__(self) -> None:
        if type(self.sampler) not in (Shuffle, Poisson, PoissonKinds, UserEntity):
            raise UsageError(
                f"phase {self.name!r}: a phase draws its own records, by Shuffle(batch_size) or Poisson(rate); found a "
                f"{type(self.sampler).__name__}. The ε of a run holds for records drawn independently at the rate that is "
                "accounted for, and a sampler or loader from outside breaks that guarantee without a sign of it"
            )
        if self.private and isinstance(self.sampler, Shuffle):
            raise UsageError(
                f"phase {self.name!r}: clipped and noised steps need Poisson sampling, got {type(self.sampler).__name__}. "
                "Amplification by sampling, and with it ε, holds for records drawn independently; shuffled batches have "
                "another, larger cost that is not accounted for here"
            )
        if not self.private and not isinstance(self.sampler, Shuffle):
            raise UsageError(f"phase {self.name!r}: plain steps take shuffled batches")
        if self.private and (self.fill or self.packed):
            raise UsageError(f"phase {self.name!r}: noised steps read records as they are, neither filled nor packed")

    @property
    def event(self) -> Event:
        """What one step of this phase costs."""
        match self.rule, self.sampler:
            case Plain(), _:
                return NonPrivate(tuple(self.reads))
            case SelectiveState(noise_multiplier=sigma, state_noise=states, runs=runs), Poisson(rate):
                return SelectiveGaussian(rate, sigma, states, runs)
            case SelectiveState(), _:
                pass
            case _, PoissonKinds(rates):
                return KindsGaussian(rates, self.noise)
            case _, UserEntity(user_rate, entity_rate, extended_rate, limits=(most, users, each)):
                rate = max(entity_rate, extended_rate)  # the fewer are drawn, the less a removal changes
                return TwoLevelGaussian(user_rate, rate, most, users, each, self.noise)
            case _, UserEntity(user_rate):
                return PoissonGaussian(user_rate, self.noise)  # entity coins only shrink what a user adds
            case _, Poisson(rate):
                return PoissonGaussian(rate, self.noise)
        raise UsageError(f"phase {self.name!r}: no accounting for {self.rule} with {self.sampler}")

    @property
    def private(self) -> bool:
        return not isinstance(self.rule, Plain)

    @property
    def noised(self) -> ClipNoise | None:
        """The clipping and noise of per-unit gradients, where there is any."""
        rule = self.rule.noised if isinstance(self.rule, Residual) else self.rule
        return rule if isinstance(rule, ClipNoise) else None

    @property
    def noise(self) -> float:
        """σ, zero in a plain phase."""
        rule = self.rule.noised if isinstance(self.rule, Residual) else self.rule
        return 0.0 if isinstance(rule, Plain) else rule.noise_multiplier

    @property
    def clip(self) -> float:
        """C, zero in a plain phase."""
        rule = self.rule.noised if isinstance(self.rule, Residual) else self.rule
        return 0.0 if isinstance(rule, Plain) else rule.clip

    @property
    def expected(self) -> float:
        """The constant that a noised sum is divided by: what the units of a step weigh on average, one each by default."""
        match self.sampler:
            case Poisson(rate):
                return rate * self.records
            case PoissonKinds(rates, counts, weights):
                return sum(map(prod, zip(rates, counts, weights, strict=True)))
            case UserEntity(expected=expected):
                return expected
            case Shuffle(batch_size):
                return float(batch_size)


def epoch_steps(records: int, sampler: Shuffle | Poisson) -> int:
    """Steps of one epoch: every record once (shuffle), or once on average (Poisson; CRT, Algorithm 1, footnote 3)."""
    if isinstance(sampler, Shuffle):
        return ceil(records / sampler.batch_size)
    return max(1, round(1 / sampler.rate)) if records else 0
