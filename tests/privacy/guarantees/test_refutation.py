"""What evidence leaves of a claim: refuted where it speaks against a condition, none where δ is too large for a promise."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from taciturn.auditing.lower_bounds.against_certificate import Audited, statement
from taciturn.errors import DataError, UsageError
from taciturn.mechanisms.registry import guarantees
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian
from taciturn.privacy.certificates.composed_runs import other_runs
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.premises import COVERED, GROUP, SECRET, WHOLE, covered, whole
from taciturn.privacy.guarantees.refutation import DRAWN_DELTA, NARROWED, unmarked
from taciturn.privacy.guarantees.release import against_release
from taciturn.privacy.guarantees.theorems import labels_needed, recall_bound

NOISY = PoissonGaussian(0.02, 1.0)
PUBLIC, SKELETONS = NonPrivate(("public",)), NonPrivate(("public", "skeletons"))
DELTA = 1e-5
MISSED = {"labelled": 21, "missed_by_pi": 11, "missed_by_both": 11}
CLEAN = {"labelled": 2000, "missed_by_pi": 11, "missed_by_both": 0}
RESTING: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "crt": ("crt", {"public": {PUBLIC: 9}, "private": {NOISY: 50}}, {}),
    "crt with skeletons": ("crt", {"public": {SKELETONS: 9}, "private": {NOISY: 50}}, {"skeletons": True}),
    "all private": (
        "crt",
        {"public": {SKELETONS: 9}, "private": {NOISY: 50}},
        {"skeletons": True, "all_private": True},
    ),
    "crt_residual": ("crt_residual", {"public": {SKELETONS: 9}, "private": {NOISY: 50}}, {"skeletons": True}),
    "jft": ("jft", {"redacted": {SKELETONS: 9}, "private": {NOISY: 50}}, {"skeletons": True, "redacted": False}),
    "as published": ("crt", {"public": {PUBLIC: 9}, "private": {NOISY: 50}}, {"order": "as-published"}),
}
"""Every mechanism and way of it whose statements rest on what the policies mark."""


def claims(case: str, **facts: Any) -> tuple[list[Guarantee], Evidence]:
    name, phases, more = RESTING[case]
    evidence = Evidence(DELTA, unit="turn", records_per_user=3, **{"groups": (("family", 2),), **more, **facts})
    return guarantees(name, phases, evidence), evidence


@pytest.mark.parametrize("case", RESTING)
def test_labels_that_no_policy_marks_refute_every_claim_that_rests_on_it(case: str) -> None:
    before, _ = claims(case, **CLEAN)
    resting = [g for g in before if {COVERED, WHOLE} & set(g.assumptions)]
    assert len(resting) >= 3, "one secret, one group, one user"
    found, evidence = claims(case, **MISSED)
    assert not [g for g in found if {COVERED, WHOLE} & set(g.assumptions)]
    for was in resting:
        (now,) = [g for g in found if (g.notion, g.unit) == (was.notion, was.unit)]
        assert (now.status, now.epsilon, now.assumptions) == ("refuted", math.inf, ())
        assert "11 of 21 labelled secrets are marked" in now.words()
        assert f"ε = {was.epsilon:.3g}" not in now.words(), "what is refuted is not quoted"
    reasons = against_release(found, evidence)
    assert len([each for each in reasons if "11 of 21 labelled secrets" in each]) == 1


@pytest.mark.parametrize("case", RESTING)
def test_what_the_policies_mark_is_claimed_by_itself_with_its_share(case: str) -> None:
    before, _ = claims(case, **CLEAN)
    found, _ = claims(case, **MISSED)
    narrowed = [g for g in found if NARROWED in g.unit]
    resting = [g for g in before if {COVERED, WHOLE} & set(g.assumptions)]
    assert [(g.notion, g.unit.partition(NARROWED)[0], g.epsilon, g.delta) for g in narrowed] == [
        (g.notion, g.unit, g.epsilon, g.delta) for g in resting
    ]
    for each in narrowed:
        assert each.status == ("published-claim" if case == "as published" else "proved")
        assert "11 of 21 labelled secrets" in each.words()
        assert each.detail["unmarked_at_most"] == recall_bound(11, 21)
        assert ("same skeleton" in each.unit) == (case not in ("crt", "as published"))


def test_the_bound_that_is_said_is_clopper_pearsons_rounded_up() -> None:
    said = unmarked(Evidence(DELTA, **MISSED))  # type: ignore[arg-type]
    assert said == "11 of 21 labelled secrets are marked by no policy: at most 71.5 % with 95 % confidence"
    assert binom.cdf(11, 21, 0.715) <= 0.05 < binom.cdf(11, 21, 0.714)
    weighted = Evidence(DELTA, label_unit="record", miss_bounds=(0.9, 0.8), confidence=0.9, **MISSED)  # type: ignore[arg-type]
    assert "11 of 21 labelled records with a secret hold one that no policy marks: at most 80 % with 90 %" in unmarked(
        weighted
    )


def test_without_such_labels_nothing_changes_and_noise_on_everything_needs_no_policy() -> None:
    for case in RESTING:
        assert "refuted" not in {g.status for g in claims(case, **CLEAN)[0]}
        assert "refuted" not in {g.status for g in claims(case)[0]}
    noised = guarantees("dpsgd", {"private": {NOISY: 50}}, Evidence(DELTA, unit="turn", redacted=False, **MISSED))  # type: ignore[arg-type]
    assert {g.status for g in noised} == {"proved"}


@pytest.mark.parametrize("case", RESTING)
def test_a_secret_of_a_group_in_text_read_without_noise_refutes_as_labels_do(case: str) -> None:
    found, evidence = claims(case, open_groups=(("family", 3), ("others", 0)))
    assert "refuted" in {g.status for g in found}
    (reason,) = [each for each in against_release(found, evidence) if "refutes" in each]
    assert "3 records that are read without noise still hold a secret of the group 'family'" in reason
    assert "others" not in reason


OWN = {covered("family"), whole("family")}
SKELETONS = [case for case, (*_, more) in RESTING.items() if more.get("skeletons")]


def of_group(case: str, **facts: Any) -> Guarantee:
    """What is said of the group, not narrowed."""
    (found,) = [g for g in claims(case, **facts)[0] if g.unit.startswith(GROUP) and NARROWED not in g.unit]
    return found


@pytest.mark.parametrize("case", RESTING)
def test_labels_of_other_secrets_say_nothing_against_a_group_that_was_looked_for(case: str) -> None:
    """Masking the group's secrets leaves the records of those that labels show as they are, in public text too."""
    before, looked = of_group(case, **CLEAN), {"open_groups": (("family", 0),)}
    assert of_group(case, **MISSED).status == "refuted", "nobody counted the group's own secrets"
    now = of_group(case, **MISSED, **looked)
    assert (now.epsilon, now.delta, now.status) == (before.epsilon, before.delta, before.status)
    assert now.status in ("conditional", "published-claim")
    own = {COVERED: covered("family"), WHOLE: whole("family")}
    asked = {own.get(each, each) for each in before.assumptions}
    assert set(now.assumptions) == asked
    assert OWN & set(now.assumptions)
    assert "of the group 'family'" in now.words()
    found, evidence = claims(case, **MISSED, **looked)
    assert [g.status for g in found if not g.unit.startswith(GROUP) and {COVERED, WHOLE} & set(g.assumptions)] == []
    assert any("refutes" in each for each in against_release(found, evidence)), "the model stays where it is"


