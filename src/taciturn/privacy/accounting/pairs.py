"""Dominating pairs of one step, and their privacy loss on a grid.

Every pair here is a pair of Gaussian mixtures on the line, in units of C,

    P = Σ_j upper_j · Normal(+j, σ²)    against    Q = Σ_j lower_j · Normal(−j, σ²),    j = 0, 1, …, k,

whose privacy loss log dP/dQ grows with x. docs/guarantees.md proves that these pairs dominate a step:

    substitution of k records    upper = lower = Bin(k, q)                     (its mirror is the same pair)
    removal of k records         upper = Bin(k, q), lower = {0}
    addition of k records        upper = {0},       lower = Bin(k, q)

dp_accounting has them for k = 1 (and removal for any k), but inverts the loss point by point in Python; this file
does all of them at once with numpy and hands dp_accounting the grid to compose. Tests hold the two together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from dp_accounting.pld.pld_pmf import DensePLDPmf
from scipy.special import gammaln, log_ndtr, ndtr, ndtri, xlog1py, xlogy

from taciturn.privacy.accounting.effort import pay
from taciturn.privacy.accounting.events import PoissonGaussian, Relation

Array = npt.NDArray[np.float64]

_TABLE = 4097  # points of x that bracket the inverse of the loss
GRID = 100_000  # evaluations of each component of a mixture that the coarsest grid takes, about
_BLOCK = 1 << 20  # numbers in one (points of x, components) block: 8 MiB


@dataclass(frozen=True, slots=True)
class Mixture:
    """Weights (logarithms) on the multiples ``j`` of C; they sum to 1 − ``dropped``, which is charged as lost."""

    j: Array
    log_weight: Array
    dropped: float = 0.0


@dataclass(frozen=True, slots=True)
class Pair:
    """``upper`` sits at +j, ``lower`` at −j; ``sigma`` is noise / C."""

    upper: Mixture
    lower: Mixture
    sigma: float


@dataclass(frozen=True, slots=True)
class Grid:
    """A dominating discrete loss: mass ``probs[i]`` at ``(low + i)·width``, ``infinity`` at +∞.

    ``drift`` bounds how far a loss may lie above its grid point through rounding in the inversion.
    """

    width: float
    low: int
    probs: Array
    infinity: float
    drift: float

    def pmf(self) -> DensePLDPmf:
        return DensePLDPmf(self.width, self.low, self.probs, self.infinity, pessimistic_estimate=True)

    def variance(self) -> float:
        """Variance of the finite losses."""
        losses = (self.low + np.arange(len(self.probs))) * self.width
        mass = float(self.probs.sum())
        mean = float(self.probs @ losses) / mass
        return float(self.probs @ (losses - mean) ** 2) / mass

    def log_moments(self, orders: Array) -> Array:
        """log E_P[exp(θ·loss); loss < ∞] for each θ."""
        pay(len(orders) * len(self.probs))
        keep = self.probs > 0
        losses = (self.low + np.flatnonzero(keep)) * self.width
        log_probs = np.log(self.probs[keep])
        return np.concatenate(
            [_log_sum_exp(orders[part, None] * losses + log_probs, 1)[0] for part in _blocks(len(orders), len(losses))]
        )


def binomial(k: int, rate: float, tail: float) -> Mixture:
    """Bin(k, rate) without the two tails of mass ≤ ``tail`` each."""
    j = np.arange(k + 1, dtype=float)
    log_choose = gammaln(k + 1) - gammaln(j + 1) - gammaln(k - j + 1)
    log_weight = log_choose + xlogy(j, rate) + xlog1py(k - j, -rate)
    weight = np.exp(log_weight)
    keep = (np.cumsum(weight) > tail) & (np.cumsum(weight[::-1])[::-1] > tail) & (weight > 0)
    return Mixture(j[keep], log_weight[keep], float(weight[~keep].sum()))


def dominating(event: PoissonGaussian, relation: Relation, group: int, tail: float) -> tuple[Pair, ...]:
    """Every direction of one step for ``group`` changed records (one pair where the two directions agree)."""
    drawn = binomial(group, event.rate, tail)
    nothing = Mixture(np.zeros(1), np.zeros(1))
    if relation == "substitution":
        return (Pair(drawn, drawn, event.noise_multiplier),)
    removal = Pair(drawn, nothing, event.noise_multiplier)
    if event.rate == 1:
        return (removal,)
    return (removal, Pair(nothing, drawn, event.noise_multiplier))


def components(k: int, rate: float) -> float:
    """About how many of Bin(k, rate) are kept: seven deviations on either side."""
    return min(k + 1.0, 1 + 14 * math.sqrt(k * rate * (1 - rate)))


def _blocks(points: int, components: int) -> Iterator[slice]:
    """All points, as many at once as keep a block of (points, components) small."""
    rows = max(1, _BLOCK // components)
    return (slice(start, start + rows) for start in range(0, points, rows))


def _log_ratio(mixture: Mixture, x: Array, sigma: float) -> tuple[Array, Array]:
    """log(density of the mixture at x / density of Normal(0, σ²)) and its derivative."""
    pay(2 * len(x) * len(mixture.j))
    if len(mixture.j) == 1:  # a straight line
        (middle,) = mixture.j
        return mixture.log_weight + middle * (x - middle / 2) / sigma**2, np.full_like(x, middle / sigma**2)
    j = mixture.j[:, None]
    value, slope = np.empty_like(x), np.empty_like(x)
    for part in _blocks(len(x), len(mixture.j)):
        exponent = mixture.log_weight[:, None] + j * (x[part] - j / 2) / sigma**2
        value[part], weight = _log_sum_exp(exponent, 0)
        slope[part] = (mixture.j @ weight) / weight.sum(axis=0) / sigma**2
    return value, slope


def _log_sum_exp(exponent: Array, axis: int) -> tuple[Array, Array]:
    """log Σ exp along ``axis``, and the exponentials as shares of the largest; ``exponent`` is written over."""
    peak = exponent.max(axis=axis, keepdims=True)
    exponent -= peak
    weight = np.exp(exponent, out=exponent)
    return np.squeeze(peak, axis) + np.log(weight.sum(axis=axis)), weight


def loss(pair: Pair, x: Array) -> tuple[Array, Array]:
    """Privacy loss log dP/dQ at x and its derivative; increasing in x."""
    up, up_slope = _log_ratio(pair.upper, x, pair.sigma)
    down, down_slope = _log_ratio(pair.lower, -x, pair.sigma)
    return up - down, up_slope + down_slope


def support(pair: Pair, tail: float) -> tuple[float, float]:
    """An interval of x outside which P has mass ≤ ``tail`` on either side."""
    reach = -float(ndtri(tail)) * pair.sigma
    j, weight = pair.upper.j, np.exp(pair.upper.log_weight)
    pay(4 * _TABLE * len(j))
    x = np.linspace(j[0] - reach, j[-1] + reach, _TABLE)
    above = np.concatenate([ndtr((j - x[part, None]) / pair.sigma) @ weight for part in _blocks(_TABLE, len(j))])
    return float(x[0]), float(x[np.argmax(above <= tail)] if above[-1] <= tail else x[-1])


def loss_range(pair: Pair, tail: float) -> tuple[float, float]:
    """Loss at the two ends of :func:`support`."""
    ends, _ = loss(pair, np.array(support(pair, tail)))
    return float(ends[0]), float(ends[1])


def _inverse(pair: Pair, targets: Array, low: float, high: float) -> tuple[Array, float]:
    """x with loss(x) = target, between ``low`` and ``high``; and the largest residual left (it is charged later)."""
    table = np.linspace(low, high, _TABLE)
    values = np.maximum.accumulate(loss(pair, table)[0])
    cell = np.clip(np.searchsorted(values, targets), 1, _TABLE - 1)
    left, right = table[cell - 1], table[cell]
    x = np.clip(np.interp(targets, values, table), left, right)
    for _ in range(3):  # Newton inside the bracket; three steps reach rounding error from 1/4096 of the range
        value, slope = loss(pair, x)
        x = np.clip(x - (value - targets) / np.maximum(slope, 1e-300), left, right)
    residual = np.abs(loss(pair, x)[0] - targets)
    return np.maximum.accumulate(x), float(residual.max(initial=0.0))


def _cell_mass(edges: Array, mixture: Mixture, sign: int, sigma: float, log_scale: Array | float) -> Array:
    """exp(log_scale) × mass of the mixture between consecutive edges, without cancellation or underflow."""
    pay(8 * len(edges) * len(mixture.j))
    mass = np.zeros(len(edges) - 1)
    for j, log_weight in zip(mixture.j, mixture.log_weight, strict=True):
        z = (edges - sign * j) / sigma
        tail = log_ndtr(-np.abs(z))  # beyond each edge, away from the mean
        flip = z[1:] + z[:-1] > 0  # right of the mean: use the upper tail
        near = np.where(flip, tail[:-1], tail[1:])
        far = np.where(flip, tail[1:], tail[:-1])
        across = np.flatnonzero((z[:-1] < 0) & (z[1:] > 0))  # the cell that holds the mean: all but the farther tail
        near[across] = np.log1p(-np.exp(near[across]))
        mass += np.exp(np.minimum(log_weight + log_scale + near, 700)) * -np.expm1(far - near)
    return mass


@lru_cache(maxsize=16)
def step_grids(event: PoissonGaussian, relation: Relation, group: int, width: float, tail: float) -> tuple[Grid, ...]:
    """One step's loss in each direction; kept, as moments, spread and composition ask for the same grid."""
    return tuple(discretise(pair, width, tail) for pair in dominating(event, relation, group, tail))


