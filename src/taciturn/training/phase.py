"""A phase of a run: what it reads, how it draws, what a step does with what it drew, and what that costs.

The privacy event of a phase is derived from its sampler and rule, so the rate and the noise that are accounted for are
the ones that run.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

from taciturn.errors import DataError, UsageError
from taciturn.privacy.accounting.events import Event, NonPrivate, Part
from taciturn.training.phase_terms import Counts, Fill, Rule, Unit
from taciturn.training.samplers import SAMPLERS, Poisson, Sampler, Shuffle
from taciturn.training.schedules import Optimiser


@dataclass(frozen=True, slots=True)
class Phase:
    """``steps`` updates over the units of ``reads`` (their number is ``records``), each time the phase comes up.

    unit: what the sampler draws and the rule clips. rows: numbers of the records of ``reads`` that count, None for all.
    once: whether it comes up in the first round alone. targets: which tokens of a record are learned, all or those that the
    conservative policy marks in it. kept: α, where the phase ends its weights become (1 − α)·(those of the beginning of the
    run) + α·(its own), WiSE-FT (Wortsman et al. 2022, section 3); free, as it looks at no text. fill: what stands for masks
    in a plain phase. packed: a batch is laid end to end and cut into blocks of so many tokens, which no guarantee covers; 0
    for records as they are.

    Raises UsageError for a sampler, or a sampler and a rule together, that have no accounting, naming the guarantee they
    would break, and for noised steps over no units.
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
    once: bool = False
    targets: Literal["all", "marked"] = "all"
    kept: float = 1.0

    def __post_init__(self) -> None:
        if type(self.sampler) not in SAMPLERS:
            raise UsageError(
                f"phase {self.name!r}: a phase draws its own records, by Shuffle(batch_size) or Poisson(rate); found a "
                f"{type(self.sampler).__name__}. The ε of a run holds for records drawn independently at the rate that is "
                "accounted for, and a sampler or loader from outside breaks that guarantee without a sign of it"
            )
        try:
            event = self.rule.event(self.sampler, self.reads)
        except UsageError as error:
            raise UsageError(f"phase {self.name!r}: {error}") from None
        if self.unit not in self.rule.units:
            raise UsageError(
                f"phase {self.name!r}: {type(self.rule).__name__} takes units of the kind "
                f"{' or '.join(map(repr, self.rule.units))}, found {self.unit!r}"
            )
        if not isinstance(event, NonPrivate) and self.records < 1:
            raise UsageError(
                f"phase {self.name!r}: noised steps over {self.records} units. Sums are divided, and δ is judged, by how "
                "many units there are: give records, the number of those that are drawn from"
            )
        if not isinstance(event, NonPrivate) and (self.fill or self.packed):
            raise UsageError(f"phase {self.name!r}: noised steps read records as they are, neither filled nor packed")

    @property
    def event(self) -> Event:
        """What one step of this phase costs."""
        return self.rule.event(self.sampler, self.reads)

    @property
    def private(self) -> bool:
        """Whether its steps are accounted for: what they release is noised, and nothing else of what they drew is shown."""
        return not isinstance(self.event, NonPrivate)

    @property
    def moves(self) -> bool:
        """Whether its steps move the weights: one that counts does not."""
        return not isinstance(self.rule, Counts)

    @property
    def noise(self) -> float:
        """σ, zero in a plain phase."""
        return self.rule.noise_multiplier

    @property
    def clip(self) -> float:
        """C, zero in a plain phase."""
        return self.rule.clip

    @property
    def expected(self) -> float:
        """The constant that a noised sum is divided by: what the units of a step weigh on average, one each by default."""
        return self.sampler.divisor(self.records)

    def check_drawn_from(self, count: int) -> None:
        """Raises DataError where the units that steps draw from are not as many as the plan says, and δ was judged by."""
        if count != self.records:
            what = "records" if self.unit == "record" else f"units of the kind {self.unit!r}"
            raise DataError(f"phase {self.name!r} has {count} {what}, its plan says {self.records}")


def epoch_steps(records: int, sampler: Shuffle | Poisson) -> int:
    """Steps of one epoch: every record once (shuffle), or once on average (Poisson; CRT, Algorithm 1, footnote 3)."""
    if isinstance(sampler, Shuffle):
        return ceil(records / sampler.batch_size)
    return max(1, round(1 / sampler.rate)) if records else 0
