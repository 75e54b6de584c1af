from __future__ import annotations

import math
from dataclasses import replace

import pytest

from taciturn.errors import DataError, UsageError
from taciturn.mechanisms.registry import guarantees
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian, ThresholdedCounts
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.premises import APART, STANDING

NOISY = PoissonGaussian(0.02, 1.0)
CRT_READS = NonPrivate(("public", "skeletons"))
CRT = {CRT_READS: 300, NOISY: 200}
DELTA = 8e-5


def by(mechanism, counts, **evidence):
    """Guarantees by (notion, first words of the unit)."""
    return {(g.notion, g.unit): g for g in guarantees(mechanism, {"steps": counts}, Evidence(delta=DELTA, **evidence))}


def one(found, notion):
    (guarantee,) = [g for (name, _), g in found.items() if name == notion]
    return guarantee


def test_raw_training_promises_nothing():
    found = guarantees("sgd", {"steps": {NonPrivate(("original",)): 10}}, Evidence(delta=DELTA, redacted=False))
    assert [(g.status, g.epsilon) for g in found] == [("none", math.inf)]


def test_redaction_is_perfect_where_it_sees_and_nothing_elsewhere():
    detected, missed = guarantees("redacted", {"steps": {NonPrivate(("redacted",)): 10}}, Evidence(delta=DELTA))
    assert (detected.epsilon, detected.delta, detected.status) == (0, 0, "proved")
    assert (missed.epsilon, missed.status) == (math.inf, "none")
    assert "misses" in missed.unit


def test_crt_is_conditional_on_the_conservative_policy():
    single = one(by("crt", CRT), "confidentiality")
    assert single.status == "conditional"
    assert single.relation == "substitution"
    assert single.epsilon == compose({NOISY: 200}, "substitution").epsilon(DELTA)
    assert [a.text for a in single.assumptions if not a.enforced] == [
        "the conservative policy marks every secret that the policy misses"
    ]
    assert single.detail["epsilon_if_detected"] == 0


def test_skeletons_add_a_condition_of_their_own():
    single = one(by("crt", CRT, skeletons=True), "confidentiality")
    still_open = [a.text for a in single.assumptions if not a.enforced]
    assert len(still_open) == 2
    assert "wholly" in still_open[1]
    assert one(by("crt", CRT, skeletons=True, all_private=True), "confidentiality").status == "conditional"


TABLE = ThresholdedCounts(2.0, 20.0, 2.0, 16, (0.6, 0.35), one_sided=True)
STAYS = replace(TABLE, copies=10)
STANDS = {STAYS: 1, NonPrivate(("public", "common")): 300, NOISY: 200}


def test_where_common_values_stand_a_claim_is_about_rare_ones_under_a_condition_more():
    labels = {"labelled": 50, "missed_by_pi": 2, "missed_by_both": 0}
    found = by("crt", STANDS, skeletons=True, records_per_user=3, groups=(("a", 2),), **labels)
    single, (drawn,) = one(found, "confidentiality"), [g for g in found.values() if "drawn" in g.unit]
    assert single.unit == "a secret in one record, where what stands at its mask stands in at most 10 records"
    assert single.epsilon == compose(STANDS, "substitution").epsilon(DELTA)
    assert single.epsilon > compose({TABLE: 1, NOISY: 200}, "substitution").epsilon(DELTA)
    assert [a for a in single.assumptions if not a.enforced][-2:] == [APART, STANDING]
    assert all(g.unit.endswith("in at most 10 records") for g in found.values() if g.notion == "group-confidentiality")
    assert (drawn.status, drawn.epsilon) == ("none", math.inf)
    assert "known only after the counts" in drawn.reason


def test_counts_of_known_slots_rest_on_a_condition_more_than_those_of_slots_that_were_found():
    far = replace(TABLE, threshold=60.0)
    laid = replace(far, one_sided=False)
    runs = ({table: 1, CRT_READS: 3, NOISY: 200} for table in (far, laid))
    known, found = (one(by("crt", counts, skeletons=True), "confidentiality") for counts in runs)
    still_open = [{a.text for a in each.assumptions if not a.enforced} for each in (known, found)]
    assert still_open[0] - still_open[1] == {APART.text}
    assert known.epsilon == pytest.approx(found.epsilon, rel=1e-3), "the noise is what differs, for the same ε"
    assert far.std == pytest.approx(laid.std / math.sqrt(2))


