"""Nulls, bounds and ROC statistics against slow oracles, closed forms and shared reference values."""

from __future__ import annotations

import json
import math
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import mannwhitneyu

from taciturn.auditing import nulls
from taciturn.auditing.lower_bounds.two_sided import clopper_pearson, eps_lower, eps_lower_exposure
from taciturn.auditing.membership.roc import auc_interval, auc_p, best_threshold, delong, roc, tpr_at_fpr

FEW = arrays(np.float64, st.integers(2, 12), elements=st.integers(0, 6).map(float))


def test_shared_reference_values(shared) -> None:
    cases = json.loads((shared / "vectors" / "accounting.json").read_text())["cases"]
    compute = {
        "exposure_null_max": lambda R, canaries: nulls.exposure_max_mean(canaries, R),
        "exposure_null_q95": lambda canaries: nulls.exposure_max_p95(canaries),
        "eps_lower_cp": eps_lower,
    }
    mine = [case for case in cases if case["kind"] in compute]
    assert len(mine) >= 8
    for case in mine:
        value = compute[case["kind"]](**case["parameters"])
        assert value == pytest.approx(case["expected"], abs=case["tolerance"], rel=0), case["id"]


@pytest.mark.parametrize(("n", "size"), [(1, 5), (2, 6), (3, 4)])
def test_exposure_null_against_all_outcomes(n: int, size: int) -> None:
    best = np.array([max(math.log2(size / r) for r in ranks) for ranks in permutations(range(1, size + 1), n)])
    assert nulls.exposure_max_mean(n, size) == pytest.approx(best.mean())
    for rank in range(1, size + 1):
        assert nulls.exposure_max_p(rank, n, size) == pytest.approx((best >= math.log2(size / rank) - 1e-12).mean())
        if n == 1:
            assert nulls.exposure_tail(math.log2(size / rank), size) == pytest.approx(rank / size)
    if n == 1:
        assert nulls.exposure_mean(size) == pytest.approx(best.mean())


@pytest.mark.parametrize(("n", "size"), [(1, 100), (3, 30), (10, 1000), (20, 25)])
def test_the_95_percent_point_of_distinct_secrets(n: int, size: int) -> None:
    rank = round(size * 2 ** -nulls.exposure_max_p95(n, size))
    assert rank == 1 or nulls.exposure_max_p(rank - 1, n, size) <= 0.05 + 1e-12
    assert nulls.exposure_max_p(rank, n, size) > 0.05


def test_p_values_of_distinct_secrets_hold_by_count_of_all_outcomes() -> None:
    """Taken for independent, the best of 4 of 12 has p = .29 instead of 1/3, and p-values under a level come too often."""
    size, n = 12, 4
    outcomes = [np.array(ranks, float) for ranks in combinations(range(1, size + 1), n)]
    assert nulls.exposure_max_p(1, n, size) == pytest.approx(1 / 3)
    for law in (
        lambda r: nulls.exposure_max_p(r.min(), n, size),
        lambda r: nulls.exposure_sum_p(r, size),
        lambda r: nulls.exposure_min_p(r.min() / size, {size: n}),
    ):
        p = np.array([law(ranks) for ranks in outcomes])
        for level in (0.01, 0.05, 0.2, 0.34, 0.5, 0.8):
            assert (p <= level).mean() <= level + 1e-12


def test_the_bound_from_exposure_knows_that_secrets_are_distinct() -> None:
    """A model that says nothing, 50 of 100 planted: given 49 others, one is in the top half with 50/51 at most."""
    assert eps_lower_exposure(50, 50, 50, 100) == pytest.approx(max(math.log(0.05 ** (1 / 50) * 51 / 50), 0.0))


@settings(max_examples=60)
@given(
    arrays(np.float64, st.integers(1, 4), elements=st.integers(0, 3).map(float)),
    arrays(np.float64, st.integers(1, 4), elements=st.integers(0, 3).map(float)),
)
def test_the_rank_sum_null_counts_every_labelling(members: np.ndarray, nonmembers: np.ndarray) -> None:
    both, n1 = np.concatenate([members, nonmembers]), len(members)

    def auc(chosen: tuple[int, ...]) -> float:
        rest = both[[i for i in range(len(both)) if i not in chosen]]
        mine = both[list(chosen), None]
        return float((mine > rest).mean() + (mine == rest).mean() / 2)

    aucs = np.array([auc(chosen) for chosen in combinations(range(len(both)), n1)])
    p, p95 = nulls.auc_null(members, nonmembers)
    assert p == pytest.approx((aucs >= auc(tuple(range(n1))) - 1e-9).mean())
    assert (aucs <= p95 + 1e-9).mean() >= 0.95
    assert (aucs <= p95 - 1e-6).mean() < 0.95
    assert p95 <= 1.0


