from __future__ import annotations

import math
from itertools import pairwise, product
from statistics import NormalDist

import dp_accounting
import numpy as np
import pytest
from dp_accounting.dp_event import MixtureOfGaussiansDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from privacy_oracle import epsilon_bracket, one_step_delta
from scipy.stats import norm

from taciturn.errors import UsageError
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian
from taciturn.privacy.accounting.pairs import discretise, dominating, support

RELATIONS = ("add-remove", "substitution")
rates = st.floats(1e-4, 1.0)
sigmas = st.floats(0.4, 20.0)
steps = st.integers(1, 2000)
deltas = st.floats(1e-9, 1e-2)
relations = st.sampled_from(RELATIONS)
few = settings(max_examples=15, deadline=None)


def epsilon(q, sigma, steps, delta, relation, k=1):
    return compose({PoissonGaussian(q, sigma): steps}, relation, k).epsilon(delta)


# Against arithmetic of our own


@pytest.mark.parametrize(
    ("q", "sigma", "at", "k"),
    [(0.1, 1.0, 0.5, 1), (0.01, 0.7, 1.0, 1), (0.1, 1.0, 0.5, 2), (0.1, 2.0, 1.0, 5), (0.3, 1.5, 0.1, 3)],
)
@pytest.mark.parametrize("relation", RELATIONS)
def test_one_step_is_the_exact_hockey_stick(q, sigma, at, k, relation):
    exact = one_step_delta(q, sigma, at, k, relation)
    ours = compose({PoissonGaussian(q, sigma): 1}, relation, k).delta(at)
    assert exact <= ours <= exact * (1 + 1e-4)


@pytest.mark.parametrize(
    ("steps", "delta", "k", "width", "limit"),
    [
        ([(0.01, 1.0, 1000)], 1e-5, 1, 1e-5, 8),
        ([(0.1, 2.0, 100)], 8e-5, 1, 1e-5, 10),
        ([(1.0, 10.0, 30)], 1e-5, 1, 1e-5, 12),
        ([(0.1, 3.0, 100)], 8e-5, 2, 1e-5, 12),
        ([(0.05, 8.0, 200)], 8e-5, 5, 1e-5, 10),
        ([(0.01, 1.0, 500), (0.02, 1.2, 300)], 1e-5, 1, 1e-5, 8),
    ],
)
@pytest.mark.parametrize("relation", RELATIONS)
def test_many_steps_lie_between_rounding_down_and_up(steps, delta, k, width, limit, relation):
    low, high = epsilon_bracket(steps, delta, k, relation, width, limit)
    ours = compose({PoissonGaussian(q, s): count for q, s, count in steps}, relation, k).epsilon(delta)
    assert low <= ours <= high
    assert ours - low < 0.02


@pytest.mark.parametrize(
    ("q", "sigma", "count", "delta", "add_remove", "substitution"),
    [
        (0.01, 1.0, 1000, 1e-5, 1.8282, 2.8434),
        (0.1, 2.0, 100, 8e-5, 2.0038, 3.8480),
        (0.001, 0.6, 2000, 1e-6, 2.3549, 2.4163),
        (1.0, 10.0, 30, 1e-5, 2.2071, 4.8661),
    ],
)
def test_values_agreed_by_two_other_codes(q, sigma, count, delta, add_remove, substitution):
    assert epsilon(q, sigma, count, delta, "add-remove") == pytest.approx(add_remove, rel=2e-4)
    assert epsilon(q, sigma, count, delta, "substitution") == pytest.approx(substitution, rel=2e-4)


@pytest.mark.parametrize(("relation", "name"), [("add-remove", "ADD_OR_REMOVE_ONE"), ("substitution", "REPLACE_ONE")])
@pytest.mark.parametrize(("q", "sigma", "count"), [(0.05, 1.5, 60), (0.5, 4.0, 20), (0.002, 0.7, 300)])
def test_our_grid_agrees_with_the_one_dp_accounting_builds(relation, name, q, sigma, count):
    theirs = PLDAccountant(dp_accounting.NeighboringRelation[name], value_discretization_interval=1e-3)
    theirs.compose(dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma)), count)
    assert epsilon(q, sigma, count, 1e-5, relation) == pytest.approx(theirs.get_epsilon(1e-5), rel=2e-3)