def test_steps_that_read_common_values_without_a_release_for_it_leave_nothing_to_claim():
    for counts in ({**STANDS, STAYS: 0}, {TABLE: 1, NonPrivate(("public", "common")): 300, NOISY: 200}):
        single = one(by("crt", counts, skeletons=True), "confidentiality")
        assert (single.status, single.epsilon) == ("none", math.inf)
        assert "without noise read common" in single.reason


PUBLIC = {"public_values": 120, "public_digest": "0123456789abcdef" * 2, "public_kinds": ("time", "small-number")}
SPARED = (
    f"no secret is, or lies in, one of the 120 public values (digest {PUBLIC['public_digest']}) or a value of the kind "
    "time, small-number: the conservative policy leaves these unmarked"
)


@pytest.mark.parametrize(
    ("mechanism", "some"), [("crt", 3), ("crt_residual", 5), ("jft", 3), ("dpsgd", 0), ("redacted", 0)]
)
def test_public_values_are_a_condition_wherever_what_policies_mark_is_one(mechanism, some):
    """Of every claim that rests on what they mark, and of no other."""
    counts = {"dpsgd": {NOISY: 200}, "redacted": {NonPrivate(("redacted",)): 10}}.get(mechanism, CRT)
    evidence = Evidence(
        delta=DELTA, skeletons=mechanism not in ("dpsgd", "redacted"), records_per_user=3, groups=(("g", 2),), **PUBLIC
    )
    phases = (
        {"redacted": {NonPrivate(("public", "skeletons")): 3}, "private": {NOISY: 9}}
        if mechanism == "jft"
        else {"steps": counts}
    )
    found = guarantees(mechanism, phases, evidence)
    assert sum(SPARED in [a.text for a in g.assumptions] for g in found) == some
    for g in found:
        texts = [a.text for a in g.assumptions]
        marked = any("what the policies mark" in text or "marks every secret" in text for text in texts)
        # what π detects is masked whatever is public: such a claim rests on skeletons alone
        assert (SPARED in texts) == (marked and "that the policy detects" not in g.unit)


def test_labels_that_are_public_values_refute_and_the_rest_keeps_the_condition():
    found = by("crt", CRT, skeletons=True, labelled=100, missed_by_pi=10, missed_by_both=4, **PUBLIC)
    statuses = {g.unit: g for (notion, _), g in found.items() if notion == "confidentiality"}
    assert statuses["a secret in one record"].status == "refuted"
    (rest,) = [g for unit, g in statuses.items() if "only what" in unit]
    assert SPARED in [a.text for a in rest.assumptions]


@pytest.mark.parametrize(
    "wrong",
    [
        {"public_values": 3},
        {"public_digest": "0" * 32},
        {"public_values": 3, "public_digest": "no digest"},
        {"public_values": -1, "public_digest": "0" * 32},
        {"public_values": 2**60, "public_digest": "0" * 32},
        {"public_kinds": ("name",)},
        {"public_kinds": ("time",) * 6},
    ],
)
def test_evidence_of_public_values_is_within_limits(wrong):
    with pytest.raises(UsageError, match="public"):
        Evidence(delta=DELTA, **wrong)
    with pytest.raises(DataError, match="public"):
        Evidence.from_json(
            Evidence(delta=DELTA).to_json() | {k: list(v) if k == "public_kinds" else v for k, v in wrong.items()}
        )
    whole = Evidence(delta=DELTA, **PUBLIC)
    assert Evidence.from_json(whole.to_json()) == whole


def test_sentences_add_the_condition_that_masking_moves_no_boundary():
    for mechanism, counts in (("crt", CRT), ("dpsgd", {NOISY: 200})):
        single = one(by(mechanism, counts, unit="sentence", all_private=True), "confidentiality")
        assert single.status == "conditional"
        assert "boundary" in next(a.text for a in single.assumptions if not a.enforced)
        assert one(by(mechanism, counts, unit="turn", all_private=True), "confidentiality").status == "proved"