def test_the_rank_sum_null_is_scipys_without_ties_and_becomes_the_normal_one() -> None:
    rng = np.random.default_rng(4)
    for n1, n0 in ((3, 5), (20, 30), (50, 50)):
        a, b = rng.normal(0.3, 1, n1), rng.normal(size=n0)
        exact = mannwhitneyu(a, b, alternative="greater", method="exact").pvalue
        assert nulls.auc_null(a, b)[0] == pytest.approx(exact, rel=1e-9)
    a, b = rng.normal(0.3, 1, 60), rng.normal(size=60)
    p, p95 = nulls.auc_null(a, b)
    assert p == pytest.approx(mannwhitneyu(a, b, alternative="greater", method="exact").pvalue, rel=0.05)
    assert p95 == pytest.approx(0.5 + 1.6449 * nulls.auc_sd(60, 60))


def test_no_null_lies_above_what_a_score_can_be() -> None:
    two = np.array([0.0, 1.0])
    assert nulls.auc_null(two + 2, two) == (pytest.approx(1 / 6), 1.0)
    assert nulls.split_accuracy_p95(1, 1) == 1.0


def test_the_95_percent_point_has_p_of_5_percent() -> None:
    for n in (1, 10, 100):
        rank = 1e9 * 2 ** -nulls.exposure_max_p95(n)
        assert nulls.exposure_max_p(rank, n, 10**9) == pytest.approx(0.05)


def test_mean_exposure_p_value_is_uniform_on_unseen_secrets() -> None:
    """2,000 draws; share below .05 within 4 sd (.05 ± .0195): false alarm 6e-5."""
    rng = np.random.default_rng(0)
    p = [nulls.exposure_sum_p(rng.integers(1, 10**6, 10).astype(float), 10**6) for _ in range(2000)]
    assert abs(np.mean(np.array(p) < 0.05) - 0.05) < 0.0195


def test_same_set_accuracy_against_the_reflection_principle() -> None:
    """For n + n records P(best accuracy ≥ .5 + k/2n) = C(2n, n−k)/C(2n, n), exactly; 4,000 draws: 4 sd < .004."""
    n = 50
    tail = [math.comb(2 * n, n - k) / math.comb(2 * n, n) for k in range(1, n + 1)]
    mean, p95 = nulls.same_set_accuracy(n, n)
    assert mean == pytest.approx(0.5 + sum(tail) / (2 * n), abs=0.004)
    exact = 0.5 + max(k for k in range(1, n + 1) if tail[k - 1] >= 0.05) / (2 * n)
    assert abs(p95 - exact) < 1.01 / (2 * n)
    mean, p95 = nulls.same_set_accuracy(1000, 1000)
    assert (mean, p95) == (pytest.approx(0.514, abs=1e-3), pytest.approx(0.5275, abs=1e-3))


@pytest.mark.parametrize("n", [1, 7, 30])
def test_clopper_pearson_inverts_binomial_tails(n: int) -> None:
    def at_least(hits: int, p: float) -> float:
        return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(hits, n + 1))

    for hits in range(n + 1):
        low, high = clopper_pearson(hits, n)
        assert (low == 0) if hits == 0 else at_least(hits, low) == pytest.approx(0.025)
        assert (high == 1) if hits == n else 1 - at_least(hits + 1, high) == pytest.approx(0.025)


def test_eps_lower_holds_on_randomised_response() -> None:
    """Randomised response at ε = 1 (exactly tight): 400 audits at 95 %, so more than 36 misses has probability 1e-4."""
    rng = np.random.default_rng(1)
    p = math.e / (1 + math.e)
    bounds = [eps_lower(rng.binomial(500, p), 500, rng.binomial(500, 1 - p), 500) for _ in range(400)]
    assert sum(b > 1 for b in bounds) <= 36
    assert np.mean(bounds) > 0.6


