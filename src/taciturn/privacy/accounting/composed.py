"""Gaussian steps composed to (ε, δ): privacy loss distributions by dp_accounting, always rounded upwards.

The grid follows the answer. A moment bound gives a first ε, the grid width is set from it, and the grid is refined
until the answer no longer asks for a finer one; so neither a tiny ε (a fine grid) nor a huge one (a wide range) costs
more than a few million cells. Where a composition would be wider than that (ε in the thousands), and for δ that a
transform cannot resolve, the moment bound itself is the answer: certified, but somewhat high. Whatever is cut off or
lost to rounding is charged to δ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

from taciturn.privacy.accounting import grids, tilted
from taciturn.privacy.accounting.effort import pay
from taciturn.privacy.accounting.events import PoissonGaussian, Relation
from taciturn.privacy.accounting.grids import COMPOSED, FINEST, ORDERS, SHARP
from taciturn.privacy.accounting.pairs import Grid, dominating, loss_range, step_grids
from taciturn.privacy.accounting.tilted import Tail
from taciturn.privacy.accounting.tradeoff import POINTS, Curve, floor_of

_CELLS = 1 << 17  # most cells of one step
_NOTHING = 1e-250  # mass cut where δ itself may be tiny
_FAR = 1e-9  # δ below this is asked of a tilted transform

Counts = tuple[tuple[PoissonGaussian, int], ...]


@dataclass(frozen=True, slots=True)
class Composed:
    """Steps by event, at least one, for ``group`` records changed by ``relation``: what their noise alone promises."""

    counts: Counts
    relation: Relation
    group: int = 1

    @property
    def steps(self) -> int:
        return sum(count for _, count in self.counts)

    @property
    def whole(self) -> float:
        """μ of the same steps on full batches, which bounds every curve down to δ = 0: a coin that both worlds share may be
        told to the attacker, and what was drawn then moves the sum by the whole distance at most."""
        distance = (2 if self.relation == "substitution" else 1) * self.group
        return distance * math.sqrt(sum(count / event.noise_multiplier**2 for event, count in self.counts))

    def epsilon(self, delta: float) -> float:
        """Smallest certified ε at ``delta`` in (0, 1)."""
        return _solved(self, delta)[0]

    def delta(self, epsilon: float) -> float:
        """Certified bound of both hockey-stick divergences at a finite ``epsilon``."""
        return _delta(self, epsilon)

    def curve(self, delta: float) -> Curve:
        """Points of the whole curve, from what the computation of ε at ``delta`` has composed already."""
        return _curve(self, delta)


def _directions(run: Composed, width: float, cut: float) -> list[list[tuple[Grid, int]]]:
    """For each direction (removal, addition; or the symmetric one) the grids of all events with their counts."""
    each_event = [(step_grids(event, run.relation, run.group, width, cut), count) for event, count in run.counts]
    directions = max(len(each) for each, _ in each_event)
    return [[(each[min(d, len(each) - 1)], count) for each, count in each_event] for d in range(directions)]


@lru_cache(maxsize=256)
def _loss_span(run: Composed, cut: float) -> float:
    """Length of the range of one step's loss, over events and directions."""
    ranges = [
        loss_range(pair, cut) for event, _ in run.counts for pair in dominating(event, run.relation, run.group, cut)
    ]
    return max(high for _, high in ranges) - min(low for low, _ in ranges)


@lru_cache(maxsize=2)
def _distribution(run: Composed, width: float, cut: float) -> tuple[PrivacyLossDistribution, float]:
    """The composed loss distribution, and by how much its losses may be too small."""
    composed, drifts = [], []
    for side in _directions(run, width, cut):
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
def _moments(run: Composed, width: float, cut: float) -> tuple[np.ndarray, float]:
    """Per direction the composed log-moments at ``ORDERS`` (worst of both), and the composed mass at +∞."""
    logs, lost = [], []
    for side in _directions(run, width, cut):
        logs.append(np.sum([count * (grid.log_moments(ORDERS) + ORDERS * grid.drift) for grid, count in side], axis=0))
        lost.append(-math.expm1(sum(count * math.log1p(-min(grid.infinity, 0.5)) for grid, count in side)))
    return np.max(logs, axis=0), max(lost)


def _moment_epsilon(run: Composed, delta: float, width: float, cut: float) -> float:
    return grids.moment_epsilon(*_moments(run, width, cut), delta)


def _moment_delta(run: Composed, epsilon: float, width: float, cut: float) -> float:
    logs, lost = _moments(run, width, cut)
    return min(1.0, lost + math.exp(min(0.0, float(np.min(logs + SHARP - ORDERS * epsilon)))))


def _total_variation(run: Composed, width: float, cut: float) -> float:
    """Sum over steps of δ(0), which bounds the composed δ(0); 0 is a grid point, where the grid is exact."""
    return max(
        sum(count * float(grid.pmf().get_delta_for_epsilon(-grid.drift)) for grid, count in side)
        for side in _directions(run, width, cut)
    )


@lru_cache(maxsize=64)
def _spread(run: Composed, width: float, cut: float) -> float:
    """Standard deviation of the composed loss as a grid of this width sees it (a coarse grid sees more)."""
    return max(math.sqrt(sum(count * grid.variance() for grid, count in side)) for side in _directions(run, width, cut))


def _fits(run: Composed, width: float, cut: float) -> bool:
    """Whether dp_accounting's windows for these compositions stay within ``COMPOSED`` cells."""
    return all(
        sum(grids.cells(grid, count, cut) for grid, count in side) <= COMPOSED for side in _directions(run, width, cut)
    )


