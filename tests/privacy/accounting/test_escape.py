"""guarantees.md §3.7: what a release of thresholded counts shows of changed records, against slow arithmetic."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from taciturn.errors import GuaranteeError, UsageError
from taciturn.mechanisms.values import ValueTable
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.calibrate import noise_multiplier
from taciturn.privacy.accounting.effort import at_most
from taciturn.privacy.accounting.escape import escape, standing, threshold
from taciturn.privacy.accounting.event_files import from_json
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian, ThresholdedCounts
from taciturn.privacy.accounting.largest_group import largest_group
from taciturn.privacy.accounting.tradeoff import TradeOff
from taciturn.privacy.guarantees.private_selection import NegativeBinomial, select
from taciturn.training.plan import Target

TABLE = ThresholdedCounts(2.0, 30.0, 2.0, 16, (0.6, 0.35))
STEP = PoissonGaussian(0.01, 0.8)
RUN = {TABLE: 1, STEP: 100}
WITHOUT = {TABLE.gaussian: 1, STEP: 100}

events = st.builds(
    ThresholdedCounts,
    st.floats(0.3, 5),
    st.floats(1, 40),
    st.sampled_from([0.5, 1.0, 2.0, 3.7]),
    st.integers(1, 6),
    st.sampled_from([(1.0,), (0.6, 0.35), (0.3, 0.9)]),
)


def shown(event: ThresholdedCounts, records: list[tuple[int, list[list[int]]]]) -> float:
    """Exactly the expected number of keys shown that nobody else holds: at least the chance that one is. records: of each
    its number of masks, and its keys in each open table."""
    total = 0.0
    for table, share in enumerate(event.shares):
        counts: Counter[int] = Counter()
        for masks, keys in records:
            for key in set(keys[table]):
                counts[key] += share * min(1.0, math.sqrt(event.record_weight / masks))  # type: ignore[assignment]
        total += sum(float(norm.sf((event.threshold - count) / event.std)) for count in counts.values())
    return total


@st.composite
def groups(draw: st.DrawFn, event: ThresholdedCounts) -> list[tuple[int, list[list[int]]]]:
    records = []
    for _ in range(draw(st.integers(1, 5))):
        masks = draw(st.integers(1, event.keys))
        keys = st.lists(st.integers(0, event.keys), max_size=masks)
        records.append((masks, [draw(keys) for _ in event.shares]))
    return records


@settings(max_examples=150)
@given(st.data(), events)
def test_no_assignment_of_keys_to_changed_records_shows_more(data: st.DataObject, event: ThresholdedCounts) -> None:
    records = data.draw(groups(event))
    assert escape(event, len(records)) >= min(1.0, shown(event, records)) * (1 - 1e-9)


@given(events)
def test_of_one_record_it_is_the_worst_number_of_masks_of_each_table(event: ThresholdedCounts) -> None:
    worst = 0.0
    for share in event.shares:
        one = replace(event, shares=(share,))
        worst += max(shown(one, [(n, [list(range(n))])]) for n in range(1, event.keys + 1))
    assert escape(event) == pytest.approx(min(1.0, worst), rel=1e-9)


@pytest.mark.parametrize("group", [2, 10, 30])
def test_of_many_records_it_is_within_three_times_those_that_hold_the_same_keys(group: int) -> None:
    one = replace(TABLE, shares=(0.6,), threshold=40.0)
    same = [(2, [[0, 1]])] * group
    assert shown(one, same) <= escape(one, group) < 3 * shown(one, same)


@given(events, st.integers(1, 60), st.integers(1, 60))
def test_more_records_and_a_lower_threshold_never_show_less(event: ThresholdedCounts, one: int, other: int) -> None:
    few, many = sorted((one, other))
    assert escape(event, few) <= escape(event, many) * (1 + 1e-2)  # pieces of the range lie elsewhere
    assert escape(replace(event, threshold=event.threshold * 1.1), few) <= escape(event, few)


@settings(max_examples=150)
@given(st.data(), events, st.integers(1, 12))
def test_values_of_few_records_stand_no_more_often_than_stated(
    data: st.DataObject, event: ThresholdedCounts, copies: int
) -> None:
    """One record's values, each also in at most ``copies`` − 1 others, whatever the others' weights."""
    event = replace(event, one_sided=True, copies=copies)
    masks = data.draw(st.integers(1, event.keys))
    own = min(1.0, math.sqrt(event.record_weight / masks))
    others = data.draw(st.lists(st.lists(st.floats(0, 1), max_size=copies - 1), max_size=masks))
    share = max(event.shares)
    chance = sum(float(norm.sf((event.threshold - share * (own + sum(each))) / event.std)) for each in others)
    assert standing(event) >= min(1.0, chance) * (1 - 1e-9)


@given(events, st.integers(1, 12))
def test_it_is_reached_where_all_others_weigh_one(event: ThresholdedCounts, copies: int) -> None:
    event = replace(event, one_sided=True, copies=copies)
    worst = 0.0
    for n in range(1, event.keys + 1):
        count = max(event.shares) * (copies - 1 + min(1.0, math.sqrt(event.record_weight / n)))
        worst = max(worst, n * float(norm.sf((event.threshold - count) / event.std)))
    assert standing(event) == pytest.approx(min(1.0, worst), rel=1e-9)


def test_what_stands_is_read_only_beside_a_release_that_allows_it() -> None:
    """A step without noise that reads common values where they stand is no free step: a release has to pay for it."""
    reading = NonPrivate(("public", "common"))
    stays = replace(TABLE, one_sided=True, copies=10)
    for without in ({STEP: 100}, RUN, {TABLE: 1}):
        assert "without noise read common, public" in str(compose({**without, reading: 3}, "substitution").reason)
    run = compose({stays: 1, STEP: 100, reading: 3}, "substitution")
    assert run.reason is None
    assert run.copies == 10
    plain = compose(WITHOUT, "substitution")
    for k in (1, 7):
        lost = escape(stays, k) + k * standing(stays)
        assert run.for_group(k).delta(2.0) == pytest.approx(plain.for_group(k).delta(2.0) + lost, rel=1e-12)
        assert lost > escape(stays, k)
    assert compose({stays: 1, reading: 3}, "add-remove").reason


def test_a_threshold_of_values_that_stand_protects_so_many_copies() -> None:
    stays = replace(TABLE, one_sided=True, copies=25)
    found = threshold(stays, 1, 1e-5)
    assert standing(replace(stays, threshold=found)) <= 1e-5 < standing(replace(stays, threshold=found * (1 - 2e-5)))
    assert found > threshold(TABLE, 1, 1e-5)


@pytest.mark.parametrize("copies", [1, 10, 100])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-12])
@pytest.mark.parametrize("sigma", [0.2, 2.0, 20.0])
def test_the_threshold_is_the_least_of_six_digits(copies: int, delta: float, sigma: float) -> None:
    event = replace(TABLE, noise_multiplier=sigma)
    found = threshold(event, copies, delta)
    assert found == float(f"{found:.6g}")
    assert escape(replace(event, threshold=found), copies) <= delta
    assert escape(replace(event, threshold=found * (1 - 2e-5)), copies) > delta


@pytest.mark.parametrize(("copies", "delta"), [(0, 1e-5), (True, 1e-5), (2.0, 1e-5), (10, 0.0), (10, 1.0)])
def test_impossible_protection_is_refused(copies: Any, delta: float) -> None:
    with pytest.raises(UsageError, match="copies"):
        threshold(TABLE, copies, delta)


def test_stated_numbers() -> None:
    """docs/guarantees.md §3.7 states these."""
    table = ValueTable().phase(24_818, Target(3.0, 8e-5)).event
    assert isinstance(table, ThresholdedCounts)
    assert (table.distance, table.std) == (2.0, 4.0)
    assert round(table.threshold, 1) == 24.3
    assert [round(table.threshold / share) for share in table.shares] == [40, 69]
    assert [f"{escape(table, k):.0e}" for k in (1, 10, 20, 40)] == ["3e-08", "1e-05", "5e-03", "1e+00"]
    known = ValueTable().phase(24_818, Target(3.0, 8e-5), known=True).event
    assert isinstance(known, ThresholdedCounts)
    assert round(known.threshold, 1) == 18.8
    assert [round(known.threshold / share) for share in known.shares] == [31, 54]
    alone = compose({table: 1}, "substitution")
    assert round(alone.epsilon(8e-5), 2) == 1.73
    assert alone.for_group(13).epsilon(8e-5) < math.inf == alone.for_group(14).epsilon(8e-5)
    steps = (3.0, 8e-5, 256 / 24_818, 150, "substitution")
    assert round(noise_multiplier(*steps), 3) == 0.635  # type: ignore[arg-type]
    assert round(noise_multiplier(*steps, {table: 1}), 3) == 0.675  # type: ignore[arg-type]


# In the accountant


@pytest.mark.parametrize("group", [1, 2, 5])
def test_delta_epsilon_and_curve_are_those_of_the_noise_and_what_is_shown_beside(group: int) -> None:
    run, noise = (compose(steps, "substitution", group) for steps in (RUN, WITHOUT))
    beside = escape(TABLE, group)
    assert run.escaped == beside > 0
    for at in (0.0, 0.5, 1.0, 3.0, math.inf):
        assert run.delta(at) == noise.delta(at) + beside
    assert run.epsilon(1e-4) == noise.epsilon(1e-4 - beside)
    curve, bare = run.curve(1e-4), noise.curve(1e-4 - beside)
    assert np.array_equal(curve.epsilons, bare.epsilons)
    assert np.allclose(curve.deltas, bare.deltas + beside, rtol=1e-12)
    assert curve.floor >= beside
    assert curve.whole == math.inf, "no μ holds down to δ = 0"
    attack = TradeOff.of(curve, run.epsilon(1e-4), 1e-4)
    assert attack.detected <= 1e-4 + math.exp(run.epsilon(1e-4)) * attack.false_alarms
    assert attack.down_to_delta >= beside


def test_nothing_is_claimed_where_more_is_shown_than_delta() -> None:
    profile = compose({TABLE: 1}, "substitution")
    last = max(k for k in range(1, 60) if escape(TABLE, k) < 1e-4)
    assert 1 < last < 59
    assert profile.for_group(last).epsilon(1e-4) < math.inf
    assert profile.for_group(last + 1).epsilon(1e-4) == math.inf
    assert profile.for_group(60).delta(50.0) == 1.0
    assert largest_group(profile, 1e-4, limit=1e9, most=100) == last
    assert compose({TABLE: 3}, "substitution").escaped == 3 * escape(TABLE)


def test_without_noise_of_steps_it_is_the_gaussian_of_mu() -> None:
    at, mu = 1.3, TABLE.distance / TABLE.std
    exact = norm.cdf(mu / 2 - at / mu) - math.exp(at) * norm.cdf(-mu / 2 - at / mu)
    assert compose({TABLE: 1}, "substitution").delta(at) - escape(TABLE) == pytest.approx(exact, rel=1e-3)


@settings(max_examples=20)
@given(st.floats(0.2, 2.0), st.floats(0.0, 4.0), st.floats(0, 1), st.floats(0, 1), st.floats(0.0, 3.0))
def test_worlds_with_keys_of_their_own_are_no_further_apart_than_stated(
    mu: float, tau: float, mine: float, theirs: float, at: float
) -> None:
    """Theorem A on the smallest worlds: a common count that moves by all of Δ, and in each world one key that the other
    has not. The hockey-stick divergence in closed form."""
    event = ThresholdedCounts(1 / mu, tau + 1e-3, 2.0, 1, (1.0,))
    p, q = (float(norm.sf((event.threshold - count) / event.std)) for count in (mine, theirs))
    # Neither key is shown: (1 − p)·N(μ) against e^at·(1 − q)·N(0).
    shift = at + math.log1p(-q) - math.log1p(-p)
    nothing = norm.cdf(mu / 2 - shift / mu) - math.exp(shift) * norm.cdf(-mu / 2 - shift / mu)
    exact = p + (1 - p) * nothing
    assert exact <= compose({event: 1}, "substitution").delta(at) * (1 + 1e-9)


def test_add_and_remove_has_no_claim_and_says_why() -> None:
    profile = compose(RUN, "add-remove")
    assert profile.epsilon(1e-4) == math.inf
    assert "counts the skeletons" in (profile.reason or "")
    assert compose({TABLE: 0, STEP: 3}, "add-remove").reason is None


def test_private_selection_refuses_what_no_renyi_curve_counts() -> None:
    found = select(compose(RUN, "substitution"), NegativeBinomial(5), 1e-4)
    assert found.epsilon == math.inf
    assert "no Rényi curve" in (found.profile.reason or "")


# Calibration


def test_noise_beside_a_table_keeps_the_target_and_no_more() -> None:
    sigma = noise_multiplier(3.0, 8e-5, 0.01, 150, "substitution", {TABLE: 1})

    def spent(noise: float) -> float:
        return compose({TABLE: 1, PoissonGaussian(0.01, noise): 150}, "substitution").epsilon(8e-5)

    assert spent(sigma) <= 3.0 < spent(sigma * 0.998)
    assert sigma > noise_multiplier(3.0, 8e-5, 0.01, 150, "substitution")


@pytest.mark.parametrize(
    ("event", "epsilon"), [(replace(TABLE, noise_multiplier=0.2), 3.0), (replace(TABLE, threshold=3.0), 100.0)]
)
def test_a_table_that_leaves_nothing_is_refused(event: ThresholdedCounts, epsilon: float) -> None:
    with pytest.raises(GuaranteeError, match="released beside the steps spends"):
        noise_multiplier(epsilon, 8e-5, 0.01, 150, "substitution", {event: 1})


# In files


@settings(max_examples=40)
@given(
    st.floats(1e-3, 1e9), st.floats(1e-3, 1e9), st.floats(1e-3, 1e9), st.integers(1, 1000),
    st.lists(st.floats(1e-9, 0.35), min_size=1, max_size=8).map(tuple),
)  # fmt: skip
def test_json_round_trip_within_the_limits_of_files(sigma, tau, weight, keys, shares) -> None:
    event = ThresholdedCounts(sigma, tau, weight, keys, shares)
    assert from_json(event.to_json()) == event
    assert 0 <= escape(event, 10**6) <= 1


@pytest.mark.parametrize("field", ["noise_multiplier", "threshold", "record_weight", "keys", "shares"])
@pytest.mark.parametrize(
    "value",
    [0, -1, -0.5, 1e300, 1e-300, math.nan, math.inf, True, None, "1", [], {}, [1.0, 1.0], [0.0], [-0.5], ["a"], [True],
     [0.1] * 9, 10**6, 1.5],
)  # fmt: skip
def test_files_that_say_what_no_release_is_are_refused(field: str, value: Any) -> None:
    if (field, value) in (("record_weight", 1.5), ("noise_multiplier", 1.5), ("threshold", 1.5)) or (
        value == 10**6 and field not in ("keys", "shares")
    ):
        from_json({**TABLE.to_json(), field: value})
        return
    with pytest.raises(GuaranteeError):
        from_json({**TABLE.to_json(), field: value})


@pytest.mark.parametrize("shares", [(), (1.1,), (0.9, 0.9), (0.0,), [0.5]])
def test_shares_beyond_one_are_refused(shares: Any) -> None:
    with pytest.raises(UsageError, match="shares"):
        replace(TABLE, shares=shares)


def test_a_strangers_table_is_paid_for_before_it_is_computed() -> None:
    """Group sizes are asked for by the hundred: 10⁹ evaluations for a file that costs nothing to write."""
    event = ThresholdedCounts(1.7, 100.0, 2.0, 1000, (0.3,) * 8)
    with at_most(1e7) as effort:
        escape(event, 2)
        assert effort.spent > 10**6
        with pytest.raises(GuaranteeError, match="evaluations"):
            [escape(event, group) for group in range(3, 1001)]
    assert effort.spent <= 1e7
