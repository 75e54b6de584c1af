"""How fine a grid of losses must be, whether its composition fits in memory, and what is read off it; all rounded upwards.

Shared by composed.py, whose steps have one pair each, and mixture_coins.py, whose steps are averages of several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from dp_accounting.pld.pld_pmf import PLDPmf
from scipy.optimize import brentq

from taciturn.privacy.accounting.pairs import Array, Grid

TAIL = 1e-6  # share of δ spent on cut tails
COMPOSED = 1 << 20  # most cells of a composition; beyond, the moment bound answers alone
FINEST = 1e-7  # ε below this is reported as an upper bound, not resolved further
BLURRED = 1e-4  # share of δ that a plain transform may misplace before ε is asked of a tilted one (tilted.py)
ORDERS = np.geomspace(1e-4, 1e9, 105)
# (1 − e^{−y})₊ ≤ e^{θy}·θ^θ/(1+θ)^{1+θ}: the sharp constant between a moment and a hockey-stick divergence.
SHARP = ORDERS * np.log(ORDERS) - (1 + ORDERS) * np.log1p(ORDERS)


def cut(delta: float, steps: int) -> float:
    """Tail mass per step that may be cut when the answer is wanted at ``delta``: a power of ten, so that answers at δ of
    one decade come from one composition."""
    return max(10.0 ** math.floor(math.log10(delta * TAIL / steps)), 1e-280)


def truncation(tail: float, steps: int) -> float:
    """What dp_accounting may truncate of a composition of ``steps``."""
    return max(tail, 1e-18) * steps


def rounding(steps: int) -> float:
    """Generous bound on what the transforms of a ``steps``-fold composition can misplace.

    A transform of 2^20 cells is off by a few times 20·u (u = 2^-53) relative to its norm, raising it to the power T
    multiplies that by T, and Parseval carries it to the mass.
    """
    return steps * 2.0**-46


def moment_epsilon(logs: Array, lost: float, delta: float) -> float:
    """ε from log-moments at ``ORDERS`` and the mass at +∞: certified without any transform, often within a third."""
    if lost >= delta:
        return math.inf
    return max(0.0, float(np.min((logs + SHARP - math.log(delta - lost)) / ORDERS)))


def infinite_mass(infinity: float, steps: int) -> float:
    """Mass at +∞ after ``steps``."""
    return -math.expm1(steps * math.log1p(-min(infinity, 0.5)))


def cells(grid: Grid, steps: int, tail: float) -> float:
    """Cells of dp_accounting's window for ``steps`` of one grid.

    It cuts by Chernoff bounds of orders ±1/range … ±20/range; three of them tell how wide that will be.
    """
    orders = np.array([1.0, 5.0, 20.0]) / (len(grid.probs) * grid.width)
    need = math.log(2 / truncation(tail, steps))
    above = np.min((steps * grid.log_moments(orders) + need) / orders)
    below = np.min((steps * grid.log_moments(-orders) + need) / orders)
    return min(float(above + below) / grid.width, float(steps * len(grid.probs)))


def coarse_width(span: float) -> float:
    """Where to begin: some thousand cells over the whole range of one step's loss."""
    return float(2.0 ** math.ceil(math.log2(max(span, FINEST) / 4096)))


def width(steps: int, scale: float, spread: float, span: float, most: int) -> float:
    """Grid width (a power of two, so that grid points are exact) for an ε near ``scale``: ``most`` cells over ``span``.

    Rounding to the grid adds variance ≤ width²/4 and mean ≤ width²/8 a step. Both must stay small, the first against
    the composed loss's variance ``spread``² (at least (scale/5)², as ε is a few deviations), the second against scale.
    """
    scale = min(max(scale, FINEST), 1e9)
    wanted = 0.028 / math.sqrt(steps) * min(math.sqrt(scale), max(scale / 5, min(spread, 1.0)))
    return float(2.0 ** math.floor(math.log2(max(wanted, span / most))))


def invert(delta_at: Callable[[float], float], delta: float, high: float) -> float:
    """Smallest ε, to 1e-8 of ``high`` and on the safe side, with ``delta_at(ε)`` ≤ ``delta``; ∞ if none up to 16 × ``high``.

    dp_accounting's own inverse walks the cells in Python; this asks for δ a dozen times.
    """

    def excess(epsilon: float) -> float:
        return math.log(max(delta_at(epsilon), 1e-300) / delta)

    if excess(0.0) <= 0:
        return 0.0
    high = min(max(high, FINEST), 1e12)
    for _ in range(5):
        if excess(high) <= 0:
            break
        high *= 2
    else:
        return math.inf
    root = float(brentq(excess, 0.0, high, xtol=1e-9 * high, rtol=1e-9))
    while excess(root) > 0:
        root += 1e-8 * high
    return root


def deltas(composed: PLDPmf, epsilons: Array) -> Array:
    """δ of one composed direction at many ε (ascending), with what adding up so many cells may lose.

    dp_accounting answers one ε at a time, or many in a Python loop; a test holds the two together.
    """
    dense = composed.to_dense_pmf()
    losses = (np.arange(dense.size) + dense._lower_loss) * dense._discretization
    first = int(np.searchsorted(losses, epsilons[0], side="right"))
    losses, probs = losses[first:], np.clip(dense._probs[first:], 0, None)
    upper = np.append(np.cumsum(probs[::-1])[::-1], 0.0)
    with np.errstate(divide="ignore"):
        lower = np.append(np.logaddexp.accumulate((np.log(probs) - losses)[::-1])[::-1], -np.inf)
    at = np.searchsorted(losses, epsilons, side="right")
    lost = 4 * len(probs) * np.finfo(float).eps * upper[at]
    return np.asarray(dense._infinity_mass + np.maximum(upper[at] - np.exp(epsilons + lower[at]), 0.0) + lost)


def points(sides: Sequence[PLDPmf], drift: float, slack: float, floor: float, most: int) -> tuple[Array, Array]:
    """(ε, δ) of the worse direction at ``most`` even steps from 0 to where δ falls to ``floor`` (or the grid ends)."""

    def worst(epsilons: Array) -> Array:
        worse = np.max([deltas(each, epsilons - drift) for each in sides], axis=0)
        return np.asarray(np.minimum(1.0, worse + slack))

    top = drift + max(_top(each) for each in sides)
    coarse = np.linspace(0.0, top, 4097)
    low = np.flatnonzero(worst(coarse) <= floor)
    epsilons = np.linspace(0.0, coarse[low[0]] if len(low) else top, most)
    return epsilons, worst(epsilons)


def _top(composed: PLDPmf) -> float:
    """The largest finite loss, 0 if it is negative."""
    dense = composed.to_dense_pmf()
    return max(0.0, float((dense._lower_loss + dense.size - 1) * dense._discretization))
