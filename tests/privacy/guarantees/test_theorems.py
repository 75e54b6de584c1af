from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from taciturn.errors import UsageError
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian
from taciturn.privacy.accounting.largest_group import largest_group
from taciturn.privacy.guarantees.theorems import (
    bayesian,
    bayesian_delta_reverse,
    bayesian_simple,
    group,
    group_blackbox_delta,
    group_blackbox_epsilon,
    labels_needed,
    recall_bound,
)

few = settings(max_examples=12, deadline=None)
RUN = compose({PoissonGaussian(0.1, 3.0): 100}, "substitution")


# Recall


@given(st.integers(0, 60), st.integers(0, 400), st.floats(0.5, 0.999))
def test_the_recall_bound_is_where_the_binomial_tail_meets_the_confidence(misses, more, confidence):
    labelled = misses + more
    bound = recall_bound(misses, labelled, confidence)
    if more == 0:
        assert bound == 1
    elif bound == 1:  # the tail meets it within one secret of the mean: no bound for draws without replacement
        assert misses > 0
        assert binom.cdf(misses, labelled, (misses + 1) / labelled) <= (1 - confidence) * (1 + 1e-6)
    else:
        assert binom.cdf(misses, labelled, bound) == pytest.approx(1 - confidence, rel=1e-6)


def test_recall_values_and_labels_needed():
    assert recall_bound(20, 200) == pytest.approx(0.141989, abs=1e-6)
    assert recall_bound(0, 200) == pytest.approx(1 - 0.05 ** (1 / 200), rel=1e-9)
    assert labels_needed(8e-5) == 37446
    assert recall_bound(2, labels_needed(0.01, misses=2)) <= 0.01 < recall_bound(2, labels_needed(0.01, misses=2) - 1)
    with pytest.raises(UsageError):
        recall_bound(5, 3)


# Groups


@few
@given(st.floats(0, 3), st.floats(1e-9, 1e-3), st.integers(1, 12))
def test_the_black_box_is_the_geometric_sum_and_beats_the_papers(epsilon, delta, k):
    exact = delta * math.fsum(math.exp(i * epsilon) for i in range(k))
    assert group_blackbox_delta(epsilon, delta, k) == pytest.approx(exact, rel=1e-9)
    assert exact <= k * math.exp(k * epsilon) * delta * (1 + 1e-12)
    assert group_blackbox_delta(5e-324, delta, k) == pytest.approx(k * delta)
    assert group_blackbox_delta(1000.0, delta, k + 1) == math.inf


def test_group_values():
    """The black box must search the curve itself; the tight pair must not exceed it."""
    assert RUN.epsilon(8e-5) == pytest.approx(2.3977, abs=0.003)
    two = group(RUN, 2, 8e-5)
    assert two.blackbox == pytest.approx(5.759, abs=0.006)
    assert two.tight == pytest.approx(5.4046, abs=0.006)
    assert group(RUN, 5, 8e-5).tight == pytest.approx(17.0, abs=0.1)
    single = RUN.epsilon(8e-5)
    naive = 2 * single
    assert group_blackbox_epsilon(RUN, 2, 8e-5) > naive, "k·ε at the same δ is not a bound"


@few
@given(st.floats(0.01, 1), st.floats(0.8, 8), st.integers(1, 200), st.floats(1e-7, 1e-3), st.integers(1, 6))
def test_tight_never_exceeds_the_black_box(q, sigma, steps, delta, k):
    profile = compose({PoissonGaussian(q, sigma): steps}, "substitution")
    bound = group(profile, k, delta)
    assert bound.tight <= bound.blackbox * (1 + 2e-3) + 1e-5
    if k == 1:
        assert bound.epsilon == profile.epsilon(delta)


def test_largest_group():
    k = largest_group(RUN, 8e-5)
    assert RUN.for_group(k).epsilon(8e-5) <= 10 < RUN.for_group(k + 1).epsilon(8e-5)
    assert largest_group(RUN, 8e-5, limit=0.1) == 0
    assert largest_group(compose({}, "substitution"), 1e-5, most=50) == 50


# Bayesian


@dataclass(frozen=True)
class Finite:
    """The exact curve of two finite distributions, in both directions."""

    p: np.ndarray
    q: np.ndarray

    def delta(self, epsilon):
        a = math.exp(epsilon)
        return max(np.maximum(self.q - a * self.p, 0).sum(), np.maximum(self.p - a * self.q, 0).sum())


