"""What the papers print, reproduced from their own procedures, and that none of it is called a guarantee."""

from __future__ import annotations

import math

import pytest

from taciturn.errors import GuaranteeError, UsageError
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.privacy.guarantees.published_crt import figure6, published_bayesian, published_epsilon, published_noise
from taciturn.privacy.guarantees.published_jft import PUBLISHED, light_noise
from taciturn.privacy.guarantees.published_uedp import published_claim
from taciturn.privacy.guarantees.theorems import bayesian_simple

# CRT


@pytest.mark.parametrize(("rate", "steps"), [(0.1, 100), (0.0256, 390), (0.01, 1000)])
def test_crts_example_is_read_from_a_renyi_curve_of_add_and_remove(rate, steps):
    claim = published_bayesian(1.0, 0.1, 8e-5, rate, steps)
    assert claim.status == "published-claim"
    assert round(claim.epsilon, 2) == 0.12  # section 5.4
    assert claim.read == pytest.approx(0.80, abs=0.005)
    assert published_epsilon(rate, claim.noise_multiplier, steps, 8e-5) == pytest.approx(1.0, abs=1e-4)
    assert claim.epsilon < bayesian_simple(1.0, 0.1) == pytest.approx(0.159, abs=1e-3)


@pytest.mark.parametrize(
    ("rate", "steps", "sigma", "exact", "holds"),
    [(0.1, 100, 3.43877, 0.1107, 0.354), (0.001, 20_000, 0.776233, 0.110, 0.21)],
)
def test_what_holds_instead(rate, steps, sigma, exact, holds):
    """σ of ε′ = 1 by add and remove."""
    event = {PoissonGaussian(rate, sigma): steps}
    assert compose(event, "add-remove").epsilon(8e-5) == pytest.approx(1.0, abs=2e-3)
    for relation, value in (("add-remove", exact), ("substitution", holds)):
        found = bayesian_simple(compose(event, relation).epsilon(8e-5 / 0.1), 0.1)  # forward, the larger direction
        assert found == pytest.approx(value, abs=5e-3)


def test_the_curves_of_figure_6_fall_to_zero_with_the_miss_rate():
    for epsilon in (0.5, 1.0, 3.0):
        curve = figure6(epsilon, [8e-5, 0.01, 0.1, 0.5, 1.0], 8e-5, 0.1, 100)
        values = [claim.epsilon for claim in curve]
        assert values == sorted(values)
        assert values[0] == 0.0
        assert values[-1] == pytest.approx(epsilon, abs=1e-4)
        assert len({claim.noise_multiplier for claim in curve}) == 1


def test_noise_of_a_claim_spans_what_papers_use_and_refuses_the_rest():
    for epsilon in (0.3, 8.0):
        assert published_epsilon(0.05, published_noise(epsilon, 0.05, 50, 1e-5), 50, 1e-5) == pytest.approx(
            epsilon, abs=1e-3
        )
    for wrong in (0.0, math.inf, True):
        with pytest.raises(UsageError, match="positive"):
            published_noise(wrong, 0.1, 10, 1e-5)
    with pytest.raises(UsageError, match="miss rate"):
        figure6(1.0, [0.0], 8e-5, 0.1, 100)
    with pytest.raises(GuaranteeError, match="no noise"):
        published_noise(1e-6, 1.0, 100_000, 1e-9)


# JFT


@pytest.mark.parametrize(
    ("index", "claimed", "renyi", "missed"),
    [(0, (0.166, 0.355), (0.962, 1.085), 85.5), (1, (0.027, 0.548), (0.875, 1.427), 66.1)],
)
def test_light_noise_claims_about_one_where_a_miss_costs_dozens(index, claimed, renyi, missed):
    low, high = (light_noise(PUBLISHED[index], miss) for miss in PUBLISHED[index].misses)
    assert (low.exact, high.exact) == pytest.approx(claimed, abs=1e-3)
    assert (low.renyi, high.renyi) == pytest.approx(renyi, abs=2e-3)
    assert high.missed_renyi == pytest.approx(missed, rel=2e-3)
    assert high.missed > high.missed_renyi
    assert high.status == "published-claim"


@pytest.mark.parametrize(("index", "printed"), [(0, (2.73, 2.92)), (1, (1.08, 1.60))])
def test_the_printed_ranges_are_phase_one_plus_one_constant(index, printed):
    """Section 6.3: both ends leave the same rest for phase two, whose settings are not printed."""
    rests = [
        total - light_noise(PUBLISHED[index], m).exact
        for total, m in zip(printed, PUBLISHED[index].misses, strict=True)
    ]
    assert rests[0] == pytest.approx(rests[1], abs=0.01)  # two printed decimals each


def test_every_published_setting_claims_less_than_a_miss_costs():
    for run in PUBLISHED[2:]:
        claim = light_noise(run, run.misses[1])
        assert claim.exact < claim.missed / 10
    with pytest.raises(UsageError, match="miss rate"):
        light_noise(PUBLISHED[0], 0.0)


# UeDP


@pytest.mark.parametrize(
    ("user_rate", "share", "printed"),
    [
        (50 / 946, 11_176 / 14_040, (0.52, 0.62, 1.18)),
        (500 / 7536, 67_157 / 112_000, (0.50, 0.75, 1.48)),
        (100 / 1592, 2_166 / 5_188, (0.40, 0.71, 1.40)),
    ],
)
def test_figure_4_of_uedp_at_50_steps(user_rate, share, printed):
    """f_E+, f_E and user level; z = 2, q_e = .5, whole numbers of the users in Table II. Four of the nine are .005 to .008
    below what is printed, as if the paper rounded upwards."""
    found = [
        published_claim(user_rate, 0.5, share, 2.0, 50, 1e-5).epsilon,
        published_claim(user_rate, 0.5, 1.0, 2.0, 50, 1e-5).epsilon,
        published_claim(user_rate, 1.0, 1.0, 2.0, 50, 1e-5).epsilon,
    ]
    assert found == pytest.approx(printed, abs=0.0085)


def test_the_sec_budgets_after_500_steps_are_one_rate():
    printed = {60: 0.19, 273: 0.24, 357: 0.26, 1955: 0.73, 2166: 0.81}
    for sentences, value in printed.items():
        assert round(published_claim(100 / 1592, 0.5, sentences / 5188, 2.0, 500, 1e-5).epsilon, 2) == value
    assert round(published_claim(100 / 1592, 1.0, 1.0, 2.0, 500, 1e-5).epsilon, 2) == 4.08
    assert round(published_claim(0.05, 1.0, 1.0, 2.0, 500, 1e-5).epsilon, 2) == 3.21  # at the rate that the text names


@pytest.mark.parametrize(
    ("users", "sentences", "steps", "printed"),
    [(300, 18_506, (1, 159, 317), (0.18, 0.19, 0.2)), (100, 58_177, (1, 144, 288), (0.18, 0.19, 0.2))],
)
def test_the_tight_budgets_are_the_floor_of_order_64(users, sentences, steps, printed):
    """Figure 2, AG: GPE and organisations, z = 2.5; steps as in the authors' code. More orders go below ε = .18."""
    for count, value in zip(steps, printed, strict=True):
        claim = published_claim(users / 7536, 0.5, sentences / 112_000, 2.5, count, 1e-5)
        assert round(claim.epsilon, 2) == value
        assert claim.order == 64
        more = published_claim(users / 7536, 0.5, sentences / 112_000, 2.5, count, 1e-5, largest_order=512)
        assert more.epsilon < claim.epsilon