@pytest.mark.parametrize("case", RESTING)
def test_a_group_is_refuted_by_its_own_secrets_and_by_no_others(case: str) -> None:
    found, _ = claims(case, open_groups=(("family", 0), ("others", 2)), groups=(("family", 2), ("others", 5)))
    family, others = [g for g in found if g.unit.startswith(GROUP) and NARROWED not in g.unit]
    assert family.status in ("conditional", "published-claim")
    assert others.status == "refuted"
    assert "2 records that are read without noise still hold a secret of the group 'others'" in others.reason
    assert ("or a part of one" in others.reason) == (case in SKELETONS)
    assert [g.status for g in found if g.unit == SECRET] == (["refuted"] if case != "jft" else [])
    (narrowed,) = [g for g in found if g.unit.startswith(f"{GROUP} 'others'") and NARROWED in g.unit]
    assert ("same skeleton" in narrowed.unit) == (case in SKELETONS)
    assert not {covered("others"), whole("others")} & {a for g in found for a in g.assumptions}


def test_several_runs_together_promise_nothing_that_one_of_them_does_not() -> None:
    name, phases, more = RESTING["crt with skeletons"]
    paid = {"event": NOISY.to_json(), "unit": "record", "seeded": False, "steps": 50}
    plan = {"mechanism": name, "phases": [{"name": each, "unit": "record"} for each in phases]}
    for labels, status in ((CLEAN, "conditional"), (MISSED, "refuted")):
        evidence = Evidence(DELTA, other_runs=1, other_steps=(paid,), **more, **labels)
        told = other_runs(plan, phases, evidence, DELTA)
        (claim,) = [each for each in told["together"] if each["unit"] == SECRET]
        assert claim["status"] == status
        assert (claim["epsilon"] == "inf") == (status == "refuted")