def discretise(pair: Pair, width: float, tail: float) -> Grid:
    """The pair's loss on the multiples of ``width``, pessimistic, P-mass ≤ ``tail`` sent to +∞.

    Each cell's mass goes to its two ends so that the mass under P *and* under Q stays what it was: the hockey-stick
    divergence becomes its chord between grid points, which lies above it because it is convex (Doroshenko, Ghazi,
    Kamath, Kumar, Manurangsi 2022, Connect the Dots). The error is second order in ``width``, so it does not pile
    up over many steps of small rate.
    """
    low, high = support(pair, tail)
    ends, _ = loss(pair, np.array([low, high]))
    first = int(np.floor(ends[0] / width))
    last = max(int(np.ceil(ends[1] / width)), first + 1)
    inner, residual = _inverse(pair, width * np.arange(first + 1, last, dtype=np.float64), low, high)
    edges = np.concatenate(([low], inner, [high]))

    bottom = width * np.arange(first, last, dtype=np.float64)
    under_p = _cell_mass(edges, pair.upper, +1, pair.sigma, 0.0)
    under_q = _cell_mass(edges, pair.lower, -1, pair.sigma, bottom)  # times exp(bottom), at most under_p
    rounding = 8 * np.finfo(float).eps
    up = np.clip((under_p * (1 + rounding) - under_q + rounding * under_p) / -np.expm1(-width), 0, under_p)

    probs = np.zeros(last - first + 1)
    probs[1:] += up
    probs[:-1] += under_p - up
    weight = np.exp(pair.upper.log_weight)
    probs[1] += float(ndtr((low - pair.upper.j) / pair.sigma) @ weight)
    above = float(ndtr((pair.upper.j - high) / pair.sigma) @ weight)
    return Grid(width, first, probs, above + pair.upper.dropped, residual)
