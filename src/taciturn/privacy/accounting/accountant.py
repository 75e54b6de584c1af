"""From ledger counts to (ε, δ): privacy loss distributions, composed by dp_accounting, always rounded upwards.

The grid follows the answer. A moment bound gives a first ε, the grid width is set from it, and the grid is refined
until the answer no longer asks for a finer one; so neither a tiny ε (a fine grid) nor a huge one (a wide range) costs
more than a few million cells. Where a composition would be wider than that (ε in the thousands), and for δ that a
transform cannot resolve, the moment bound itself is the answer: certified, but somewhat high. Whatever is cut off or
lost to rounding is charged to δ.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version

import numpy as np
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

from taciturn.errors import UsageError, nearest
from taciturn.privacy.accounting import grids, tilted
from taciturn.privacy.accounting.effort import pay
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
from taciturn.privacy.accounting.grids import COMPOSED, FINEST, ORDERS, SHARP
from taciturn.privacy.accounting.pairs import Grid, dominating, loss_range, step_grids
from taciturn.privacy.accounting.tilted import Tail
from taciturn.privacy.accounting.tradeoff import NOTHING, POINTS, Curve, floor_of

Counts = tuple[tuple[PoissonGaussian, int], ...]

_CELLS = 1 << 17  # most cells of one step
_NOTHING = 1e-250  # mass cut where δ itself may be tiny
_FAR = 1e-9  # δ below this is asked of a tilted transform


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
        return sum(count for _, count in self.counts)

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
    def _noise(self) -> Profile:
        return replace(self, shown=())

    def epsilon(self, delta: float) -> float:
        """Smallest certified ε at ``delta`` in (0, 1); ``inf`` with a ``reason`` where there is none."""
        if isinstance(delta, bool) or not 0 < delta < 1:
            raise UsageError(f"delta: expected a probability in (0, 1), found {delta!r}")
        if self.reason is not None:
            return math.inf
        left = float(delta) - self.escaped - self.stood
        if left <= 0:
            return math.inf
        return _epsilon(self._noise, left) if self.counts else 0.0

    def delta(self, epsilon: float) -> float:
        """Certified bound of both hockey-stick divergences at ``epsilon`` (any real number; e^ε may be below one)."""
        if math.isnan(epsilon):
            raise UsageError("epsilon: expected a number, found nan")
        if self.reason is not None or epsilon == -math.inf:
            return 1.0
        if not self.counts:
            return max(0.0, -math.expm1(epsilon))
        noise = 0.0 if epsilon == math.inf else _delta(self._noise, float(epsilon))
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
            return _curve(self._noise, float(delta))
        known = _curve(self._noise, delta - escaped if escaped < delta else float(delta))
        return Curve(known.epsilons, np.minimum(1.0, known.deltas + escaped), known.floor + escaped)

    @property
    def whole(self) -> float:
        """μ of the same steps on full batches, which bounds every curve down to δ = 0: a coin that both worlds share may be
        told to the attacker, and what was drawn then moves the sum by the whole distance at most."""
        distance = (2 if self.relation == "substitution" else 1) * self.group
        return distance * math.sqrt(sum(count / event.noise_multiplier**2 for event, count in self.counts))


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


def _directions(profile: Profile, width: float, cut: float) -> list[list[tuple[Grid, int]]]:
    """For each direction (removal, addition; or the symmetric one) the grids of all events with their counts."""
    each_event = [
        (step_grids(event, profile.relation, profile.group, width, cut), count) for event, count in profile.counts
    ]
    directions = max(len(each) for each, _ in each_event)
    return [[(each[min(d, len(each) - 1)], count) for each, count in each_event] for d in range(directions)]


@lru_cache(maxsize=256)
def _loss_span(profile: Profile, cut: float) -> float:
    """Length of the range of one step's loss, over events and directions."""
    ranges = [
        loss_range(pair, cut)
        for event, _ in profile.counts
        for pair in dominating(event, profile.relation, profile.group, cut)
    ]
    return max(high for _, high in ranges) - min(low for low, _ in ranges)


