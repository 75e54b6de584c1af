"""Composition of steps whose pair of mixtures depends on coins that both worlds see.

The accountant knows one kind of step: one binomial, at one rate. Here a step is a *law*: in each direction a list of
pairs (pairs.py), one per outcome of coins that are the same in both neighbouring worlds. Such an outcome may be told
to the attacker, so the loss of a step is the average of the losses' distributions, Σ_j Pr(j)·PLD_j, and never the loss
of the average mixture, which is smaller because it hides j (docs/guarantees.md, UeDP). Everything is rounded upwards
the way composed.py does it: cut tails, transforms and the inversion of the loss are charged to δ or to ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Protocol

import numpy as np
from dp_accounting.pld.pld_pmf import PLDPmf

from taciturn.errors import UsageError
from taciturn.privacy.accounting import grids, tilted
from taciturn.privacy.accounting.effort import check_effort, pay
from taciturn.privacy.accounting.grids import COMPOSED, FINEST, ORDERS
from taciturn.privacy.accounting.pairs import GRID, Array, Grid, Mixture, Pair, discretise, loss_range
from taciturn.privacy.accounting.tilted import Tail
from taciturn.privacy.accounting.tradeoff import NOTHING, POINTS, Curve, floor_of

_CELLS = 1 << 16  # most cells of one step


@dataclass(frozen=True, slots=True)
class Side:
    """One direction of a step: (probability, pair) per outcome of the shared coins; ``dropped`` is charged as lost."""

    outcomes: tuple[tuple[float, Pair], ...]
    dropped: float = 0.0


class Law(Protocol):
    """A hashable description of ``steps`` equal steps."""

    @property
    def steps(self) -> int: ...

    @property
    def whole(self) -> float:
        """μ of all steps if every coin were heads (see :attr:`taciturn.privacy.accounting.composed.Composed.whole`)."""
        ...

    def __hash__(self) -> int: ...

    def sides(self, tail: float) -> tuple[Side, ...]:
        """Every direction of one step, mixtures cut at mass ``tail``."""
        ...


def merge(positions: Array, weights: Array) -> Mixture:
    """The mixture with ``weights`` at ``positions`` (any order, repeats allowed; zero weights vanish)."""
    at, index = np.unique(positions, return_inverse=True)
    total = np.bincount(index.ravel(), weights=weights.ravel(), minlength=len(at))
    return Mixture(at[total > 0].astype(float), np.log(total[total > 0]))


def convolve(first: Mixture, second: Mixture) -> Mixture:
    """The law of the sum of two independent counts.

    >>> from taciturn.privacy.accounting.pairs import binomial
    >>> both = convolve(binomial(2, 0.5, 0.0), binomial(1, 0.5, 0.0))
    >>> both.j.tolist(), np.exp(both.log_weight).round(3).tolist()
    ([0.0, 1.0, 2.0, 3.0], [0.125, 0.375, 0.375, 0.125])
    """
    pay(len(first.j) * len(second.j))
    weights = np.convolve(_dense(first), _dense(second))
    merged = merge(first.j.min() + second.j.min() + np.arange(len(weights)), weights)
    return Mixture(merged.j, merged.log_weight, first.dropped + second.dropped)


def _dense(counts: Mixture) -> Array:
    """The weight of every whole number from the least to the largest."""
    at = (counts.j - counts.j.min()).astype(int)
    return np.asarray(np.bincount(at, weights=np.exp(counts.log_weight)), dtype=float)


def average(side: Side, width: float, tail: float) -> Grid:
    """Σ_j Pr(j)·PLD_j on the multiples of ``width``."""
    parts = [(weight, discretise(pair, width, tail)) for weight, pair in side.outcomes]
    low = min(grid.low for _, grid in parts)
    probs = np.zeros(max(grid.low + len(grid.probs) for _, grid in parts) - low)
    for weight, grid in parts:
        probs[grid.low - low : grid.low - low + len(grid.probs)] += weight * grid.probs
    infinity = side.dropped + sum(weight * grid.infinity for weight, grid in parts)
    return Grid(width, low, probs, infinity, max(grid.drift for _, grid in parts))


def _moment_epsilon(sides: list[Grid], steps: int, delta: float) -> float:
    """Certified without any transform, the worse of the directions."""
    return max(
        grids.moment_epsilon(
            steps * (each.log_moments(ORDERS) + ORDERS * each.drift), grids.infinite_mass(each.infinity, steps), delta
        )
        for each in sides
    )


def _worst(composed: list[PLDPmf], epsilon: float) -> float:
    """δ at ``epsilon`` of the worse direction."""
    return max(float(each.get_delta_for_epsilon(epsilon)) for each in composed)


def _width(made: list[Grid], span: float, steps: int, scale: float) -> float:
    return grids.width(steps, scale, max(math.sqrt(steps * grid.variance()) for grid in made), span, _CELLS)


@lru_cache(maxsize=4)
def _grids(law: Law, width: float, cut: float) -> list[Grid]:
    """One step's loss in each direction."""
    return [average(side, width, cut) for side in law.sides(cut)]