def test_removing_a_group_agrees_with_dp_accounting():
    k, q, sigma, count = 4, 0.1, 3.0, 50
    weights = [math.comb(k, j) * q**j * (1 - q) ** (k - j) for j in range(k + 1)]
    theirs = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=1e-3)
    theirs.compose(MixtureOfGaussiansDpEvent(sigma, list(range(k + 1)), weights), count)
    assert epsilon(q, sigma, count, 1e-5, "add-remove", k) == pytest.approx(theirs.get_epsilon(1e-5), rel=2e-3)


def test_full_batches_are_one_gaussian():
    """q = 1 composes to a Gaussian of noise σ/√T, whose curve has a closed form (Balle and Wang 2018)."""
    phi = NormalDist().cdf
    for sigma, count, shift in ((10.0, 30, 2), (3.0, 1, 2), (5.0, 7, 1)):
        mu = shift * math.sqrt(count) / sigma
        profile = compose({PoissonGaussian(1.0, sigma): count}, "substitution" if shift == 2 else "add-remove")
        for at in (0.0, 0.3, 1.0, 3.0):
            exact = phi(mu / 2 - at / mu) - math.exp(at) * phi(-mu / 2 - at / mu)
            assert exact <= profile.delta(at) <= exact * (1 + 1e-3) + 1e-11


def test_each_cell_keeps_its_mass_under_both_distributions():
    for relation, k in product(RELATIONS, (1, 6)):
        for pair in dominating(PoissonGaussian(0.2, 1.3), relation, k, 1e-12):
            grid = discretise(pair, 2.0**-8, 1e-12)
            low, high = support(pair, 1e-12)
            losses = (grid.low + np.arange(len(grid.probs))) * grid.width
            between = norm.cdf(high, -pair.lower.j, pair.sigma) - norm.cdf(low, -pair.lower.j, pair.sigma)
            assert grid.probs.sum() + grid.infinity == pytest.approx(1, abs=1e-12)
            assert np.exp(pair.lower.log_weight) @ between - 1e-9 <= grid.probs @ np.exp(-losses) <= 1 + 1e-9


# The relation matters


def test_the_add_remove_epsilon_is_beaten_under_substitution():
    """One full-batch step, σ = 1, gradients +C and −C: the event "sum > t" separates D from D' by more than (ε, δ)."""
    delta = 1e-5
    claimed = epsilon(1.0, 1.0, 1, delta, "add-remove")
    phi = NormalDist().cdf
    threshold = claimed / 2  # where log N(1,1)/N(−1,1) = 2t equals the claim
    excess = phi(1 - threshold) - math.exp(claimed) * phi(-1 - threshold)
    assert excess > 100 * delta
    assert compose({PoissonGaussian(1.0, 1.0): 1}, "substitution").delta(claimed) >= excess


