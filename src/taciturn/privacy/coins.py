"""Composition of steps whose pair of mixtures depends on coins that both worlds see.

The accountant knows one kind of step: one binomial, at one rate. Here a step is a *law*: in each direction a list of
pairs (pairs.py), one per outcome of coins that are the same in both neighbouring worlds. Such an outcome may be told
to the attacker, so the loss of a step is the average of the losses' distributions, Σ_j Pr(j)·PLD_j, and never the loss
of the average mixture, which is smaller because it hides j (docs/guarantees.md, UeDP). Everything is rounded upwards
the way accountant.py does it: cut tails, transforms and the inversion of the loss are charged to δ or to ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from dp_accounting.pld.pld_pmf import PLDPmf
from scipy.optimize import brentq

from taciturn.errors import UsageError
from taciturn.privacy.pairs import Array, Grid, Mixture, Pair, discretise, loss_range

_TAIL = 1e-6  # share of δ spent on cut tails
_CELLS = 1 << 16  # most cells of one step
_COMPOSED = 1 << 20  # most cells of the composition; beyond, the moment bound answers alone
_FINEST = 1e-7  # ε below this is an upper bound, not resolved further
_ORDERS = np.geomspace(1e-4, 1e9, 105)
# (1 − e^{−y})₊ ≤ e^{θy}·θ^θ/(1+θ)^{1+θ}: the sharp constant between a moment and a hockey-stick divergence.
_SHARP = _ORDERS * np.log(_ORDERS) - (1 + _ORDERS) * np.log1p(_ORDERS)


@dataclass(frozen=True, slots=True)
class Side:
    """One direction of a step: (probability, pair) per outcome of the shared coins; ``dropped`` is charged as lost."""

    outcomes: tuple[tuple[float, Pair], ...]
    dropped: float = 0.0


class Law(Protocol):
    """A hashable description of ``steps`` equal steps."""

    @property
    def steps(self) -> int: ...

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

    >>> from taciturn.privacy.pairs import binomial
    >>> both = convolve(binomial(2, 0.5, 0.0), binomial(1, 0.5, 0.0))
    >>> both.j.tolist(), np.exp(both.log_weight).round(3).tolist()
    ([0.0, 1.0, 2.0, 3.0], [0.125, 0.375, 0.375, 0.125])
    """
    weights = np.exp(first.log_weight[:, None] + second.log_weight)
    merged = merge(first.j[:, None] + second.j, weights)
    return Mixture(merged.j, merged.log_weight, first.dropped + second.dropped)


def average(side: Side, width: float, tail: float) -> Grid:
    """Σ_j Pr(j)·PLD_j on the multiples of ``width``."""
    grids = [(weight, discretise(pair, width, tail)) for weight, pair in side.outcomes]
    low = min(grid.low for _, grid in grids)
    probs = np.zeros(max(grid.low + len(grid.probs) for _, grid in grids) - low)
    for weight, grid in grids:
        probs[grid.low - low : grid.low - low + len(grid.probs)] += weight * grid.probs
    infinity = side.dropped + sum(weight * grid.infinity for weight, grid in grids)
    return Grid(width, low, probs, infinity, max(grid.drift for _, grid in grids))


def _moment_epsilon(grids: list[Grid], steps: int, delta: float) -> float:
    """Certified without any transform, often within a third of the truth."""
    worst = 0.0
    for grid in grids:
        lost = -math.expm1(steps * math.log1p(-min(grid.infinity, 0.5)))
        if lost >= delta:
            return math.inf
        logs = steps * (grid.log_moments(_ORDERS) + _ORDERS * grid.drift)
        worst = max(worst, float(np.min((logs + _SHARP - math.log(delta - lost)) / _ORDERS)))
    return worst


def _fits(grid: Grid, steps: int, cut: float) -> bool:
    """Whether dp_accounting's window (Chernoff, orders ±1/range … ±20/range) stays within ``_COMPOSED`` cells."""
    orders = np.array([1.0, 5.0, 20.0]) / (len(grid.probs) * grid.width)
    need = math.log(2 / (max(cut, 1e-18) * steps))
    above = np.min((steps * grid.log_moments(orders) + need) / orders)
    below = np.min((steps * grid.log_moments(-orders) + need) / orders)
    return min(float(above + below) / grid.width, float(steps * len(grid.probs))) <= _COMPOSED


def _width(grids: list[Grid], span: float, steps: int, scale: float) -> float:
    """Grid width (a power of two) for an ε near ``scale``; the reasons are accountant.py's."""
    spread = max(math.sqrt(steps * grid.variance()) for grid in grids)
    scale = min(max(scale, _FINEST), 1e9)
    wanted = 0.028 / math.sqrt(steps) * min(math.sqrt(scale), max(scale / 5, min(spread, 1.0)))
    return float(2.0 ** math.floor(math.log2(max(wanted, span / _CELLS))))


def _invert(composed: list[PLDPmf], delta: float, high: float) -> float:
    """Smallest ε, to 1e-8 of ``high`` and on the safe side, with δ(ε) ≤ ``delta`` in every direction."""

    def excess(epsilon: float) -> float:
        worst = max(float(each.get_delta_for_epsilon(epsilon)) for each in composed)
        return math.log(max(worst, 1e-300) / delta)

    if excess(0.0) <= 0:
        return 0.0
    high = min(max(high, _FINEST), 1e12)
    while excess(high) > 0:
        high *= 2
        if high > 1e13:
            return math.inf
    root = float(brentq(excess, 0.0, high, xtol=1e-9 * high, rtol=1e-9))
    while excess(root) > 0:
        root += 1e-8 * high
    return root


@lru_cache(maxsize=1024)
def _epsilon(law: Law, delta: float) -> float:
    steps = law.steps
    cut = max(delta * _TAIL / steps, 1e-280)
    sides = law.sides(cut)
    ends = [loss_range(pair, cut) for side in sides for _, pair in side.outcomes]
    span = max(high for _, high in ends) - min(low for low, _ in ends)

    width = float(2.0 ** math.ceil(math.log2(max(span, _FINEST) / 4096)))
    grids = [average(side, width, cut) for side in sides]
    best, tried = _moment_epsilon(grids, steps, delta), math.inf
    room = delta - steps * 2.0**-46  # what the transforms can misplace; see accountant._rounding
    for _ in range(6):
        finer = min(width, _width(grids, span, steps, best))
        if finer >= tried:
            break
        if finer < width:
            grids = [average(side, finer, cut) for side in sides]
        width = tried = finer
        if room > delta / 2 and all(_fits(grid, steps, cut) for grid in grids):
            truncation = max(cut, 1e-18) * steps
            composed = [grid.pmf().self_compose(steps, tail_mass_truncation=truncation) for grid in grids]
            best = min(best, _invert(composed, room, best) + steps * max(grid.drift for grid in grids))
        else:
            best = min(best, _moment_epsilon(grids, steps, delta))
        if best <= _FINEST:
            break
    return best


def epsilon(law: Law, delta: float) -> float:
    """Smallest certified ε of the composed ``law`` at ``delta`` in (0, 1), the worse of its directions."""
    if isinstance(delta, bool) or not 0 < delta < 1:
        raise UsageError(f"delta: expected a probability in (0, 1), found {delta!r}")
    return _epsilon(law, float(delta))
