"""Bounds against their definitions, and exact coverage by enumeration; simulations state their false-alarm rate."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, hypergeom

from taciturn.errors import UsageError
from taciturn.screening.bounds import (
    Stratum,
    lower,
    needed,
    needed_at,
    ratio_upper,
    stratified_lower,
    stratified_upper,
    upper,
)


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (0, 200), (1, 10), (20, 200), (199, 200)])
def test_upper_solves_the_binomial_equation(hits: int, n: int) -> None:
    root = brentq(lambda p: binom.cdf(hits, n, p) - 0.05, 1e-12, 1 - 1e-12, xtol=1e-14)
    assert upper(hits, n) == pytest.approx(root, abs=1e-10)
    assert lower(n - hits, n) == pytest.approx(1 - root, abs=1e-10)


def test_ends() -> None:
    assert upper(0, 0) == upper(7, 7) == 1.0
    assert lower(0, 0) == lower(0, 7) == 0.0
    assert stratified_upper([]) == stratified_upper([Stratum(10, 0, 0)]) == 1.0
    assert stratified_lower([Stratum(10, 0, 0)]) == 0.0


@pytest.mark.parametrize("population", [30, 60])
def test_sampling_without_replacement_keeps_the_level(population: int) -> None:
    """Exact: every number of misses in the population, every sample size."""
    for n in (5, 10, 20):
        bounds = np.array([upper(x, n) for x in range(n + 1)])
        for missed in range(population + 1):
            mass = hypergeom.pmf(np.arange(n + 1), population, missed, n)
            assert mass[bounds < missed / population].sum() <= 0.05 + 1e-12


@pytest.mark.parametrize(("bound", "misses"), [(0.01, 0), (0.01, 3), (0.3, 1)])
def test_needed_is_the_smallest_number(bound: float, misses: int) -> None:
    n = needed(bound, misses)
    assert upper(misses, n) <= bound < upper(misses, n - 1)


def test_needed_at_a_rate() -> None:
    n = needed_at(0.05, 0.02)
    assert n is not None
    assert upper(-(-n * 2 // 100), n) <= 0.05
    assert needed_at(0.05, 0.05) is None
    assert needed_at(0.01, 0.0) == needed(0.01) == 299
    with pytest.raises(UsageError, match="must lie in"):
        needed(0.0)


def test_stratified_is_exact_without_a_miss() -> None:
    one = stratified_upper([Stratum(1000, 200, 0)])
    three = stratified_upper([Stratum(500, 100, 0), Stratum(300, 60, 0), Stratum(200, 40, 0)])
    assert one == pytest.approx(upper(0, 200), rel=1e-6)
    assert three == pytest.approx(one, rel=1e-6)
    # where one stratum is drawn at half the rate, all of the doubt goes there
    thin = stratified_upper([Stratum(500, 50, 0), Stratum(500, 100, 0)])
    assert thin == pytest.approx(0.5 * upper(0, 50), rel=1e-6)


def test_stratified_is_never_below_the_exact_bound_of_one_stratum() -> None:
    for hits in (1, 5, 20, 199):
        assert upper(hits, 200) <= stratified_upper([Stratum(900, 200, hits)]) <= 1.35 * upper(hits, 200)


def test_stratified_keeps_the_level_whatever_the_shares() -> None:
    """Exact, by enumeration of every outcome: two strata of unlike size and rate, a grid of true shares."""
    sizes, drawn = (80, 20), (10, 6)
    outcomes = list(itertools.product(range(drawn[0] + 1), range(drawn[1] + 1)))
    bounds = np.array(
        [stratified_upper([Stratum(s, n, x) for s, n, x in zip(sizes, drawn, xs, strict=True)]) for xs in outcomes]
    )
    for p, q in itertools.product(np.linspace(0, 1, 21), repeat=2):
        each = [binom.pmf(np.arange(n + 1), n, rate) for n, rate in zip(drawn, (p, q), strict=True)]
        mass = np.outer(*each).ravel()
        assert mass[bounds < 0.8 * p + 0.2 * q - 1e-9].sum() <= 0.05 + 1e-9


def test_an_unseen_stratum_may_be_all_misses() -> None:
    seen = [Stratum(900, 300, 0)]
    assert stratified_upper([*seen, Stratum(100, 0, 0)]) >= 0.1
    assert stratified_upper([*seen, Stratum(100, 0, 0)]) == pytest.approx(0.1 + 0.9 * upper(0, 300), abs=1e-3)


def test_ratio_keeps_the_level() -> None:
    """Simulated: misses among records with a secret, over strata of unlike rate. With 120 samples and a true level of 5 %,
    18 or more failures happen with probability 2e-5."""
    generator = np.random.default_rng(0)
    sizes, drawn = (600, 400), (60, 90)
    holds, misses = (0.2, 0.7), (0.3, 0.1)  # share with a secret; of those, missed
    truth = sum(s * h * m for s, h, m in zip(sizes, holds, misses, strict=True)) / sum(
        s * h for s, h in zip(sizes, holds, strict=True)
    )
    failures = 0
    for _ in range(120):
        held = [generator.binomial(n, h) for n, h in zip(drawn, holds, strict=True)]
        lost = [generator.binomial(k, m) for k, m in zip(held, misses, strict=True)]
        base = [Stratum(s, n, k) for s, n, k in zip(sizes, drawn, held, strict=True)]
        hits = [Stratum(s, n, k) for s, n, k in zip(sizes, drawn, lost, strict=True)]
        failures += ratio_upper(hits, base) < truth
    assert failures < 18
