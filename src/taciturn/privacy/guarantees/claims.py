"""What the counts of a run come to, whatever its mechanism; each mechanism's own statements stand in its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

from taciturn.errors import UsageError
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import (
    FREE,
    Event,
    KindsGaussian,
    NonPrivate,
    PoissonGaussian,
    Relation,
    SelectiveGaussian,
    ThresholdedCounts,
    TwoLevelGaussian,
)
from taciturn.privacy.accounting.pairs import GRID, components
from taciturn.privacy.accounting.selective import Selective
from taciturn.privacy.accounting.tradeoff import Curve
from taciturn.privacy.accounting.user_entity import TwoLevel
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.statements import Counts

Phases = Mapping[str, Counts]
"""How often each event happened, by the plan's name of the phase."""

Claims = Callable[[str, Phases, Evidence], list[Guarantee]]
"""Every statement that holds for a finished run of the named mechanism, given the ledger's counts and measured facts."""


def merged(phases: Phases) -> dict[Event, int]:
    """Counts of all phases together."""
    return added(phases.values())


def added(counts: Iterable[Counts]) -> dict[Event, int]:
    """Counts, added up."""
    total: Counter[Event] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def epsilon_spent(counts: Counts, relation: Relation, delta: float, group: int = 1, free: Sequence[str] = ()) -> float:
    """ε of everything the ledger holds, at ``delta``, when ``group`` units change at once; what a target is compared with.

    free: further parts that are the same in both worlds of what the target is about (jft: redacted text, for a secret that
    the policy detects). A skeleton goes with its record, whatever the secret: by add and remove it is not free.
    """
    found = cost(counts, relation, group, free)
    return inf if found is None else found.epsilon(delta)


class Curved(Protocol):
    """Noised steps of a run, composed."""

    def epsilon(self, delta: float) -> float: ...

    def curve(self, delta: float) -> Curve: ...


def cost(counts: Counts, relation: Relation, group: int = 1, free: Sequence[str] = ()) -> Curved | None:
    """What :func:`spent` reads ε off; None where nothing bounds it."""
    paid = {e: n for e, n in counts.items() if not (isinstance(e, NonPrivate) and set(e.reads) <= {*FREE, *free})}
    if relation == "add-remove" and any(n and isinstance(e, NonPrivate) and e.shows_records for e, n in counts.items()):
        return None
    if any(isinstance(event, TwoLevelGaussian | SelectiveGaussian) for event in paid):
        return law(paid)
    profile = compose(paid, relation, group)
    return profile if profile.reason is None else None


@dataclass(frozen=True, slots=True)
class Cost:
    """ε of a run as a function of δ, for what its target is about, but without free parts."""

    counts: Counts
    relation: Relation
    group: int = 1

    @staticmethod
    def of(plan: Mapping[str, Any], counts: Counts) -> Cost:
        """Of a run of ``plan`` (plan.json)."""
        return Cost(counts, plan.get("relation", "substitution"), int(plan.get("group", 1)))

    @property
    def noised(self) -> bool:
        """Whether a step had noise."""
        return any(count and not isinstance(event, NonPrivate) for event, count in self.counts.items())

    def epsilon(self, delta: float) -> float:
        """∞ where a step without noise read what a secret may be in."""
        return epsilon_spent(self.counts, self.relation, delta, self.group)


def law(counts: Counts) -> Selective | TwoLevel | None:
    """The law of a run whose noised steps are all one event with one of its own, for the neighbours that event is about;
    None with steps that paid no noise. Raises UsageError for several kinds of steps: nobody composed them."""
    noised = {event: n for event, n in counts.items() if not isinstance(event, NonPrivate)}
    if len(noised) != 1:
        raise UsageError(f"expected noised steps of one kind, found {len(noised)}: these events do not compose here")
    if any(n and not event.free for event, n in counts.items() if isinstance(event, NonPrivate)):
        return None
    ((event, steps),) = noised.items()
    if isinstance(event, SelectiveGaussian):
        return Selective(event, steps)
    assert isinstance(event, TwoLevelGaussian)
    limits = (event.units_per_user, event.users_per_entity, event.units_per_user_entity)
    return TwoLevel(event.user_rate, event.entity_rate, *limits, event.noise_multiplier, steps)


def foreseen_effort(counts: Counts, sizes: Iterable[int]) -> float:
    """The least, about, that the curves of groups of these ``sizes`` cost to compute (effort.py): four grids each."""
    rates = [rate for event in counts if (rate := _rate(event))]
    return sum(4 * GRID * components(size, rate) for size in set(sizes) for rate in rates)


def _rate(event: Event) -> float:
    match event:
        case PoissonGaussian():
            return event.rate
        case KindsGaussian():
            return event.worst.rate
        case ThresholdedCounts():
            return event.gaussian.rate
    return 0.0


def spent_of(plan: Mapping[str, Any], counts: Counts, delta: float) -> float:
    """:func:`spent` of a run of ``plan`` (plan.json): by its relation, for its group, with its free parts."""
    return epsilon_spent(counts, plan["relation"], delta, plan.get("group", 1), plan.get("free", ()))
