from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass

import mpmath
import numpy as np
import privacy_oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_oracle import smallest
from scipy.special import ndtr
from scipy.stats import binom, norm

from taciturn.errors import GuaranteeError, UsageError
from taciturn.privacy.accounting import grids, mixture_coins
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.privacy.accounting.mixture_coins import Side, convolve, merge
from taciturn.privacy.accounting.pairs import Mixture, Pair, binomial
from taciturn.privacy.accounting.user_entity import Exchange, TwoLevel, Units, deletion_epsilon, noise_for, user_profile
from taciturn.privacy.guarantees.published_uedp import published_bound, published_claim

few = settings(max_examples=10, deadline=None)
ONE_LEVEL = Units((0.05,), 6.0, 200)
EXAMPLE = TwoLevel(0.05, 0.5, 10, 5, 1, 15.0, 100)
STILL = Mixture(np.zeros(1), np.zeros(1))


# Slow, separate arithmetic


def two_level_cases(run: TwoLevel) -> list[tuple[float, dict[int, float]]]:
    """(probability of j, law of aM + bLj), by enumeration."""
    cases = []
    for j in range(run.users_per_entity + 1):
        law: dict[int, float] = {}
        for a, b in itertools.product((0, 1), (0, 1)):
            weight = (run.user_rate if a else 1 - run.user_rate) * (run.entity_rate if b else 1 - run.entity_rate)
            at = a * run.units_per_user + b * run.units_per_user_entity * j
            law[at] = law.get(at, 0.0) + weight
        cases.append((float(binom.pmf(j, run.users_per_entity, run.user_rate)), law))
    return cases


def density(law: dict[int, float], sign: int, x: np.ndarray, sigma: float) -> np.ndarray:
    parts = (weight * np.exp(-(((x - sign * at) / sigma) ** 2) / 2) for at, weight in law.items() if weight)
    return sum(parts) / (sigma * math.sqrt(2 * math.pi))


