"""One-run bounds: the formula against sums over all outcomes, the truth of a known mechanism not exceeded."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from taciturn.auditing.lower_bounds.one_run import OneRun, eps_lower_one_run, one_run, p_value
from taciturn.auditing.lower_bounds.two_sided import eps_lower, eps_lower_exposure, eps_lower_exposure_once


def gaussian_delta(epsilon: float, sigma: float) -> float:
    """δ(ε) of a Gaussian mechanism of sensitivity 1 (Balle and Wang 2018, Theorem 8)."""
    a = 1 / (2 * sigma)
    return float(norm.cdf(a - epsilon * sigma) - math.exp(epsilon) * norm.cdf(-a - epsilon * sigma))


def gaussian_epsilon(delta: float, sigma: float) -> float:
    low, high = 0.0, 100.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, sigma) > delta else (low, middle)
    return high


@pytest.mark.parametrize(
    ("m", "r", "v", "epsilon", "delta"), [(12, 8, 6, 0.7, 0.01), (9, 9, 9, 0.0, 0.1), (5, 3, 0, 1.0, 0.2)]
)
def test_p_value_against_its_definition(m: int, r: int, v: int, epsilon: float, delta: float) -> None:
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    pmf = [math.comb(r, k) * q**k * (1 - q) ** (r - k) for k in range(r + 1)]
    alpha = max((sum(pmf[v - i : v]) / i for i in range(1, v + 1)), default=0.0)
    assert p_value(m, r, v, epsilon, delta) == pytest.approx(min(sum(pmf[v:]) + 2 * m * delta * alpha, 1))


def test_the_bound_inverts_the_p_value() -> None:
    for r, v, delta in [(100, 90, 0.0), (100, 90, 1e-5), (1000, 600, 1e-6), (40, 40, 0.0)]:
        eps = eps_lower_one_run(1000, r, v, delta)
        assert eps > 0
        assert p_value(1000, r, v, eps, delta) == pytest.approx(0.05, rel=1e-3)
    assert eps_lower_one_run(1000, 100, 100, 0.5) == 0.0  # with such a δ all may leak
    with pytest.raises(ValueError, match="right ≤ guesses"):
        p_value(10, 11, 3, 1.0)


@pytest.mark.parametrize(("sigma", "above"), [(0.3, 1.0), (1.0, 0.3), (4.0, 0.0)])
def test_gaussian_mechanism_is_not_exceeded(sigma: float, above: float) -> None:
    """One canary a coordinate, so ε of adding one is the Gaussian's. 300 audits at 95 %: more than 28 misses has
    probability 1e-3, were the bound exact. A large ε is seen."""
    rng = np.random.default_rng(4)
    delta, n = 1e-5, 500
    truth = gaussian_epsilon(delta, sigma)
    bounds = np.array(
        [one_run(rng.normal(1, sigma, n), rng.normal(0, sigma, n), seed=i).eps(delta) for i in range(300)]
    )
    assert (bounds > truth).sum() <= 28
    assert np.median(bounds) >= above


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
def test_bound_from_many_runs_is_not_exceeded(sigma: float) -> None:
    """The threshold is fixed at 1; 1000 + 1000 runs, 300 audits as above."""
    rng = np.random.default_rng(5)
    delta, n = 1e-5, 1000
    truth = gaussian_epsilon(delta, sigma)
    share_in, share_out = norm.sf(0, 0, sigma), norm.sf(1, 0, sigma)
    bounds = np.array(
        [eps_lower(rng.binomial(n, share_in), n, rng.binomial(n, share_out), n, delta) for _ in range(300)]
    )
    assert (bounds > truth).sum() <= 28
    assert sigma > 1 or np.median(bounds) > 0.3


def test_nothing_is_proved_of_a_model_that_never_saw_the_canaries() -> None:
    """400 null audits at 95 %: bounds above 0 at most 36 times (1e-4); p-values are not too small either."""
    rng = np.random.default_rng(6)
    found = [one_run(rng.normal(size=60), rng.normal(size=60), seed=i) for i in range(400)]
    assert sum(each.eps() > 0 for each in found) <= 36
    assert sum(each.p() < 0.05 for each in found) <= 36


def test_ties_prove_nothing() -> None:
    """All scores equal: whatever order the lists have, the guesses are coins (40 seeds, expected 2 above 0 at most)."""
    assert sum(one_run(np.ones(200), np.ones(200), seed=i).eps() > 0 for i in range(40)) <= 8


def test_sides_of_unequal_size_and_round_trip() -> None:
    found = one_run(np.arange(100, 130), np.arange(1000) / 10.0)
    assert found.canaries == 27  # 60 − 6·√30: of 30 and 1000, a part that fair coins could have drawn
    assert max(found.guesses) == 26
    assert one_run(np.arange(20.0), np.arange(30.0)).canaries == 50
    assert OneRun.from_json(found.to_json()) == found
    assert one_run(np.arange(100.0, 140.0), np.arange(40.0)).eps() > 1.5
    assert one_run(np.ones(0), np.ones(3)).eps() == 0.0


def test_exposure_bound_of_one_run_holds_when_delta_falls_on_all_canaries() -> None:
    """All n canaries leak together with probability δ, else none does: (0, δ)-DP. At δ = .05 that is one run in twenty, in
    which the form for independent runs would claim ε > 6; Markov's claims nothing."""
    n, size, rank = 10, 10**6, 1000
    assert eps_lower_exposure(n, n, rank, size, 0.05) > 6
    assert eps_lower_exposure_once(n, n, rank, size, 0.04) == pytest.approx(math.log(0.01 * (size - n + 1) / rank))
    assert eps_lower_exposure_once(n, n, rank, size, 0.05) == 0.0
    assert eps_lower_exposure_once(n, n, rank, size, 0.0) < eps_lower_exposure(n, n, rank, size, 0.0)
    assert eps_lower_exposure_once(0, n, rank, size) == 0.0