@lru_cache(maxsize=2)
def _distribution(profile: Profile, width: float, cut: float) -> tuple[PrivacyLossDistribution, float]:
    """The composed loss distribution, and by how much its losses may be too small."""
    composed, drifts = [], []
    for side in _directions(profile, width, cut):
        total = None
        drift = 0.0
        for grid, count in side:
            step = grid.pmf()
            truncated = grids.truncation(cut, count)
            pay(int(20 * grids.cells(grid, count, cut)))
            many = step if count == 1 else step.self_compose(count, tail_mass_truncation=truncated)
            total = many if total is None else total.compose(many, tail_mass_truncation=truncated)
            drift += grid.drift * count
        composed.append(total)
        drifts.append(drift)
    return PrivacyLossDistribution(*composed), max(drifts)


@lru_cache(maxsize=64)
def _moments(profile: Profile, width: float, cut: float) -> tuple[np.ndarray, float]:
    """Per direction the composed log-moments at ``ORDERS`` (worst of both), and the composed mass at +∞."""
    logs, lost = [], []
    for side in _directions(profile, width, cut):
        logs.append(np.sum([count * (grid.log_moments(ORDERS) + ORDERS * grid.drift) for grid, count in side], axis=0))
        lost.append(-math.expm1(sum(count * math.log1p(-min(grid.infinity, 0.5)) for grid, count in side)))
    return np.max(logs, axis=0), max(lost)


def _moment_epsilon(profile: Profile, delta: float, width: float, cut: float) -> float:
    return grids.moment_epsilon(*_moments(profile, width, cut), delta)


def _moment_delta(profile: Profile, epsilon: float, width: float, cut: float) -> float:
    logs, lost = _moments(profile, width, cut)
    return min(1.0, lost + math.exp(min(0.0, float(np.min(logs + SHARP - ORDERS * epsilon)))))


def _total_variation(profile: Profile, width: float, cut: float) -> float:
    """Sum over steps of δ(0), which bounds the composed δ(0); 0 is a grid point, where the grid is exact."""
    return max(
        sum(count * float(grid.pmf().get_delta_for_epsilon(-grid.drift)) for grid, count in side)
        for side in _directions(profile, width, cut)
    )


@lru_cache(maxsize=64)
def _spread(profile: Profile, width: float, cut: float) -> float:
    """Standard deviation of the composed loss as a grid of this width sees it (a coarse grid sees more)."""
    return max(
        math.sqrt(sum(count * grid.variance() for grid, count in side)) for side in _directions(profile, width, cut)
    )


def _fits(profile: Profile, width: float, cut: float) -> bool:
    """Whether dp_accounting's windows for these compositions stay within ``COMPOSED`` cells."""
    return all(
        sum(grids.cells(grid, count, cut) for grid, count in side) <= COMPOSED
        for side in _directions(profile, width, cut)
    )


def _width(profile: Profile, scale: float, spread: float, cut: float) -> float:
    return grids.width(profile.steps, scale, spread, _loss_span(profile, cut), _CELLS)


def _first_guess(profile: Profile, delta: float, cut: float) -> tuple[float, float]:
    """A moment bound on a coarse grid: certified, often within a third; and that grid's width."""
    width = grids.coarse_width(_loss_span(profile, cut))
    return _moment_epsilon(profile, delta, width, cut), width


def _settled_width(profile: Profile, delta: float, cut: float) -> float:
    """The width at which ε at ``delta`` stops asking for a finer grid."""
    _, width = _first_guess(profile, delta, cut)
    epsilon = _epsilon(profile, delta)
    for _ in range(8):
        finer = _width(profile, epsilon, _spread(profile, width, cut), cut)
        if finer >= width:
            break
        width = finer
    return width


def _epsilon(profile: Profile, delta: float) -> float:
    return _solved(profile, delta)[0]


@lru_cache(maxsize=4096)
def _solved(profile: Profile, delta: float) -> tuple[float, float | None]:
    """ε at ``delta``, and the width of the grid that was composed for it last; None where moments alone decided."""
    cut = grids.cut(delta, profile.steps)
    best, width = _first_guess(profile, delta, cut)
    if _total_variation(profile, width, cut) <= delta:
        return 0.0, None
    room = delta - grids.rounding(profile.steps)
    tried, used = math.inf, None
    for _ in range(6):
        width = min(width, _width(profile, best, _spread(profile, width, cut), cut))
        if width >= tried:
            break
        tried = width
        composes = room > 0 and _fits(profile, width, cut)
        found = math.inf
        if not composes or room < delta / 2:
            found = _moment_epsilon(profile, delta, width, cut)
        if composes:
            used = width
            distribution, drift = _distribution(profile, width, cut)
            found = min(found, grids.invert(distribution.get_delta_for_epsilon, room, best) + drift)
        best = min(best, found)
        if best <= FINEST:
            break
    if delta - room > grids.BLURRED * delta and FINEST < best < math.inf:
        best = min(best, tilted.epsilon(_tails(profile, width, cut), delta, best))
    return best, used


