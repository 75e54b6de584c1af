"""From ledger counts to (ε, δ): the noise of the steps composed (composed.py), beside it what a table of values shows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version

import numpy as np

from taciturn.errors import UsageError, nearest
from taciturn.privacy.accounting.composed import Composed, Counts
from taciturn.privacy.accounting.escape import escape, standing
from taciturn.privacy.accounting.events import (
    FREE,
    RELATIONS,
    Event,
    KindsGaussian,
    NonPrivate,
    PoissonGaussian,
    Relation,
    ThresholdedCounts,
)
from taciturn.privacy.accounting.tradeoff import NOTHING, Curve


def accountant_name() -> str:
    """What a certificate names as its accountant."""
    return f"PLD, dp_accounting {version('dp-accounting')}"


@dataclass(frozen=True, slots=True)
class Profile:
    """The privacy curve of a whole run: ``delta(epsilon)`` and its inverse, upper bounds in both directions.

    ``reason`` is set when the curve is trivial (ε = ∞ at every δ) and says why. ``shown``: releases of thresholded counts,
    whose noise is among ``counts``: what they show of the changed records alone has a chance that is spent from δ.
    """

    counts: Counts
    relation: Relation
    group: int = 1
    reason: str | None = None
    shown: tuple[tuple[ThresholdedCounts, int], ...] = ()

    @property
    def steps(self) -> int:
        return self._noise.steps

    def for_group(self, group: int) -> Profile:
        """The same run when ``group`` records change at once."""
        return replace(self, group=_group(group))

    @property
    def escaped(self) -> float:
        """The chance that a key is shown which only changed records hold: added to δ at every ε (guarantees.md §3.7)."""
        return min(1.0, sum(count * escape(event, self.group) for event, count in self.shown))

    @property
    def stood(self) -> float:
        """The chance that a value of the changed records is shown and left standing: added to δ likewise."""
        return min(1.0, self.group * sum(count * standing(event) for event, count in self.shown))

    @property
    def copies(self) -> int:
        """In how many records a value may stand at most to be protected; 0 where none is left standing."""
        return min((event.copies for event, _ in self.shown if event.copies), default=0)

    @property
    def _noise(self) -> Composed:
        return Composed(self.counts, self.relation, self.group)

    def epsilon(self, delta: float) -> float:
        """Smallest certified ε at ``delta`` in (0, 1); ``inf`` with a ``reason`` where there is none."""
        if isinstance(delta, bool) or not 0 < delta < 1:
            raise UsageError(f"delta: expected a probability in (0, 1), found {delta!r}")
        if self.reason is not None:
            return math.inf
        left = float(delta) - self.escaped - self.stood
        if left <= 0:
            return math.inf
        return self._noise.epsilon(left) if self.counts else 0.0

    def delta(self, epsilon: float) -> float:
        """Certified bound of both hockey-stick divergences at ``epsilon`` (any real number; e^ε may be below one)."""
        if math.isnan(epsilon):
            raise UsageError("epsilon: expected a number, found nan")
        if self.reason is not None or epsilon == -math.inf:
            return 1.0
        if not self.counts:
            return max(0.0, -math.expm1(epsilon))
        noise = 0.0 if epsilon == math.inf else self._noise.delta(float(epsilon))
        return min(1.0, noise + self.escaped + self.stood)

    def curve(self, delta: float) -> Curve:
        """Points of the whole curve, from what the computation of ε at ``delta`` has composed already.

        UsageError where there is none (``reason``).
        """
        if self.reason is not None:
            raise UsageError(f"no privacy curve: {self.reason}")
        if not self.counts:
            return NOTHING
        escaped = min(1.0, self.escaped + self.stood)
        if not escaped:
            return self._noise.curve(float(delta))
        known = self._noise.curve(delta - escaped if escaped < delta else float(delta))
        return Curve(known.epsilons, np.minimum(1.0, known.deltas + escaped), known.floor + escaped)


def compose(steps: Mapping[Event, int] | Iterable[Event], relation: Relation, group: int = 1) -> Profile:
    """The privacy curve of all ``steps`` together, for ``group`` records changed by ``relation``.

    Args:
        steps: how often each event happened, or the events one by one.
        relation: "substitution" (a record becomes another; confidentiality) or "add-remove".
        group: number k ≥ 1 of records that change at once.

    Raises:
        UsageError: an unknown relation, event or count.

    >>> profile = compose({PoissonGaussian(0.01, 1.0): 1000}, "substitution")
    >>> round(profile.epsilon(1e-5), 2)
    2.84
    """
    if relation not in RELATIONS:
        raise UsageError(f"relation {relation!r} is unknown; {nearest(str(relation), RELATIONS)}")
    counted = dict(steps) if isinstance(steps, Mapping) else dict(Counter(steps))
    noisy: dict[PoissonGaussian, int] = {}
    shown: dict[ThresholdedCounts, int] = {}
    reason = None
    stands = any(isinstance(event, ThresholdedCounts) and event.copies and count for event, count in counted.items())
    free = FREE | ({"common"} if stands else set())
    for event, count in counted.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise UsageError(f"number of steps of {event}: expected a whole number ≥ 0, found {count!r}")
        if isinstance(event, ThresholdedCounts) and count:
            if relation == "add-remove":
                reason = "the table of values counts the skeletons as they are, so a record's presence may show"
            shown[event] = shown.get(event, 0) + count
            event = event.gaussian
        if isinstance(event, KindsGaussian):
            event = event.worst
        if isinstance(event, PoissonGaussian):
            if count:
                noisy[event] = noisy.get(event, 0) + count
        elif isinstance(event, ThresholdedCounts):
            continue
        elif not isinstance(event, NonPrivate):
            raise UsageError(f"{type(event).__name__} is not an event that a guarantee covers")
        elif count and not free.issuperset(event.reads):
            reason = f"{count} steps without noise read {', '.join(event.reads)}"
    return Profile(tuple(sorted(noisy.items())), relation, _group(group), reason, tuple(sorted(shown.items())))


def _group(group: int) -> int:
    if isinstance(group, bool) or not isinstance(group, int) or group < 1:
        raise UsageError(f"group: expected a whole number ≥ 1 of records that change together, found {group!r}")
    return group