def _width(run: Composed, scale: float, spread: float, cut: float) -> float:
    return grids.width(run.steps, scale, spread, _loss_span(run, cut), _CELLS)


def _first_guess(run: Composed, delta: float, cut: float) -> tuple[float, float]:
    """A moment bound on a coarse grid: certified, often within a third; and that grid's width."""
    width = grids.coarse_width(_loss_span(run, cut))
    return _moment_epsilon(run, delta, width, cut), width


def _settled_width(run: Composed, delta: float, cut: float) -> float:
    """The width at which ε at ``delta`` stops asking for a finer grid."""
    _, width = _first_guess(run, delta, cut)
    epsilon = run.epsilon(delta)
    for _ in range(8):
        finer = _width(run, epsilon, _spread(run, width, cut), cut)
        if finer >= width:
            break
        width = finer
    return width


@lru_cache(maxsize=4096)
def _solved(run: Composed, delta: float) -> tuple[float, float | None]:
    """ε at ``delta``, and the width of the grid that was composed for it last; None where moments alone decided."""
    cut = grids.cut(delta, run.steps)
    best, width = _first_guess(run, delta, cut)
    if _total_variation(run, width, cut) <= delta:
        return 0.0, None
    room = delta - grids.rounding(run.steps)
    tried, used = math.inf, None
    for _ in range(6):
        width = min(width, _width(run, best, _spread(run, width, cut), cut))
        if width >= tried:
            break
        tried = width
        composes = room > 0 and _fits(run, width, cut)
        found = math.inf
        if not composes or room < delta / 2:
            found = _moment_epsilon(run, delta, width, cut)
        if composes:
            used = width
            distribution, drift = _distribution(run, width, cut)
            found = min(found, grids.invert(distribution.get_delta_for_epsilon, room, best) + drift)
        best = min(best, found)
        if best <= FINEST:
            break
    if delta - room > grids.BLURRED * delta and FINEST < best < math.inf:
        best = min(best, tilted.epsilon(_tails(run, width, cut), delta, best))
    return best, used


@lru_cache(maxsize=512)
def _curve(run: Composed, delta: float) -> Curve:
    """δ at evenly spread ε down to the floor; where ε at ``delta`` is next to nothing, from what it takes at the floor."""
    slack = grids.rounding(run.steps)
    floor = floor_of(delta, slack)
    epsilon, width = _solved(run, delta)
    wanted = delta
    if width is None or epsilon <= FINEST:
        wanted = floor
        epsilon, width = _solved(run, floor)
    cut = grids.cut(wanted, run.steps)
    if width is None:
        return _moment_curve(run, floor, cut)
    distribution, drift = _distribution(run, width, cut)
    sides = [distribution._pmf_remove, *([] if distribution._symmetric else [distribution._pmf_add])]
    epsilons, deltas = grids.points(sides, drift, slack, floor, POINTS)
    return Curve(epsilons, deltas, floor, run.whole)


def _moment_curve(run: Composed, floor: float, cut: float) -> Curve:
    epsilon, width = _first_guess(run, floor, cut)
    logs, lost = _moments(run, width, cut)
    epsilons = np.linspace(0.0, epsilon if math.isfinite(epsilon) else 0.0, POINTS if epsilon else 1)
    deltas = lost + np.exp(np.minimum(0.0, np.min((logs + SHARP)[:, None] - ORDERS[:, None] * epsilons, axis=0)))
    deltas[0] = min(deltas[0], _total_variation(run, width, cut))
    return Curve(epsilons, np.minimum(deltas, 1.0), floor, run.whole)


@lru_cache(maxsize=4096)
def _delta(run: Composed, epsilon: float) -> float:
    slack = grids.rounding(run.steps)
    small = max(_FAR, 100 * slack)
    bound, width = _far_bound(run, epsilon)  # within a factor of some ten
    if bound < 1e3 * small and (far := _far_delta(run, epsilon, bound, width)) < small:
        return far
    wanted = 1e-6
    best = 1.0
    while True:
        cut = grids.cut(wanted, run.steps)
        width = _settled_width(run, wanted, cut)
        if not _fits(run, width, cut):
            break
        distribution, drift = _distribution(run, width, cut)
        best = min(best, float(distribution.get_delta_for_epsilon(epsilon - drift)) + slack)
        if best >= wanted / 100 or wanted < slack:
            break
        wanted *= 1e-4
    if 100 * slack <= best < 1:
        return best
    return min(best, _far_delta(run, epsilon, bound, width))


def _far_bound(run: Composed, epsilon: float) -> tuple[float, float]:
    """What moments say of δ however small it is, and the width of the grid they are taken from."""
    width = 2.0 ** math.ceil(math.log2(_loss_span(run, _NOTHING) / _CELLS))
    return _moment_delta(run, epsilon, width, _NOTHING), width


def _far_delta(run: Composed, epsilon: float, bound: float, width: float) -> float:
    """δ below what a plain transform resolves: ``bound`` is of moments, a tilted transform is sharper (tilted.py)."""
    if not 0 < bound < 1:
        return bound
    cut = 10.0 ** max(20 * math.floor(math.log10(bound * grids.TAIL / run.steps) / 20), -280)
    finer = _width(run, max(epsilon, FINEST), _spread(run, width, _NOTHING), cut) / 4
    floor = 2.0 ** math.ceil(math.log2(_loss_span(run, cut) / _CELLS))
    return min(bound, max(tail.delta(epsilon) for tail in _tails(run, max(finer, floor), cut)))


@lru_cache(maxsize=4)
def _tails(run: Composed, width: float, cut: float) -> list[Tail]:
    return [Tail(side) for side in _directions(run, width, cut)]
