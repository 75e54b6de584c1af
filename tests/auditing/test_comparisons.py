"""Several comparisons share one error; near-copies and blind baselines take the word from an attack that finds nothing."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.auditing.comparisons import ALPHA, holm, holm_corrected
from taciturn.auditing.extraction.rates import two_sides
from taciturn.auditing.finding import LEAK, Finding
from taciturn.auditing.membership.overlap import near_copies, overlap
from taciturn.auditing.membership.statistics import finding_from_scores


def found(p: float, verdict: str = "leak", exceeded: bool = False) -> Finding:
    detail = {"certificate": {"exceeded": True}} if exceeded else {}
    return Finding("a", 0.6, "AUC", None, {"mean": 0.5, "p95": 0.6, "p": p}, {}, verdict, detail)  # type: ignore[arg-type]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_holm_is_the_closed_test_of_bonferroni(p: list[float]) -> None:
    """An adjusted p-value is the largest Bonferroni p over all sets of comparisons that hold it (Marcus et al. 1976)."""
    for i, adjusted in enumerate(holm(p)):
        sets = (s for k in range(1, len(p) + 1) for s in combinations(range(len(p)), k) if i in s)
        assert adjusted == pytest.approx(max(min(1.0, len(s) * min(p[j] for j in s)) for s in sets))


def test_a_leak_by_one_of_many_comparisons_alone_is_inconclusive() -> None:
    alone, pair = (
        holm_corrected([found(0.004)]),
        holm_corrected([found(0.004), found(0.5, "no leak found"), found(0.6, "no leak found")]),
    )
    assert [f.verdict for f in alone] == ["leak"]
    assert [f.verdict for f in pair] == ["inconclusive", "no leak found", "no leak found"]
    assert pair[0].null["p_holm"] == pytest.approx(0.012)
    assert "3 comparisons" in pair[0].notes[-1]
    assert [f.verdict for f in holm_corrected([found(0.001), found(0.001)])] == ["leak", "leak"]
    assert (
        holm_corrected([found(0.004, exceeded=True)] * 3)[0].verdict == "leak"
    )  # refuted by a bound, which has its share of α


def test_audits_of_models_that_leak_nothing_call_a_leak_in_one_of_a_hundred() -> None:
    """4,000 audits of five uniform p-values: without sharing 4.9 % would. Above 1.8 % has probability 2e-6."""
    rng = np.random.default_rng(0)
    draws = rng.uniform(size=(4000, 5))
    wrong = [
        any(
            f.verdict == "leak"
            for f in holm_corrected([found(p, "leak" if p < LEAK else "no leak found") for p in row])
        )
        for row in draws
    ]
    assert np.mean(wrong) < 0.018
    assert np.mean((draws < LEAK).any(1)) > 0.04
    assert ALPHA == 0.05


def sentences(n: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(2000)]
    return [" ".join(rng.choice(words, 12)) for _ in range(n)]


def test_overlap_counts_non_members_that_copy_a_member() -> None:
    members, fresh = sentences(40, 0), sentences(40, 1)
    changed = [" ".join([*text.split()[:-1], "other"]) for text in members]
    assert overlap(members, fresh)["near_copies"] == 0.0
    assert overlap(members, changed)["near_copies"] == 1.0
    mixed = overlap(members, [*changed[:10], *fresh[:30]])
    assert mixed["near_copies"] == 0.25
    assert mixed["shared"] == pytest.approx(0.25 * 7 / 8)
    assert near_copies(mixed)
    assert not near_copies(overlap(members, [*changed[:8], *fresh[:32]]))


def scores(n: int, seed: int, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(shift, 1, n), rng.normal(size=n)


def test_near_copies_take_back_that_nothing_leaked_and_leave_a_leak() -> None:
    blind = {"length": scores(200, 3)}
    for shift, verdict in ((0.0, "inconclusive"), (1.0, "leak")):
        pair = {"loss": scores(200, 2, shift)}
        assert finding_from_scores("membership", pair, blind, {"": 1.0}, 0, weak=["near"]).verdict == verdict
    assert finding_from_scores("membership", {"loss": scores(200, 2)}, blind, {"": 1.0}, 0).verdict == "no leak found"


@pytest.mark.parametrize("shift", [-1.0, 1.0])
def test_a_blind_baseline_off_chance_in_either_direction_takes_it_back_too(shift: float) -> None:
    blind = {"length": scores(200, 3, shift)}
    finding = finding_from_scores("membership", {"loss": scores(200, 2)}, blind, {"": 1.0}, 0)
    assert finding.verdict == "inconclusive"
    assert "blind baseline" in finding.notes[0]


def test_a_blind_guess_that_is_right_of_values_never_seen_takes_it_back() -> None:
    own = [[i % 2 == 0 for i in range(40)]] * 2
    for blind, verdict in (([[False] * 40, [True] * 40], "inconclusive"), (own, "no leak found")):
        assert two_sides("pii-inference", own, None, 1.0, {}, blind).verdict == verdict