def test_no_pair_of_gradients_beats_the_dominating_pair():
    """Random gradients a, b in the unit disc, sampled with the same coin: δ by two-dimensional quadrature."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        q, sigma, alpha = rng.uniform(0.05, 0.9), rng.uniform(0.6, 2), math.exp(rng.uniform(-1, 1.5))
        x = np.linspace(-7 * sigma - 1, 7 * sigma + 1, 401)
        X, Y = np.meshgrid(x, x)
        cell = (x[1] - x[0]) ** 2 / (2 * math.pi * sigma**2)

        def density(centre, q=q, sigma=sigma, X=X, Y=Y):
            bump = lambda u, v: np.exp(-((X - u) ** 2 + (Y - v) ** 2) / (2 * sigma**2))  # noqa: E731
            return (1 - q) * bump(0, 0) + q * bump(*centre)

        angle, radius = rng.uniform(0, 2 * math.pi, 2), np.sqrt(rng.uniform(0, 1, 2))
        a, b = [(r * math.cos(t), r * math.sin(t)) for r, t in zip(radius, angle, strict=True)]
        found = float(np.maximum(density(a) - alpha * density(b), 0).sum() * cell)
        assert found <= compose({PoissonGaussian(q, sigma): 1}, "substitution").delta(math.log(alpha)) + 1e-6


@few
@given(rates, sigmas, st.floats(-1, 3))
def test_both_directions_of_add_and_remove_are_covered(q, sigma, at):
    both = compose({PoissonGaussian(q, sigma): 1}, "add-remove").delta(at)
    for pair in dominating(PoissonGaussian(q, sigma), "add-remove", 1, 1e-12):
        width = 2.0 ** math.floor(math.log2(0.01 / sigma))
        one = float(discretise(pair, width, 1e-12).pmf().get_delta_for_epsilon(at))
        chord = (math.exp(width) - 1) * math.exp(at)  # how far a chord can lie above the curve between grid points
        assert one <= both + chord


# Shape


@few
@given(rates, sigmas, steps, deltas, relations, st.floats(1.2, 3))
def test_monotone_in_everything(q, sigma, count, delta, relation, factor):
    base = epsilon(q, sigma, count, delta, relation)
    slack = 1e-3 * base + 2e-6
    assert epsilon(q, sigma, math.ceil(count * factor), delta, relation) >= base - slack
    assert epsilon(min(1.0, q * factor), sigma, count, delta, relation) >= base - slack
    assert epsilon(q, sigma * factor, count, delta, relation) <= base + slack
    assert epsilon(q, sigma, count, delta * factor, relation) <= base + slack
    assert epsilon(q, sigma, count, delta, "substitution") >= epsilon(q, sigma, count, delta, "add-remove") - slack


@few
@given(rates, sigmas, steps, deltas, relations)
def test_epsilon_and_delta_are_inverse(q, sigma, count, delta, relation):
    profile = compose({PoissonGaussian(q, sigma): count}, relation)
    found = profile.epsilon(delta)
    assume(found > 1e-4)
    assert profile.delta(found) <= delta * (1 + 1e-2)
    assert profile.delta(found * 0.99) > delta * (1 - 1e-2)


@few
@given(rates, sigmas, steps, deltas, relations, st.integers(2, 12))
def test_groups_cost_more_and_a_group_of_one_is_one(q, sigma, count, delta, relation, k):
    profile = compose({PoissonGaussian(q, sigma): count}, relation)
    assert profile.for_group(1).epsilon(delta) == profile.epsilon(delta)
    assert profile.for_group(k).epsilon(delta) >= profile.epsilon(delta) * (1 - 1e-3) - 2e-6


@few
@given(rates, sigmas, st.integers(1, 300), st.integers(1, 300), deltas, relations)
def test_composition_only_counts(q, sigma, first, second, delta, relation):
    event = PoissonGaussian(q, sigma)
    together = compose({event: first + second}, relation)
    assert compose([event] * (first + second), relation) == together
    apart = compose({event: first, PoissonGaussian(q, sigma * (1 + 1e-9)): second}, relation)
    assert apart.epsilon(delta) == pytest.approx(together.epsilon(delta), rel=1e-3, abs=2e-6)


@pytest.mark.parametrize(("relation", "k"), [("add-remove", 1), ("substitution", 20)])
def test_six_decades_stay_finite_and_monotone_in_the_rate(relation, k):
    for sigma, count, delta in product((0.3, 1.0, 30.0), (1, 100_000), (1e-2, 1e-8)):
        found = [epsilon(q, sigma, count, delta, relation, k) for q in (1e-6, 1e-3, 1.0)]
        assert all(0 <= each < math.inf for each in found)
        assert all(a <= b * (1 + 1e-3) + 1e-4 for a, b in pairwise(found))


def test_far_tails_fall_back_to_moments():
    """δ below what a transform can resolve still has a finite, certified ε (here against the Gaussian closed form)."""
    profile = compose({PoissonGaussian(1.0, 50.0): 100_000}, "add-remove")
    mu = math.sqrt(100_000) / 50
    found = profile.epsilon(1e-30)
    assert mu**2 / 2 + 10.5 * mu < found < mu**2 / 2 + 13.5 * mu


# Trivial curves


def test_noiseless_reading_of_private_text_costs_everything():
    profile = compose({NonPrivate(("private",)): 1, PoissonGaussian(0.1, 1.0): 5}, "substitution")
    assert profile.epsilon(1e-5) == math.inf
    assert profile.delta(3.0) == 1
    assert profile.reason is not None
    assert "private" in profile.reason


def test_public_text_and_skeletons_are_free():
    noisy = {PoissonGaussian(0.1, 1.0): 5}
    profile = compose({**noisy, NonPrivate(("public", "skeletons")): 400}, "substitution")
    assert profile.epsilon(1e-5) == compose(noisy, "substitution").epsilon(1e-5)
    assert compose({NonPrivate(("public",)): 7}, "substitution").epsilon(1e-5) == 0
    assert compose({}, "add-remove").delta(0.0) == 0


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, math.nan, True])
def test_delta_must_be_a_probability(delta):
    with pytest.raises(UsageError, match="delta"):
        compose({}, "substitution").epsilon(delta)