def test_exposure_bound_on_perfect_memorisation_and_on_none() -> None:
    assert eps_lower_exposure(10, 10, 1, 10**6) == pytest.approx(math.log(0.05**0.1 * 1e6))
    assert eps_lower_exposure(0, 10, 1000, 10**6) == 0.0


@given(FEW, FEW)
def test_auc_and_roc_against_all_pairs(members: np.ndarray, nonmembers: np.ndarray) -> None:
    pairs = (members[:, None] > nonmembers).mean() + (members[:, None] == nonmembers).mean() / 2
    auc, _ = delong(members[None], nonmembers[None])
    assert auc[0] == pytest.approx(pairs)
    fpr, tpr = roc(members, nonmembers)
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    assert (np.diff(fpr) >= 0).all()
    assert np.trapezoid(tpr, fpr) == pytest.approx(pairs)


@given(FEW, FEW)
def test_best_threshold_is_the_best_of_all(members: np.ndarray, nonmembers: np.ndarray) -> None:
    t, accuracy = best_threshold(members, nonmembers)
    assert accuracy == pytest.approx(((members >= t).mean() + (nonmembers < t).mean()) / 2)
    every = [((members >= s).mean() + (nonmembers < s).mean()) / 2 for s in [*members, *nonmembers, 99.0]]
    assert accuracy == pytest.approx(max(every))


@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_delong_covariance_against_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    members, nonmembers = rng.normal(0.5, 1, (2, 15)).round(1), rng.normal(0, 1, (2, 20)).round(1)
    psi = (members[:, :, None] > nonmembers[:, None, :]) + 0.5 * (members[:, :, None] == nonmembers[:, None, :])
    expected = np.cov(psi.mean(2)) / 15 + np.cov(psi.mean(1)) / 20
    np.testing.assert_allclose(delong(members, nonmembers)[1], expected)


def test_delong_interval_covers() -> None:
    """Normal scores one sd apart, true AUC Φ(1/√2) = .7602: 400 intervals at 95 %, at least 92 % cover (2.8 sd)."""
    rng = np.random.default_rng(2)
    truth, covered = 0.5 * (1 + math.erf(0.5)), 0
    for _ in range(400):
        auc, covariance = delong(rng.normal(1, 1, (1, 80)), rng.normal(0, 1, (1, 80)))
        low, high = auc_interval(auc[0], covariance[0, 0], 80, 80)
        covered += low <= truth <= high
    assert covered >= 368
    assert auc_interval(1.0, 0.0, 50, 80) == (pytest.approx(0.025 ** (1 / 50)), 1.0)


def test_auc_p_value_is_uniform_without_an_effect() -> None:
    """2,000 draws; share below .05 within 4 sd: false alarm 6e-5."""
    rng = np.random.default_rng(3)
    aucs = [delong(rng.normal(size=(1, 30)), rng.normal(size=(1, 40)))[0][0] for _ in range(2000)]
    assert abs(np.mean([auc_p(a, 30, 40) < 0.05 for a in aucs]) - 0.05) < 0.0195


def test_tpr_at_fpr() -> None:
    nonmembers, members = np.arange(1000.0), np.arange(500.0, 1500.0)
    tpr, low, high = tpr_at_fpr(members, nonmembers, 0.01)
    assert tpr == (members > 989).mean()
    assert low < tpr < high
    assert tpr_at_fpr(members, nonmembers, 0.001) is None  # one expected false positive: noise
    assert tpr_at_fpr(np.ones(1000), np.ones(1000), 0.01)[0] == 0.0  # ties can't be split


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_the_null_of_an_auc_is_never_above_one(n1: int, n0: int, seed: int, kinds: int) -> None:
    """However few, and whatever ties: exact up to 100 scores, normal beyond."""
    rng = np.random.default_rng(seed)
    p, p95 = nulls.auc_null(rng.integers(0, kinds, n1).astype(float), rng.integers(0, kinds, n0).astype(float))
    assert 0.5 <= p95 <= 1.0
    assert 0.0 <= p <= 1.0 + 1e-9
    assert nulls.split_accuracy_p95(n1, n0) <= 1.0