@lru_cache(maxsize=2)
def _composed(law: Law, width: float, cut: float) -> tuple[list[PLDPmf], float]:
    """Both directions composed, and by how much their losses may be too small."""
    made = _grids(law, width, cut)
    truncated = grids.truncation(cut, law.steps)
    pay(int(20 * sum(grids.cells(grid, law.steps, cut) for grid in made)))
    composed = [grid.pmf().self_compose(law.steps, tail_mass_truncation=truncated) for grid in made]
    return composed, law.steps * max(grid.drift for grid in made)


@lru_cache(maxsize=1024)
def _solved(law: Law, delta: float) -> tuple[float, float | None]:
    """ε at ``delta``, and the width of the grid that was composed for it last; None where moments alone decided."""
    steps = law.steps
    cut = grids.cut(delta, steps)
    sides = law.sides(cut)
    check_effort(2 * GRID * sum(len(pair.upper.j) + len(pair.lower.j) for side in sides for _, pair in side.outcomes))
    ends = [loss_range(pair, cut) for side in sides for _, pair in side.outcomes]
    span = max(high for _, high in ends) - min(low for low, _ in ends)

    width = grids.coarse_width(span)
    made = _grids(law, width, cut)
    best, tried = _moment_epsilon(made, steps, delta), math.inf
    room = delta - grids.rounding(steps)
    used = None
    for _ in range(6):
        finer = min(width, _width(made, span, steps, best))
        if finer >= tried:
            break
        if finer < width:
            made = _grids(law, finer, cut)
        width = tried = finer
        if room > delta / 2 and all(grids.cells(grid, steps, cut) <= COMPOSED for grid in made):
            used = width
            composed, drift = _composed(law, width, cut)
            best = min(best, grids.invert(partial(_worst, composed), room, best) + drift)
        else:
            best = min(best, _moment_epsilon(made, steps, delta))
        if best <= FINEST:
            break
    if delta - room > grids.BLURRED * delta and FINEST < best < math.inf:
        best = min(best, tilted.epsilon([Tail([(grid, steps)]) for grid in made], delta, best))
    return best, used


@lru_cache(maxsize=256)
def curve(law: Law, delta: float) -> Curve:
    """Points of the whole curve, from what ε at ``delta`` was read off (as ``Composed.curve`` of composed.py)."""
    if not law.steps:
        return NOTHING
    slack = grids.rounding(law.steps)
    floor = floor_of(delta, slack)
    for wanted in (delta, floor):
        found, width = _solved(law, wanted)
        if width is not None and (found > FINEST or wanted == floor):
            composed, drift = _composed(law, width, grids.cut(wanted, law.steps))
            return Curve(*grids.points(composed, drift, slack, floor, POINTS), floor, law.whole)
    return Curve(np.array([found]), np.array([floor]), floor, law.whole)


def epsilon(law: Law, delta: float) -> float:
    """Smallest certified ε of the composed ``law`` at ``delta`` in (0, 1), the worse of its directions."""
    if isinstance(delta, bool) or not 0 < delta < 1:
        raise UsageError(f"delta: expected a probability in (0, 1), found {delta!r}")
    return _solved(law, float(delta))[0]