def bracket(cases, sigma: float, steps: int, delta: float, width: float, limit: float) -> tuple[float, float]:
    """ε of Σ_j Pr(j)·PLD(upper_j at +, lower_j at −), losses rounded down and up; worst of both directions."""
    size = 1 << math.ceil(math.log2(2 * limit / width))
    losses = (np.arange(size) - size // 2) * width
    bounds = []
    for rounding in (np.floor, np.ceil):
        worst = 0.0
        for swap in (False, True):
            pmf = np.zeros(size)
            for chance, upper, lower in cases:
                up, down = (lower, upper) if swap else (upper, lower)
                x = np.linspace(-9 * sigma - 1, 9 * sigma + max(up) + 1, 40_001)
                loss = np.log(density(up, 1, x, sigma)) - np.log(density(down, -1, x, sigma))
                cdf = sum(weight * ndtr((x - at) / sigma) for at, weight in up.items())
                ends = loss[1:] if rounding is np.ceil else loss[:-1]
                index = rounding(ends / width).astype(int) + size // 2
                pmf += chance * np.bincount(index, weights=np.diff(cdf), minlength=size)
            lost = 1 - float(pmf.sum()) ** steps if rounding is np.ceil else 0.0
            pmf = np.fft.irfft(np.fft.rfft(np.roll(pmf, -(size // 2))) ** steps, size)
            pmf = np.roll(pmf, size // 2).clip(0)
            worst = max(worst, smallest(losses, pmf, lost, delta, limit))
        bounds.append(worst)
    return bounds[0], bounds[1]


# One level


def test_the_example_of_the_guarantees_page():
    assert deletion_epsilon(7, 0.05, 6.0, 200, 1e-5) == pytest.approx(3.6222698, abs=1e-3)


def test_reference_values(shared):
    seen = 0
    for case in json.loads((shared / "vectors" / "accounting.json").read_text())["cases"]:
        p, kind = case["parameters"], case["kind"]
        if kind == "ue_units":
            found = deletion_epsilon(p["M"] + p["K"], p["q"], p["sigma_over_beta"], p["steps"], p["delta"])
        elif kind == "ue_two_level":
            sizes = {"units_per_user": p["M"], "users_per_entity": p["K"], "units_per_user_entity": p["L"]}
            run = TwoLevel(p["q_user"], p["q_entity"], noise_multiplier=p["sigma_over_beta"], steps=p["steps"], **sizes)
            found = run.epsilon(p["delta"])
        elif kind in ("group_tight_add_remove", "group_tight_replace"):
            kinds = ((p["k"], p["q"]),)
            inserted = kinds if kind == "group_tight_replace" else ()
            found = Exchange(kinds, inserted, p["sigma"], p["steps"]).epsilon(p["delta"])
        else:
            continue
        seen += 1
        assert found == pytest.approx(case["expected"], abs=case["tolerance"]), case["id"]
    assert seen >= 10


@pytest.mark.parametrize("selects", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_one_level_lies_in_the_slow_bracket(k, selects):
    relation = "substitution" if selects else "add-remove"
    low, high = privacy_oracle.epsilon_bracket([(0.1, 3.0, 30)], 1e-4, k, relation, 1e-4, 30.0)
    found = Units((0.1,), 3.0, 30, selects).epsilon(k, 1e-4)
    assert low <= found <= high


@pytest.mark.parametrize("selects", [False, True])
def test_two_kinds_of_units_lie_in_the_slow_bracket(selects):
    law = {n: float(w) for n, w in enumerate(np.convolve(binom.pmf(range(3), 2, 0.05), binom.pmf(range(4), 3, 0.3)))}
    case = (1.0, law, law if selects else {0: 1.0})
    low, high = bracket([case], 5.0, 20, 1e-4, 1e-4, 40.0)
    assert low <= Units((0.05, 0.3), 5.0, 20, selects).epsilon((2, 3), 1e-4) <= high


def test_the_general_composition_agrees_with_the_accountant():
    for k, selects in ((1, False), (7, False), (7, True)):
        kinds = ((k, 0.05),)
        general = Exchange(kinds, kinds if selects else (), 6.0, 200).epsilon(1e-5)
        assert general == pytest.approx(Units((0.05,), 6.0, 200, selects).epsilon(k, 1e-5), rel=1e-5)


def test_equal_rates_are_one_kind_and_absent_kinds_cost_nothing():
    both = Units((0.05, 0.05), 6.0, 200)
    assert both.epsilon((3, 4), 1e-5) == ONE_LEVEL.epsilon(7, 1e-5)
    assert Units((0.05, 0.9), 6.0, 200).epsilon((7, 0), 1e-5) == ONE_LEVEL.epsilon(7, 1e-5)
    assert both.epsilon((0, 0), 1e-5) == both.epsilon(0, 1e-5) == 0.0
    assert Units((0.05, 0.9), 6.0, 0).epsilon((7, 1), 1e-5) == 0.0


@few
@given(
    st.integers(1, 25),
    st.floats(0.01, 0.5),
    st.floats(1.0, 20.0),
    st.integers(1, 300),
    st.booleans(),
    st.integers(1, 4),
)
def test_more_units_more_steps_and_less_noise_cost_more(k, rate, sigma, steps, selects, more):
    base = Units((rate,), sigma, steps, selects).epsilon(k, 1e-5)
    slack = 1 + 2e-3  # both are upper bounds to about 1e-4
    assert base <= Units((rate,), sigma, steps, selects).epsilon(k + more, 1e-5) * slack + 1e-6
    assert base <= Units((rate,), sigma, steps * (1 + more), selects).epsilon(k, 1e-5) * slack + 1e-6
    assert base >= Units((rate,), sigma * 1.5, steps, selects).epsilon(k, 1e-5) / slack - 1e-6
    assert base <= Units((rate,), sigma, steps, True).epsilon(k, 1e-5) * slack + 1e-6


@few
@given(st.integers(0, 6), st.integers(0, 6), st.floats(0.01, 0.2), st.floats(0.2, 0.9))
def test_any_k_units_cost_at_least_what_a_given_split_costs(k_e, k_s, q_e, q_s):
    run = Units((q_e, q_s), 8.0, 50)
    assert run.epsilon((k_e, k_s), 1e-5) <= run.epsilon(k_e + k_s, 1e-5) * (1 + 2e-3) + 1e-6


def test_the_curve_and_the_largest_k():
    curve = ONE_LEVEL.curve([1, 7, 16, 17], 1e-5)
    assert list(curve) == [1, 7, 16, 17]
    assert list(curve.values()) == sorted(curve.values())
    assert curve[16] <= 10 < curve[17]
    assert ONE_LEVEL.largest_k(1e-5) == 16
    assert ONE_LEVEL.largest_k(1e-5, epsilon=0.1) == 0


def test_user_level_dp_is_one_deleted_unit():
    profile = compose({PoissonGaussian(0.01, 1.0): 1000}, "add-remove")
    assert user_profile(0.01, 1.0, 1000) == profile
    assert deletion_epsilon(1, 0.01, 1.0, 1000, 1e-5) == profile.epsilon(1e-5) == pytest.approx(1.82824, abs=2e-3)


def test_no_gradients_do_worse_than_the_pair_of_deletions_and_insertions():
    """Random gradients in [−1, 1], two kinds of rates, 2 deletions against 1 insertion, one step, by quadrature."""
    rng = np.random.default_rng(5)
    x = np.linspace(-25, 25, 4001)
    sigma, rates_out, rates_in = 1.0, (0.2, 0.5), (0.2,)

    def law(gradients, rates):
        total = np.zeros_like(x)
        for drawn in itertools.product((0, 1), repeat=len(rates)):
            weight = np.prod([rate if hit else 1 - rate for rate, hit in zip(rates, drawn, strict=True)])
            total += weight * norm.pdf(x, float(np.dot(gradients, drawn)), sigma)
        return total

    def sticks(p, q, alphas):
        step = x[1] - x[0]
        return np.array([[np.clip(u - a * v, 0, None).sum() * step for a in alphas] for u, v in ((p, q), (q, p))])

    alphas = np.exp([-1.0, -0.2, 0.0, 0.3, 1.0, 2.0])
    worst = sticks(law((1, 1), rates_out), law((-1,), rates_in), alphas)
    for _ in range(200):
        found = sticks(law(rng.uniform(-1, 1, 2), rates_out), law(rng.uniform(-1, 1, 1), rates_in), alphas)
        assert (found <= worst + 1e-9).all()


# Two levels


@dataclass(frozen=True)
class HidesTheHolders:
    """The easy mistake: j averaged inside the Gaussian mixture."""

    run: TwoLevel

    @property
    def steps(self) -> int:
        return self.run.steps

    def sides(self, tail: float) -> tuple[Side, ...]:
        assert 0 < tail < 1e-5  # nothing is cut here
        cases = two_level_cases(self.run)
        at = np.array([at for _, law in cases for at in law])
        mixed = merge(at, np.array([chance * weight for chance, law in cases for weight in law.values()]))
        sigma = self.run.noise_multiplier
        return Side(((1.0, Pair(mixed, STILL, sigma)),)), Side(((1.0, Pair(STILL, mixed, sigma)),))


def test_two_levels_condition_on_the_holders_outside_the_mixture():
    assert EXAMPLE.epsilon(1e-5) == pytest.approx(2.1609187, abs=2e-3)
    assert mixture_coins.epsilon(HidesTheHolders(EXAMPLE), 1e-5) == pytest.approx(2.013, abs=2e-3)


@pytest.mark.parametrize(
    "run", [TwoLevel(0.1, 0.5, 3, 2, 1, 5.0, 30), TwoLevel(0.3, 0.2, 1, 4, 2, 6.0, 20)], ids=["users", "holders"]
)
@pytest.mark.parametrize("delta", [1e-4, 1e-9])  # by a plain transform, and by a tilted one
def test_two_levels_lie_in_the_slow_bracket(run, delta):
    cases = [(chance, law, {0: 1.0}) for chance, law in two_level_cases(run)]
    low, high = bracket(cases, run.noise_multiplier, run.steps, delta, 1e-4, 40.0)
    assert (grids.rounding(run.steps) > grids.BLURRED * delta) == (delta == 1e-9)
    assert low <= run.epsilon(delta) <= high


def test_two_levels_against_sampled_losses():
    """400,000 sampled sums of losses per direction; 5 standard errors, false alarm below 1e-6."""
    run = TwoLevel(0.2, 0.5, 3, 3, 1, 6.0, 8)
    cases, sigma, rng, n = two_level_cases(run), 6.0, np.random.default_rng(11), 400_000
    chances = [chance for chance, _ in cases]
    epsilon = run.epsilon(0.02)
    means, errors = [], []
    for removal in (True, False):
        total = np.zeros(n)
        for _ in range(run.steps):
            holders = rng.choice(len(cases), size=n, p=chances)
            for j, (_, law) in enumerate(cases):
                at = np.flatnonzero(holders == j)
                where = rng.choice(list(law), size=len(at), p=list(law.values())) if removal else np.zeros(len(at))
                x = rng.normal(where, sigma)
                ratio = np.log(density(law, 1, x, sigma) / norm.pdf(x, 0, sigma))
                total[at] += ratio if removal else -ratio
        stick = np.clip(-np.expm1(epsilon - total), 0, None)
        means.append(stick.mean())
        errors.append(stick.std() / math.sqrt(n))
    assert max(means) == pytest.approx(0.02, abs=5 * max(errors))


@few
@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3), st.floats(0.02, 0.4), st.floats(0.05, 1.0))
def test_more_units_users_and_entities_cost_more(m, k, size, q_u, q_e):
    base = TwoLevel(q_u, q_e, m, k, size, 6.0, 40).epsilon(1e-5)
    for grown in ((m + 1, k, size), (m, k + 1, size), (m, k, size + 1)):
        assert base <= TwoLevel(q_u, q_e, *grown, 6.0, 40).epsilon(1e-5) * (1 + 2e-3) + 1e-6


def test_two_levels_without_an_entity_are_users_and_without_users_nothing():
    alone = TwoLevel(0.05, 0.5, 1, 0, 0, 2.0, 100)
    assert alone.epsilon(1e-5) == pytest.approx(deletion_epsilon(1, 0.05, 2.0, 100, 1e-5), rel=1e-5)
    assert TwoLevel(0.05, 0.5, 0, 0, 0, 2.0, 100).epsilon(1e-5) <= 1e-6
    assert TwoLevel(0.05, 0.5, 9, 9, 9, 2.0, 0).epsilon(1e-5) == 0.0


def test_counts_add_up():
    both = convolve(binomial(3, 0.2, 0.0), binomial(2, 0.2, 0.0))
    assert both.j.tolist() == [0, 1, 2, 3, 4, 5]
    assert np.exp(both.log_weight) == pytest.approx(binom.pmf(range(6), 5, 0.2))


def test_a_composition_too_wide_to_transform_still_has_a_finite_bound():
    wide = TwoLevel(0.05, 0.5, 400, 300, 3, 5.0, 3000).epsilon(1e-5)
    assert 1e5 < wide < math.inf


# Algorithm 1 as printed


def test_without_holders_the_printed_algorithm_is_user_level_dp():
    bound = published_bound(0, 0.05, 2.0, 200, 1e-5)
    single = deletion_epsilon(1, 0.05, 2.0, 200, 1e-5)
    assert bound.forward == bound.reverse == single
    assert bound.direct == pytest.approx(single, rel=1e-5)


@pytest.mark.parametrize("holders", [1, 5])
def test_the_chain_meets_delta_and_no_split_of_a_grid_beats_it(holders):
    delta, users = 1e-5, Units((0.05,), 8.0, 100)
    bound = published_bound(holders, 0.05, 8.0, 100, delta)
    more, fewer = users.profile(holders + 1), users.profile(holders)
    for found, first, second in ((bound.forward, more, fewer), (bound.reverse, fewer, more)):
        splits = []
        for share in np.linspace(0.02, 0.995, 25):
            one = first.epsilon(share * delta)
            splits.append(one + second.epsilon((1 - share) * delta * math.exp(-one)))
        assert min(splits) * (1 - 2e-3) <= found <= min(splits) * (1 + 2e-3)
    assert bound.direct <= bound.chain
    assert bound.epsilon == bound.direct > users.epsilon(holders + 1, delta)


def test_the_direct_pair_lies_in_the_slow_bracket():
    low, high = bracket([(1.0, {0: 0.81, 1: 0.18, 2: 0.01}, {0: 0.9, 1: 0.1})], 2.0, 10, 1e-4, 1e-4, 40.0)
    assert low <= published_bound(1, 0.1, 2.0, 10, 1e-4).direct <= high


def test_the_published_claim_is_the_moments_accountant_and_sits_on_its_floor():
    claim = published_claim(0.05, 0.5, 1e-3, 2.0, 100, 1e-5)
    assert claim.status == "published-claim"
    assert claim.order == 64
    assert claim.epsilon == pytest.approx(math.log(1e5) / 64, abs=1e-3)  # .18

    def moment(q, z, order):
        def integrand(x):
            base = mpmath.npdf(x, 0, z)
            return base * ((1 - q) + q * mpmath.npdf(x, 1, z) / base) ** (order + 1)

        return mpmath.log(mpmath.quad(integrand, [-60, -10, 0, 5, 10, 60]))

    claim = published_claim(0.05, 1.0, 1.0, 2.0, 500, 1e-5)
    by_quadrature = (500 * moment(0.05, 2.0, claim.order) - math.log(1e-5)) / claim.order
    assert claim.epsilon == pytest.approx(float(by_quadrature), rel=1e-6)
    assert claim.epsilon >= deletion_epsilon(1, 0.05, 2.0, 500, 1e-5)


@pytest.mark.parametrize(("sensitive", "printed"), [(60, 0.19), (273, 0.24), (357, 0.26), (1955, 0.73), (2166, 0.81)])
def test_the_claim_reproduces_the_printed_values_of_one_corpus(sensitive, printed):
    """UeDP, V: SEC (5,188 sentences), z = 2, 500 steps, users drawn at .05/.8 of those that train."""
    claim = published_claim(0.05 / 0.8, 0.5, sensitive / 5188, 2.0, 500, 1e-5)
    assert claim.epsilon == pytest.approx(printed, abs=0.006)


def test_the_claim_reproduces_the_printed_user_level_value():
    assert published_claim(0.05 / 0.8, 1.0, 1.0, 2.0, 500, 1e-5).epsilon == pytest.approx(4.08, rel=0.01)


def test_the_noise_for_a_target_meets_it_and_is_not_wasteful():
    for target, k in ((0.5, 2), (8.0, 5), (60.0, 1)):

        def spent(sigma, k=k):
            return deletion_epsilon(k, 0.05, sigma, 100, 1e-5)

        sigma = noise_for(target, spent)
        assert spent(sigma) <= target < spent(sigma * 0.999)
    with pytest.raises(GuaranteeError, match="out of reach"):
        noise_for(1e-3, spent, most=4.0)
    with pytest.raises(UsageError, match="expected"):
        noise_for(0.0, spent)


def test_the_claim_is_below_what_holds():
    claim = published_claim(0.05, 0.5, 0.1, 2.5, 200, 1e-5)
    assert claim.epsilon < published_bound(5, 0.05, 2.5, 200, 1e-5).epsilon


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Units((), 1.0, 1),
        lambda: Units((0.0,), 1.0, 1),
        lambda: Units((0.1,), 0.0, 1),
        lambda: Units((0.1,), 1.0, -1),
        lambda: ONE_LEVEL.epsilon(-1, 1e-5),
        lambda: ONE_LEVEL.epsilon(True, 1e-5),
        lambda: ONE_LEVEL.epsilon((1, 2), 1e-5),
        lambda: ONE_LEVEL.epsilon(1, 1.0),
        lambda: TwoLevel(0.05, 1.5, 1, 1, 1, 1.0, 1),
        lambda: TwoLevel(0.05, 0.5, -1, 1, 1, 1.0, 1),
        lambda: EXAMPLE.epsilon(0.0),
        lambda: published_claim(0.05, 0.5, 0.0, 2.0, 1, 1e-5),
        lambda: published_claim(0.05, 0.5, 0.5, 2.0, 1, 0.0),
        lambda: published_bound(-1, 0.05, 2.0, 1, 1e-5),
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(UsageError, match="expected"):
        wrong()