@lru_cache(maxsize=512)
def _curve(profile: Profile, delta: float) -> Curve:
    """δ at evenly spread ε down to the floor; where ε at ``delta`` is next to nothing, from what it takes at the floor."""
    slack = grids.rounding(profile.steps)
    floor = floor_of(delta, slack)
    epsilon, width = _solved(profile, delta)
    wanted = delta
    if width is None or epsilon <= FINEST:
        wanted = floor
        epsilon, width = _solved(profile, floor)
    cut = grids.cut(wanted, profile.steps)
    if width is None:
        return _moment_curve(profile, floor, cut)
    distribution, drift = _distribution(profile, width, cut)
    sides = [distribution._pmf_remove, *([] if distribution._symmetric else [distribution._pmf_add])]
    epsilons, deltas = grids.points(sides, drift, slack, floor, POINTS)
    return Curve(epsilons, deltas, floor, profile.whole)


def _moment_curve(profile: Profile, floor: float, cut: float) -> Curve:
    epsilon, width = _first_guess(profile, floor, cut)
    logs, lost = _moments(profile, width, cut)
    epsilons = np.linspace(0.0, epsilon if math.isfinite(epsilon) else 0.0, POINTS if epsilon else 1)
    deltas = lost + np.exp(np.minimum(0.0, np.min((logs + SHARP)[:, None] - ORDERS[:, None] * epsilons, axis=0)))
    deltas[0] = min(deltas[0], _total_variation(profile, width, cut))
    return Curve(epsilons, np.minimum(deltas, 1.0), floor, profile.whole)


@lru_cache(maxsize=4096)
def _delta(profile: Profile, epsilon: float) -> float:
    slack = grids.rounding(profile.steps)
    small = max(_FAR, 100 * slack)
    bound, width = _far_bound(profile, epsilon)  # within a factor of some ten
    if bound < 1e3 * small and (far := _far_delta(profile, epsilon, bound, width)) < small:
        return far
    wanted = 1e-6
    best = 1.0
    while True:
        cut = grids.cut(wanted, profile.steps)
        width = _settled_width(profile, wanted, cut)
        if not _fits(profile, width, cut):
            break
        distribution, drift = _distribution(profile, width, cut)
        best = min(best, float(distribution.get_delta_for_epsilon(epsilon - drift)) + slack)
        if best >= wanted / 100 or wanted < slack:
            break
        wanted *= 1e-4
    if 100 * slack <= best < 1:
        return best
    return min(best, _far_delta(profile, epsilon, bound, width))


def _far_bound(profile: Profile, epsilon: float) -> tuple[float, float]:
    """What moments say of δ however small it is, and the width of the grid they are taken from."""
    width = 2.0 ** math.ceil(math.log2(_loss_span(profile, _NOTHING) / _CELLS))
    return _moment_delta(profile, epsilon, width, _NOTHING), width


def _far_delta(profile: Profile, epsilon: float, bound: float, width: float) -> float:
    """δ below what a plain transform resolves: ``bound`` is of moments, a tilted transform is sharper (tilted.py)."""
    if not 0 < bound < 1:
        return bound
    cut = 10.0 ** max(20 * math.floor(math.log10(bound * grids.TAIL / profile.steps) / 20), -280)
    finer = _width(profile, max(epsilon, FINEST), _spread(profile, width, _NOTHING), cut) / 4
    floor = 2.0 ** math.ceil(math.log2(_loss_span(profile, cut) / _CELLS))
    return min(bound, max(tail.delta(epsilon) for tail in _tails(profile, max(finer, floor), cut)))


@lru_cache(maxsize=4)
def _tails(profile: Profile, width: float, cut: float) -> list[Tail]:
    return [Tail(side) for side in _directions(profile, width, cut)]
