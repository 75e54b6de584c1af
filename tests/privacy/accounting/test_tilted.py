"""δ far in the tail against closed forms, a slow convolution and sampling; and what the black box of a group gains."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import log_ndtr

from taciturn.privacy.accounting.accountant import Profile, compose
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.privacy.accounting.grids import BLURRED, rounding
from taciturn.privacy.accounting.pairs import discretise, dominating
from taciturn.privacy.accounting.tilted import Tail
from taciturn.privacy.guarantees.theorems import group, group_blackbox_epsilon

PLAN = {PoissonGaussian(0.1, 3.0): 100}


def log_gauss(epsilon: float, mu: float) -> float:
    """log δ(ε) of one Gaussian pair (Balle and Wang 2018, Theorem 8), without cancellation."""
    up, down = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return float(up + math.log(-math.expm1(down - up)))


@pytest.mark.parametrize(("relation", "distance"), [("substitution", 2.0), ("add-remove", 1.0)])
@pytest.mark.parametrize("epsilon", [20.0, 40.0, 60.0, 80.0, 100.0])
def test_full_batches_are_one_gaussian_however_far(relation: str, distance: float, epsilon: float) -> None:
    profile = compose({PoissonGaussian(1.0, 4.0): 60, PoissonGaussian(1.0, 3.0): 40}, relation)  # type: ignore[arg-type]
    exact = log_gauss(epsilon, distance * math.sqrt(60 / 16 + 40 / 9))
    if exact < math.log(1e-200):
        pytest.skip("δ below 1e-200")
    found = math.log(profile.delta(epsilon))
    assert exact <= found <= exact + 0.02


def slow(grid, steps: int, epsilon: float) -> float:
    """δ(ε) of a grid composed by convolution of positive numbers, which keeps every cell's relative precision."""
    mass, low = grid.probs, grid.low
    for _ in range(steps - 1):
        mass, low = np.convolve(mass, grid.probs), low + grid.low
    losses = (low + np.arange(len(mass))) * grid.width
    above = losses > epsilon
    return float(-np.expm1(epsilon - losses[above]) @ mass[above]) - math.expm1(steps * math.log1p(-grid.infinity))


@settings(max_examples=25, deadline=None)
@given(
    st.floats(0.005, 1), st.floats(0.7, 8), st.integers(2, 24), st.floats(0.0, 1.0),
    st.sampled_from(["substitution", "add-remove"]),
)  # fmt: skip
def test_a_tilted_transform_is_the_slow_convolution(rate, sigma, steps, share, relation) -> None:
    for pair in dominating(PoissonGaussian(rate, sigma), relation, 1, 1e-60):
        coarse = discretise(pair, 2.0**-3, 1e-60)
        width = 2.0 ** math.ceil(math.log2(2.0**-3 * len(coarse.probs) / 300))
        grid = discretise(pair, width, 1e-60)
        epsilon = share * 0.9 * steps * (grid.low + len(grid.probs)) * width
        exact, found = slow(grid, steps, epsilon), Tail([(grid, steps)]).delta(epsilon)
        assert exact * (1 - 1e-9) <= found
        if 1e-250 < exact < 1e-3:
            assert found <= exact * (1 + 1e-3)


def test_every_tilt_bounds_from_above() -> None:
    (pair,) = dominating(PoissonGaussian(0.1, 3.0), "substitution", 1, 1e-60)
    grid = discretise(pair, 2.0**-6, 1e-60)
    exact = slow(grid, 20, 3.0)
    tail = Tail([(grid, 20)])
    for theta in np.geomspace(1e-3, 1e3, 40):
        tail._theta = lambda _, theta=theta: float(theta)  # type: ignore[method-assign]
        assert tail.delta(3.0) >= exact


def sampled(profile: Profile, epsilon: float, theta: float, draws: int = 200_000) -> tuple[float, float]:
    """δ(ε) and its standard error by importance sampling of the pair itself: no grid of losses, no transform."""
    ((event, steps),) = profile.counts
    q, s = event.rate, event.noise_multiplier
    x = np.linspace(-60, 70, 1_000_001)

    def log_density(sign: int) -> np.ndarray:
        return np.logaddexp(math.log(1 - q) - x**2 / (2 * s * s), math.log(q) - (x - sign) ** 2 / (2 * s * s))

    loss, log_p = log_density(+1) - log_density(-1), log_density(+1)
    log_p -= math.log(np.exp(log_p).sum())
    weight = np.exp(log_p + theta * loss)
    kappa, edges = math.log(weight.sum()), np.cumsum(weight) / weight.sum()
    rng, total = np.random.default_rng(1), np.zeros(draws)
    for _ in range(steps):
        total += loss[np.searchsorted(edges, rng.random(draws))]
    value = np.where(total > epsilon, -np.expm1(epsilon - total), 0) * np.exp(steps * kappa - theta * total)
    return float(value.mean()), float(value.std() / math.sqrt(draws))


def test_the_tail_is_what_sampling_finds() -> None:
    """Fixed seed; five standard errors of .4 %."""
    profile = compose(PLAN, "substitution")
    mean, error = sampled(profile, 4.8, 10.0)
    assert mean == pytest.approx(3.3e-13, rel=0.03)
    assert mean - 5 * error <= profile.delta(4.8) <= mean + 5 * error


def test_the_black_box_of_a_group_is_sharp() -> None:
    """It was 25.56. In the equation it solves, sampling finds δ(ε/5) as computed."""
    profile = compose(PLAN, "substitution")
    found = group_blackbox_epsilon(profile, 5, 8e-5)
    assert 23.92 < found < 23.94
    mean, error = sampled(profile, found / 5, 10.0)
    factor = math.expm1(found) / math.expm1(found / 5)
    assert (mean - 5 * error) * factor <= 8e-5 <= (mean + 5 * error) * factor * 1.001
    bound = group(profile, 5, 8e-5)
    assert bound.tight < bound.blackbox == found


def test_delta_never_rises_with_epsilon_and_joins_the_plain_transform() -> None:
    for relation in ("substitution", "add-remove"):
        profile = compose(PLAN, relation)  # type: ignore[arg-type]
        found = [profile.delta(float(epsilon)) for epsilon in np.linspace(0.5, 12, 24)]
        assert all(later <= earlier * (1 + 2e-3) for earlier, later in pairwise(found))
        assert found[-1] < 1e-40 < 100 * rounding(100)


@pytest.mark.parametrize("steps", [100, 20_000])
@pytest.mark.parametrize("delta", [1e-9, 1e-12, 1e-20])
def test_epsilon_where_plain_transforms_are_blurred_is_above_the_closed_form_and_near(steps: int, delta: float) -> None:
    """Full batches are one Gaussian of μ = √steps/σ (Balle, Wang 2018, Theorem 8)."""
    profile = compose({PoissonGaussian(1.0, 2 * math.sqrt(steps)): steps}, "add-remove")
    assert rounding(steps) > BLURRED * delta
    found, mu = profile.epsilon(delta), 0.5
    exact = brentq(
        lambda at: log_ndtr(mu / 2 - at / mu) + math.log(-math.expm1(log_ratio(at, mu))) - math.log(delta), 0.1, 20.0
    )
    assert exact <= found * (1 + 1e-12)
    assert found <= exact * (1 + 2e-3)


def log_ratio(epsilon: float, mu: float) -> float:
    """Of the closed form's two terms."""
    return float(epsilon + log_ndtr(-mu / 2 - epsilon / mu) - log_ndtr(mu / 2 - epsilon / mu))