def test_both_directions_hold_for_random_finite_mechanisms():
    """D: with chance 1−γ the mechanism of D' (p), γ−δ₂ the private one (q), δ₂ anything (z). 400 draws, no violation."""
    rng = np.random.default_rng(3)
    for _ in range(400):
        p, q, z = (rng.dirichlet(np.full(4, c)) for c in (0.5, 0.5, 0.3))
        gamma = rng.uniform(0.01, 0.95)
        delta2 = rng.uniform(0, gamma)
        curve = Finite(p, q)
        mixed = (1 - gamma) * p + (gamma - delta2) * q + delta2 * z
        for at in rng.uniform(0, 2, 4):
            a = math.exp(at)
            forward = gamma * curve.delta(math.log1p(math.expm1(at) / gamma)) + delta2
            assert np.maximum(mixed - a * p, 0).sum() <= forward + 1e-12
            reverse = bayesian_delta_reverse(curve, at, gamma, delta2)  # type: ignore[arg-type]
            assert np.maximum(p - a * mixed, 0).sum() <= reverse + 1e-12


@few
@given(st.floats(0.01, 1), st.floats(0.8, 8), st.integers(1, 200), st.floats(1e-7, 1e-3))
def test_a_policy_that_misses_everything_gives_the_plain_epsilon(q, sigma, steps, delta):
    profile = compose({PoissonGaussian(q, sigma): steps}, "substitution")
    bound = bayesian(profile, 1.0, 0.0, delta)
    assert bound.forward == pytest.approx(profile.epsilon(delta), rel=1e-9)
    assert bound.epsilon == pytest.approx(profile.epsilon(delta), rel=2e-3, abs=1e-4)


@few
@given(st.floats(0.02, 0.9), st.floats(1.05, 1.1))
def test_worse_miss_rates_never_help(gamma, factor):
    base = bayesian(RUN, gamma, 0.0, 8e-5).epsilon
    assert bayesian(RUN, min(1.0, gamma * factor), 0.0, 8e-5).epsilon >= base - 1e-5
    assert bayesian(RUN, gamma, 4e-5, 8e-5).epsilon >= base - 1e-5


def test_bayesian_edges():
    assert bayesian(RUN, 0.0, 0.0, 8e-5).epsilon == 0
    assert bayesian(RUN, 7e-5, 7e-5, 8e-5).epsilon == 0
    assert bayesian(RUN, 0.1, 8e-5, 8e-5).epsilon == math.inf
    assert bayesian(RUN, 0.1, 0.0, 8e-5).reverse <= -math.log(0.9)
    with pytest.raises(UsageError, match="delta2"):
        bayesian(RUN, 0.1, 0.2, 8e-5)


def test_the_papers_example():
    """ε = 1 at δ = 8e-5 under add/remove, γ = .1, q = .1, T = 100: the paper prints .12, exact arithmetic .1107; the
    same run under substitution, the relation its definition uses, gives .35."""
    sigma = 3.436995
    add_remove = compose({PoissonGaussian(0.1, sigma): 100}, "add-remove")
    assert bayesian(add_remove, 0.1, 0.0, 8e-5).forward == pytest.approx(0.1107, abs=2e-4)
    substitution = compose({PoissonGaussian(0.1, sigma): 100}, "substitution")
    assert bayesian(substitution, 0.1, 0.0, 8e-5).forward == pytest.approx(0.35, abs=0.01)
    assert bayesian_simple(1.0, 0.1) == pytest.approx(0.158565, abs=1e-6)


@pytest.mark.parametrize("m", [0.0, 0.01, 0.3, 1.0])
def test_the_average_over_a_miss_is_where_the_mixture_of_the_curves_meets_delta(m):
    from taciturn.privacy.guarantees.theorems import averaged

    detected = compose({PoissonGaussian(0.02, 1.5): 100}, "substitution")
    missed = compose({PoissonGaussian(0.02, 1.5): 100, PoissonGaussian(0.05, 0.8): 50}, "substitution")
    epsilon, delta = averaged(detected, missed, m, 1e-4)
    assert delta == 1e-4
    mixture = (1 - m) * detected.delta(epsilon) + m * missed.delta(epsilon)
    below = (1 - m) * detected.delta(0.999 * epsilon) + m * missed.delta(0.999 * epsilon)
    assert mixture <= 1e-4 < below
    raw = compose({PoissonGaussian(0.02, 1.5): 100, NonPrivate(("redacted",)): 5}, "substitution")
    epsilon, delta = averaged(detected, raw, m, 1e-4)
    assert delta == pytest.approx(1e-4 if m < 1e-4 else min(1e-4 + m, 1))
    rest = (delta - m) / (1 - m) if m < 1 else 0.0
    assert epsilon == (detected.epsilon(rest) if rest > 0 else math.inf)