def test_confidentiality_never_quotes_the_add_remove_epsilon():
    single = one(by("crt", CRT, skeletons=True), "confidentiality")
    assert single.epsilon > 1.3 * compose({NOISY: 200}, "add-remove").epsilon(DELTA)


def test_all_private_needs_no_condition():
    assert one(by("crt", {NOISY: 200}, all_private=True), "confidentiality").status == "proved"
    assert one(by("dpsgd", {NOISY: 200}), "confidentiality").status == "proved"


def test_record_privacy_of_crt_is_for_private_records_and_never_with_skeletons():
    without = one(by("crt", {NonPrivate(("public",)): 9, NOISY: 200}), "dp")
    assert without.status == "proved"
    assert "public records are not protected" in without.unit
    assert without.epsilon == compose({NOISY: 200}, "add-remove").epsilon(DELTA)
    having = one(by("crt", CRT, skeletons=True), "dp")
    assert having.status == "none"
    assert "skeletons" in having.reason


def test_p14_a_record_certificate_never_claims_users_and_says_what_one_gets():
    found = by("dpsgd", {NOISY: 200}, redacted=False, records_per_user=3)
    dp = [g for (notion, _), g in found.items() if notion == "dp"]
    assert [g.status for g in dp] == ["proved", "proved"]
    assert dp[1].epsilon == compose({NOISY: 200}, "add-remove", group=3).epsilon(DELTA) > dp[0].epsilon
    assert "3" in dp[1].unit
    assert not any(notion == "bayesian-confidentiality" for notion, _ in found)


def test_groups_report_the_smaller_bound():
    found = by("crt", CRT, skeletons=True, groups=(("accounts", 3), ("none left", 0)), records_per_user=2)
    groups = {g.detail["k"]: g for (notion, _), g in found.items() if notion == "group-confidentiality"}
    assert set(groups) == {0, 2, 3}
    assert groups[0].epsilon == 0
    assert groups[3].epsilon == min(groups[3].detail["epsilon_blackbox"], groups[3].detail["epsilon_tight"])
    assert groups[3].epsilon > groups[2].epsilon > one(found, "confidentiality").epsilon


def test_the_bayesian_bound_states_its_own_delta():
    drawn = one(by("crt", CRT, labelled=200, missed_by_pi=20, missed_by_both=0), "bayesian-confidentiality")
    assert drawn.delta == pytest.approx(8e-5 + 0.014867, abs=1e-5)
    assert drawn.detail["gamma"] == pytest.approx(0.142, abs=1e-3)
    assert drawn.detail["epsilon_if_missed"] > drawn.epsilon
    assert "random sample" in drawn.words()
    assert "10 %" in drawn.words()
    enough = one(by("crt", CRT, labelled=40_000, missed_by_pi=4000, missed_by_both=0), "bayesian-confidentiality")
    assert enough.delta == DELTA
    unlabelled = one(by("crt", CRT), "bayesian-confidentiality")
    assert unlabelled.status == "none"
    assert "37446" in unlabelled.reason


@pytest.mark.parametrize(
    ("fact", "word"),
    [
        ({"seeded_noise": True}, "seed"),
        ({"dedup": "near"}, "near-duplicate"),
        ({"preprocessing": ("the vocabulary was learned on private text",)}, "vocabulary"),
    ],
)
def test_facts_that_void_the_proof_leave_nothing(fact, word):
    for guarantee in guarantees("crt", {"steps": CRT}, Evidence(delta=DELTA, **fact)):
        assert guarantee.status == "none"
        assert guarantee.epsilon == math.inf
    single = one(by("crt", CRT, **fact), "confidentiality")
    assert word in single.reason
    assert math.isfinite(single.detail["epsilon_otherwise"])


def test_the_published_order_is_a_published_claim():
    single = one(by("crt", CRT, order="as-published", skeletons=True), "confidentiality")
    assert single.status == "published-claim"
    assert "epsilon_if_detected" not in single.detail
    detected, _ = guarantees("redacted", {"steps": {}}, Evidence(delta=DELTA, order="as-published"))
    assert detected.status == "published-claim"


def test_private_validation_opens_a_proof():
    single = one(by("dpsgd", {NOISY: 200}, private_validation=True), "confidentiality")
    assert single.status == "conditional"


