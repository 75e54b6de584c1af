"""One-run bounds from a whole privacy curve: against a linear programme over all laws, and never above the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom, norm

from taciturn.auditing.lower_bounds.f_dp import Curve, curve_of, gaussian, mu_lower, refuted, rejected
from taciturn.auditing.lower_bounds.noise_level import MOST, SelectiveSteps, Steps, noise_upper
from taciturn.auditing.lower_bounds.one_run import OneRun, one_run
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian, SelectiveGaussian


def worst(m: int, r: int, v: int, curve: Curve) -> float:
    """The largest P(right ≥ v) of any law on 0 … r that meets, for every level and every line of the curve, the inequality
    the module begins with; as a linear programme."""
    j = np.arange(r + 1)
    rows, limits = [], []
    for i in range(1, r + 1):
        right, wrong = np.where(j >= i, j / m, 0), np.where(j >= i - 1, (r - j) / m, 0)
        for e, d in zip(curve.epsilons, curve.deltas, strict=True):
            rows.append(math.exp(-e) * right - wrong)
            limits.append(math.exp(-e) * d)
            rows.append(math.exp(e) * right - wrong)
            limits.append(math.exp(e) - 1 + d)
    found = linprog(-(j >= v).astype(float), np.array(rows), limits, np.ones((1, r + 1)), [1.0])
    return float(-found.fun)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 9), st.integers(0, 6), st.floats(0, 1),
    st.lists(st.tuples(st.floats(0, 2), st.floats(0, 0.3)), min_size=1, max_size=3),
)  # fmt: skip
def test_refuted_exactly_when_no_law_allows_it(
    r: int, more: int, share: float, lines: list[tuple[float, float]]
) -> None:
    """Whatever law of the number of right guesses meets the inequalities, the greedy one is the last to give way."""
    m, v = r + more, max(1, round(share * r))
    curve = Curve(np.array([e for e, _ in lines]), np.array([d for _, d in lines]))
    most = worst(m, r, v, curve)
    assert not refuted(m, r, v, curve, most * (1 - 1e-6) - 1e-9) if most > 1e-6 else True
    assert most > 1 - 1e-6 or refuted(m, r, v, curve, most * (1 + 1e-6) + 1e-6)


def test_binomial_guesses_of_randomised_response_are_allowed() -> None:
    """Randomised response meets its own curve: its tail is never refuted (every level holds with equality)."""
    for e, r, m in [(0.0, 10, 10), (1.0, 20, 30), (3.0, 40, 40)]:
        pure = Curve(np.array([e]), np.zeros(1))
        for v in range(1, r + 1):
            tail = float(binom.sf(v - 1, r, math.exp(e) / (1 + math.exp(e))))
            assert not refuted(m, r, v, pure, tail * (1 - 1e-9))


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
def test_the_truth_is_not_refuted_and_nearly_reached(sigma: float) -> None:
    """300 audits of 1000 Gaussian canaries at 95 %: more than 28 misses has probability 1e-3, were the bound exact."""
    rng = np.random.default_rng(8)
    found = [one_run(rng.normal(1, sigma, 500), rng.normal(0, sigma, 500), shares=(0.25,), seed=i) for i in range(300)]
    assert sum(rejected(each, gaussian(1 / sigma)) for each in found) <= 28
    bounds = np.array([mu_lower(each) for each in found[:100]])
    assert np.median(bounds) > {0.5: 0.9, 1.0: 0.4, 3.0: 0.05}[sigma]


def test_at_least_as_tight_as_one_epsilon_and_delta_for_a_gaussian() -> None:
    """At δ = 1e-5, by the Gaussian of the refuted μ against Steinke's bound; medians of 60 audits."""
    rng = np.random.default_rng(9)
    for sigma in (0.5, 1.0):
        found = [one_run(rng.normal(1, sigma, 500), rng.normal(0, sigma, 500), shares=(0.25,)) for _ in range(60)]
        ours = [_gaussian_epsilon(mu_lower(each), 1e-5) for each in found]
        theirs = [each.eps(1e-5) for each in found]
        assert np.median(ours) >= np.median(theirs)


def _gaussian_epsilon(mu: float, delta: float) -> float:
    """Balle and Wang 2018, Theorem 8."""
    low, high = 0.0, 100.0
    for _ in range(60 if mu else 0):
        e = (low + high) / 2
        value = norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu)
        low, high = (e, high) if value > delta else (low, e)
    return high if mu else 0.0


def test_the_curve_of_a_ledger_is_the_gaussian_it_is() -> None:
    """One full-batch step of σ = 2 is G_{1/2}; g of the certified curve is at most that, and nearly so."""
    curve, exact = curve_of(compose({PoissonGaussian(1.0, 2.0): 1}, "add-remove")), gaussian(0.5)
    for R in (0.02, 0.1, 0.3, 0.5, 0.8, 0.97):
        assert exact(R) - 0.01 < curve(R) <= exact(R) + 1e-9


def test_noise_is_bounded_as_a_multiple_of_the_ledgers() -> None:
    once = OneRun(2000, (500,), (490,))
    steps = Steps({PoissonGaussian(1.0, 1.0): 1, NonPrivate(("public",)): 7}, "add-remove")
    factor = noise_upper(once, steps)
    assert 0.3 < factor < 0.9
    assert rejected(once, steps.curve(factor * 1.01))
    assert noise_upper(OneRun(2000, (500,), (260,)), steps) == MOST
    assert noise_upper(OneRun(2000, (500,), (300,)), steps) > 1


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="right ≤ guesses"):
        refuted(10, 11, 3, gaussian(1.0), 0.05)


def test_steps_of_selective_dpsgd_are_a_family_as_well() -> None:
    """One step with everybody drawn, σ_eff = 1/√2 and records at ±1: G_μ with μ = 2√2; other noise is a factor of μ."""
    steps = SelectiveSteps(SelectiveGaussian(1.0, 1.0, 1.0, 1), 1)
    for factor in (1.0, 4.0, 8.0):
        curve, exact = steps.curve(factor), gaussian(2 * math.sqrt(2) / factor)
        for R in (0.2, 0.5, 0.8, 0.95):
            assert exact(R) - 0.03 < curve(R) <= exact(R) + 1e-9
    once = OneRun(2000, (500,), (400,))
    factor, mu = noise_upper(once, steps), mu_lower(once)
    assert 1 < factor * mu / (2 * math.sqrt(2)) < 1.25  # never too high
