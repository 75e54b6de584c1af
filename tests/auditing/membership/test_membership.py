"""Membership attacks: they find an over-fitted model, they find nothing where there is nothing, and they say which."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from taciturn.auditing.canaries.templates import Planted
from taciturn.auditing.controls import MEMBERS, TEMPLATE, overfitted
from taciturn.auditing.membership import membership as module
from taciturn.auditing.membership.membership import _positive_aucs, distinct, group_membership, membership
from taciturn.auditing.run import audit
from taciturn.errors import UsageError
from taciturn.models.hf import export
from taciturn.models.loss import score
from taciturn.models.lstm import LSTMConfig, LSTMForCausalLM
from taciturn.models.tokenizers import byte_tokenizer

TOKENIZER = byte_tokenizer()


def untrained(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    config = LSTMConfig(len(TOKENIZER), embedding_size=16, hidden_size=16, initializer_range=1.0)
    return LSTMForCausalLM(config)


def records(n: int, seed: int) -> list[str]:
    """Texts of one kind: random words and a number, all different."""
    rng = np.random.default_rng(seed)
    words = ["please", "send", "the", "parcel", "to", "my", "home", "again", "today"]
    return [" ".join([*rng.choice(words, 4), str(rng.integers(10**9))]) for _ in range(n)]


def test_an_overfitted_model_is_found_out() -> None:
    toy = overfitted()
    finding = membership(toy.model, toy.tokenizer, toy.members, toy.nonmembers)
    assert finding.score > 0.9
    assert finding.interval[0] > 0.8
    assert finding.verdict == "leak"
    assert finding.detail["accuracy"] > finding.null["accuracy_p95"]
    assert finding.detail["accuracy_same_set"] > finding.null["accuracy_same_set_p95"]
    assert finding.detail["eps_lower"] > 0.5
    assert finding.detail["tpr_at_fpr_0.01"] is None  # 50 non-members can't measure it
    assert not any(text in str(finding.to_json()) for text in toy.members)


def test_groups_are_found_out_more_easily() -> None:
    toy = overfitted()
    single = membership(toy.model, toy.tokenizer, toy.members, toy.nonmembers)
    grouped = group_membership(toy.model, toy.tokenizer, toy.members, toy.nonmembers, group_size=2)
    assert grouped.attack == "group-membership"
    assert grouped.detail["members"] == 25
    assert grouped.score > single.score
    assert grouped.verdict == "leak"
    assert "perplexity" in grouped.detail["attacks"]


def test_null_suite_on_models_that_never_trained() -> None:
    """40 untrained models, fresh records each, all six scores: every AUC within 3.9 sd of .5 (false alarm 240 × 1e-4 = .024
    over all seeds, fixed here) and its mean over models within 3 sd, both ε_lower = 0 in at least 95 %, and at most 4
    verdicts "leak" (expected .4)."""
    reference, population = (untrained(99), TOKENIZER), records(60, 99)
    findings = [
        membership(
            untrained(seed), TOKENIZER, records(100, 2 * seed), records(100, 2 * seed + 1), seed=seed,
            reference=reference, population=population,
        )
        for seed in range(40)
    ]  # fmt: skip
    sd = (findings[0].null["p95"] - 0.5) / 1.6449
    for score_name in ("loss", "zlib", "min_k", "min_k_plus", "reference", "rmia"):
        aucs = np.array([f.detail["attacks"][score_name]["auc"] for f in findings])
        assert (np.abs(aucs - 0.5) < 3.9 * sd).all(), score_name
        assert abs(aucs.mean() - 0.5) < 3 * sd / np.sqrt(40), score_name
    assert np.mean([f.detail["eps_lower"] == 0 for f in findings]) >= 0.95
    assert np.mean([f.detail["eps_lower_one_run"] == 0 for f in findings]) >= 0.95
    assert sum(f.verdict == "leak" for f in findings) <= 4
    held_out = np.array([f.detail["accuracy"] for f in findings])
    assert abs(held_out.mean() - 0.5) < 0.035  # not biased upwards: sd of the mean .008
    same_set = np.array([f.detail["accuracy_same_set"] for f in findings])
    assert same_set.mean() == pytest.approx(findings[0].null["accuracy_same_set_mean"], abs=0.02)


def test_two_sources_are_not_called_a_leak() -> None:
    """Members twice as long: any model tells them apart, and so does the length alone."""
    members = [f"{a} {b}" for a, b in zip(records(60, 0), records(60, 1), strict=True)]
    finding = membership(untrained(), TOKENIZER, members, records(60, 2))
    assert finding.controls["blind"] == 1.0
    assert finding.null["p_any"] < 0.05
    assert finding.verdict == "inconclusive"
    assert "blind baseline" in finding.notes[0]


def test_repeats_count_once_and_what_is_on_both_sides_not_at_all() -> None:
    a, b = records(30, 0), records(30, 1)
    finding = membership(untrained(), TOKENIZER, a * 3, b + a[:5])
    assert (finding.detail["members"], finding.detail["nonmembers"]) == (25, 30)
    with pytest.raises(UsageError, match="0 different non-members"):
        membership(untrained(), TOKENIZER, a, a[:3])
    with pytest.raises(UsageError, match="two groups of 20"):
        group_membership(untrained(), TOKENIZER, a, b)


def test_few_records_are_inconclusive() -> None:
    toy = overfitted()
    finding = membership(toy.model, toy.tokenizer, toy.members[:10], toy.nonmembers)
    assert finding.verdict == "inconclusive"
    assert finding.notes == ("fewer than 20 members or non-members",)


def test_a_broken_positive_control_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_positive_aucs", lambda: {**_positive_aucs(), "loss": 0.52})
    finding = membership(untrained(), TOKENIZER, records(30, 0), records(30, 1))
    assert finding.verdict == "inconclusive"
    assert "positive control failed" in finding.notes[0]


def test_a_reference_model_adds_its_attack() -> None:
    toy = overfitted()
    finding = membership(toy.model, toy.tokenizer, toy.members, toy.nonmembers, reference=(untrained(), TOKENIZER))
    assert set(finding.detail["attacks"]) == {"loss", "zlib", "reference", "min_k", "min_k_plus"}
    assert finding.detail["attacks"]["reference"]["auc"] > 0.9
    same = membership(untrained(), TOKENIZER, toy.members, toy.nonmembers, reference=(untrained(), TOKENIZER))
    assert same.detail["attacks"]["reference"]["auc"] == pytest.approx(0.5)


def test_group_scores_are_sums_over_disjoint_groups() -> None:
    """Groups of one are single records; with one group size the sums add up to the total loss."""
    model, a, b = untrained(), records(40, 0), records(40, 1)
    ones = group_membership(model, TOKENIZER, a, b, group_size=1)
    assert ones.score == pytest.approx(membership(model, TOKENIZER, a, b).score)
    nll, count = score(model, TOKENIZER, a)
    seen = {}

    def keep(_: str, attacks: Any, *__: Any, **___: Any) -> None:
        seen.update(attacks)

    original, module.finding_from_scores = module.finding_from_scores, keep
    try:
        group_membership(model, TOKENIZER, a, b, group_size=20)
    finally:
        module.finding_from_scores = original
    assert seen["loss"][0].shape == (2,)
    assert -seen["loss"][0].sum() == pytest.approx((nll / count).sum())


def test_audit_runs_what_was_asked(tmp_path) -> None:
    toy = overfitted()
    export(toy.model, toy.tokenizer, tmp_path / "run" / "model")
    planted = Planted(TEMPLATE, (toy.secret,), copies=20)
    planted.write(tmp_path / "canaries.json")
    findings = audit(
        tmp_path / "run",
        ["exposure", "membership"],
        canaries=tmp_path / "canaries.json",
        members=toy.members,
        nonmembers=toy.nonmembers,
    )
    assert [f.attack for f in findings] == ["exposure", "membership"]
    assert [f.verdict for f in findings] == ["leak", "leak"]
    direct = audit((toy.model, toy.tokenizer), ["exposure"], canaries=planted)
    assert (findings[0].detail["comparisons"], direct[0].detail["comparisons"]) == (2, 1)
    assert findings[1].null["p_holm"] == pytest.approx(2 * findings[1].null["p"])  # the smaller p-value of two
    kept = [
        replace(f, null={**f.null, "p_holm": 0.0}, detail={**f.detail, "comparisons": 0}).to_json()
        for f in (direct[0], findings[0])
    ]
    assert kept[0] == kept[1]


@pytest.mark.parametrize(
    ("attacks", "message"),
    [
        (["exposures"], "did you mean 'exposure'"),
        (["exposure"], "needs what was planted"),
        (["membership"], "needs members"),
        (["group-membership"], "needs members"),
    ],
)
def test_missing_inputs_are_named_before_any_work(attacks: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        audit("nowhere", attacks)


def test_member_template_is_the_positive_controls_own() -> None:
    toy = overfitted()
    assert all(text.startswith(MEMBERS.prefix) for text in toy.members)
    assert not set(toy.members) & set(toy.nonmembers)


def test_what_is_on_both_sides_is_dropped_from_both() -> None:
    """Two draws of 100 from texts of which some are common (Zipf): what is left of either side is as rare as of the other,
    within 4 se over 300 draws (false alarm 6e-5, and seeded). Dropped from the non-members alone it leaves those the rare
    ones, which any model finds less likely, and an attack that nothing was leaked for finds something."""
    assert distinct(["a", "b", "a", "c"], ["b", "d", "d"]) == (["a", "c"], ["d"])
    with pytest.raises(UsageError, match="without 2 texts that are on both sides"):
        distinct(["a", "b"], ["b", "a", "a"])
    rng = np.random.default_rng(4)
    share = 1 / np.arange(1, 401)
    both, one = [], []
    for _ in range(300):
        inside, outside = ([str(i) for i in rng.choice(400, 100, p=share / share.sum())] for _ in range(2))
        a, b = (np.mean([int(text) for text in side]) for side in distinct(inside, outside))
        both.append(a - b)
        one.append(np.mean([int(text) for text in set(inside)]) - b)
    gap, unfair = (np.mean(each) / (np.std(each) / np.sqrt(300)) for each in (both, one))
    assert abs(gap) < 4 < abs(unfair)