def test_several_runs_of_which_one_was_prepared_wrongly_promise_nothing() -> None:
    paid = {"event": NOISY.to_json(), "unit": "record", "seeded": False, "steps": 50}
    plan = {"mechanism": "dpsgd", "phases": [{"name": "private", "unit": "record"}]}
    for reasons, finite in (((), True), (("the tokenizer was learned from what is protected",), False)):
        evidence = Evidence(DELTA, redacted=False, other_runs=1, other_steps=(paid,), preprocessing=reasons)
        told = other_runs(plan, {"private": {NOISY: 50}}, evidence, DELTA)
        assert {each["epsilon"] != "inf" for each in told["together"]} == {finite}
        assert {each["status"] for each in told["together"]} == {"conditional" if finite else "none"}


def test_an_attack_on_what_policies_may_not_mark_is_held_against_no_narrower_claim() -> None:
    found, _ = claims("crt", **MISSED)
    assert statement(Audited("confidentiality", "substitution"), found) is None
    detected = statement(Audited("confidentiality", "substitution", detected=True), found)
    assert detected is not None
    assert detected.unit.startswith(SECRET + NARROWED)
    assert statement(Audited("confidentiality", "substitution", k=3), found) is None
    found, _ = claims("crt", **MISSED, open_groups=(("family", 0),))
    assert of_group("crt", **MISSED, open_groups=(("family", 0),)).finite
    assert statement(Audited("confidentiality", "substitution", k=2), found) is None, "nor against one of other secrets"


@given(
    case=st.sampled_from(sorted(RESTING)),
    labels=st.tuples(st.integers(1, 300), st.integers(0, 300), st.integers(0, 300)),
    open_records=st.integers(0, 3),
)
def test_no_claim_rests_on_what_evidence_refutes(case: str, labels: tuple[int, int, int], open_records: int) -> None:
    n, pi = labels[0], min(labels[1], labels[0])
    both = min(labels[2], pi)
    found, evidence = claims(
        case, labelled=n, missed_by_pi=pi, missed_by_both=both, open_groups=(("family", open_records),)
    )
    assert bool([g for g in found if OWN & set(g.assumptions)]) == (not open_records)
    resting = [g for g in found if {COVERED, WHOLE} & set(g.assumptions)]
    if both or open_records:
        assert not resting
        assert any("refutes" in each for each in against_release(found, evidence))
    else:
        assert resting
    for each in found:
        assert each.status in ("none", "refuted") or math.isfinite(each.epsilon)
        if each.notion == "bayesian-confidentiality" and each.finite:
            assert each.delta <= DRAWN_DELTA


# Chances that are too large