def test_a_noiseless_private_step_voids_crt():
    single = one(by("crt", {**CRT, NonPrivate(("private",)): 1}, groups=(("a", 2),)), "confidentiality")
    assert single.status == "none"
    assert "without noise" in single.reason


def test_unknown_mechanisms_name_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'dpsgd'"):
        guarantees("dpsdg", {"steps": {}}, Evidence(delta=DELTA))


def test_evidence_round_trip_and_refusals():
    evidence = Evidence(
        delta=1e-5, groups=(("a", 2),), labelled=5, missed_by_pi=1, missed_by_both=0, counts={"read": 3}
    )
    value = evidence.to_json()
    assert Evidence.from_json(value) == evidence
    with pytest.raises(DataError, match="did you mean 'labelled'"):
        Evidence.from_json({**value, "labeled": 5})
    for broken in ({**value, "delta": "1e-5"}, {**value, "missed_by_both": 2}, {**value, "order": "random"}):
        with pytest.raises(DataError):
            Evidence.from_json(broken)


LIGHT = PoissonGaussian(0.02, 0.5)
TWICE = {"redacted": {NonPrivate(("redacted",)): 100}, "private": {NOISY: 200}}
LIGHTLY = {"redacted": {LIGHT: 100}, "private": {NOISY: 200}}


def jft(phases, **evidence):
    return {
        (g.notion, g.unit, g.status): g
        for g in guarantees("jft", phases, Evidence(delta=DELTA, redacted=False, unit="turn", **evidence))
    }


def test_jft_protects_what_is_detected_and_says_what_a_miss_costs():
    found = jft(TWICE, groups=(("family", 3),))
    second = compose({NOISY: 200}, "substitution").epsilon(DELTA)
    (detected,) = [g for g in found.values() if "detects" in g.unit]
    assert (detected.epsilon, detected.status) == (second, "proved")
    rest = [g for g in found.values() if g is not detected]
    assert {g.status for g in rest} == {"none"}
    assert any("family" in g.unit for g in rest)
    assert any("misses" in g.unit and "without noise" in g.reason for g in rest)


def test_light_noise_bounds_a_miss_and_the_published_figure_is_an_estimate_below_the_bound():
    labels = {"labelled": 200, "missed_by_pi": 20, "missed_by_both": 0}
    found = list(jft(LIGHTLY, **labels).values())
    (detected,) = [g for g in found if "detects" in g.unit]
    (missed,) = [g for g in found if "misses" in g.unit]
    drawn, published = [g for g in found if g.notion == "bayesian-confidentiality"]
    assert missed.epsilon == compose({NOISY: 200, LIGHT: 100}, "substitution").epsilon(DELTA)
    assert detected.epsilon < drawn.epsilon < missed.epsilon
    assert (drawn.status, published.status) == ("conditional", "estimate")
    assert published.epsilon < drawn.epsilon
    assert published.relation == "add-remove"
    assert "published" in published.theorem


def test_a_noiseless_first_phase_puts_the_miss_rate_into_delta():
    found = jft(TWICE, labelled=200, missed_by_pi=0, missed_by_both=0)
    (drawn,) = [g for g in found.values() if g.notion == "bayesian-confidentiality"]
    assert drawn.delta == pytest.approx(DELTA + drawn.detail["gamma"])
    at = DELTA / (1 - drawn.detail["gamma"])
    assert drawn.epsilon == pytest.approx(compose({NOISY: 200}, "substitution").epsilon(at), rel=1e-6)


def test_phases_of_equal_noise_are_told_apart():
    same = {"redacted": {NOISY: 100}, "private": {NOISY: 200}}
    (detected,) = [g for g in jft(same).values() if "detects" in g.unit]
    (missed,) = [g for g in jft(same).values() if "misses" in g.unit]
    assert detected.epsilon == compose({NOISY: 200}, "substitution").epsilon(DELTA)
    assert missed.epsilon == compose({NOISY: 300}, "substitution").epsilon(DELTA)


def test_where_nothing_holds_the_published_estimate_is_not_printed_either():
    labels = {"labelled": 200, "missed_by_pi": 20, "missed_by_both": 0}
    for fact in ({"seeded_noise": True}, {"dedup": "near"}, {"preprocessing": ("cleaned",)}):
        assert {g.status for g in jft(LIGHTLY, **labels, **fact).values()} == {"none"}