@pytest.mark.parametrize("case", ["crt", "crt with skeletons"])
def test_a_chance_of_71_percent_is_no_claim_and_the_labels_that_would_do_are_named(case: str) -> None:
    found, _ = claims(case, **MISSED)
    (drawn,) = [g for g in found if g.notion == "bayesian-confidentiality"]
    assert (drawn.status, drawn.epsilon) == ("none", math.inf)
    assert "apart from a chance of 71.5 %" in drawn.reason
    needed = labels_needed(DRAWN_DELTA - DELTA)
    assert f"{needed} labels without a miss" in drawn.reason
    enough, _ = claims(case, labelled=needed, missed_by_pi=0, missed_by_both=0)
    (drawn,) = [g for g in enough if g.notion == "bayesian-confidentiality"]
    assert drawn.status == "conditional"
    few, _ = claims(case, labelled=needed - 1, missed_by_pi=0, missed_by_both=0)
    assert next(g for g in few if g.notion == "bayesian-confidentiality").status == "none"


def test_jft_averages_over_no_miss_rate_above_ten_percent() -> None:
    phases = {"redacted": {NonPrivate(("redacted",)): 9}, "private": {NOISY: 50}}
    looked = {"labelled": 200, "missed_by_pi": 40, "missed_by_both": 0, "screened": (10, 5)}
    found = guarantees("jft", phases, Evidence(DELTA, redacted=False, **looked))  # type: ignore[arg-type]
    drawn = [g for g in found if g.notion == "bayesian-confidentiality"]
    assert [(g.status, "without a miss" in g.reason) for g in drawn] == [("none", True), ("none", True)]


def test_bounds_that_fail_too_often_promise_nothing() -> None:
    found, _ = claims("crt", **CLEAN, confidence=0.9)  # two bounds, each wrong for a tenth of samples
    (drawn,) = [g for g in found if g.notion == "bayesian-confidentiality"]
    assert drawn.status == "none"
    assert "fail for 20 % of samples" in drawn.reason


@pytest.mark.parametrize(
    ("name", "phases"),
    [
        ("dpsgd", {"private": {NOISY: 50}}),
        ("user_dp", {"private": {NOISY: 50}}),
        ("crt", {"public": {PUBLIC: 9}, "private": {NOISY: 50}}),
        ("jft", {"redacted": {NonPrivate(("redacted",)): 9}, "private": {NOISY: 50}}),
    ],
)
def test_a_delta_that_is_not_below_one_over_the_units_is_no_claim(name: str, phases: dict[str, Any]) -> None:
    """(0, 1/n) is kept by publishing one of n records whole."""
    for units, kept in ((50, True), (99, True), (100, False), (5000, False)):
        found = guarantees(name, phases, Evidence(0.01, protected=units, redacted=name == "crt"))
        assert any(g.finite for g in found) == kept
        if not kept:
            assert any(f"one over the {units} units" in g.reason for g in found)


def test_a_curve_below_one_over_n_is_what_it_was() -> None:
    (single, *_) = guarantees("dpsgd", {"private": {NOISY: 50}}, Evidence(0.01, protected=99, redacted=False))
    assert single.epsilon == compose({NOISY: 50}, "substitution").epsilon(0.01)


def test_what_was_allowed_is_named_and_only_known_names_are() -> None:
    found, evidence = claims("crt", allowed=("cannot-learn", "full-batch"))
    (reason,) = against_release(found, evidence)
    assert "cannot learn" in reason
    with pytest.raises(UsageError, match="large-delta"):
        Evidence(DELTA, allowed=("everything",))
    with pytest.raises(UsageError, match="expected a whole number from 0"):
        Evidence(DELTA, open_groups=(("a", -1),))
    value = Evidence(DELTA, open_groups=(("a", 1),), allowed=("large-delta",), protected=7).to_json()
    assert Evidence.from_json(value).to_json() == value
    with pytest.raises(DataError):
        Evidence.from_json({**value, "allowed": ["all"]})


def test_a_refuted_claim_says_why_or_is_none() -> None:
    with pytest.raises(UsageError, match="reason"):
        Guarantee("dp", "a record", "add-remove", math.inf, DELTA, "refuted", "t", "a")
    with pytest.raises(UsageError, match="∞"):
        Guarantee("dp", "a record", "add-remove", 1.0, DELTA, "refuted", "t", "a", reason="labels say so")
