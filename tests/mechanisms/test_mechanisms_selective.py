"""The plan of selective_dpsgd and what it may claim."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from taciturn.errors import DataError, UsageError
from taciturn.mechanisms import selective_dpsgd
from taciturn.mechanisms.selective_dpsgd import Config, guarantees
from taciturn.privacy.accounting.events import Event, NonPrivate, SelectiveGaussian
from taciturn.privacy.accounting.selective import Selective
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.readers import Corpus
from taciturn.training.phase_terms import SelectiveState
from taciturn.training.plan import Plan, Target

TEXTS = ["hello there"] * 6 + [f"my number is (555) 010-77{i:02}, ask for me" for i in range(9)]
EVIDENCE = Evidence(1e-4, redacted=False, labelled=20, missed_by_pi=2, missed_by_both=0)


def corpus(texts: list[str] = TEXTS, **options: Any) -> ScreenedCorpus:
    return screen(Corpus.from_texts(texts), policy("phone"), policy("conservative"), **options)


AT_DELTA = Target(None, 1e-4)


def plan(target: Target = AT_DELTA, **options: Any) -> Plan:
    return selective_dpsgd.plan(corpus(), Config(steps=20, batch=3, **options), target)


def test_one_phase_over_the_originals() -> None:
    (phase,) = plan(noise_multiplier=2.0).phases
    assert phase.reads == ("original",)
    assert phase.records == len(TEXTS)
    assert phase.rule == SelectiveState(1.0, 2.0, 1.0, 4.0, 4)
    assert phase.event == SelectiveGaussian(3 / 15, 2.0, 4.0, 4)
    (phase,) = plan(noise_multiplier=2.0, state_noise=1.5, runs=2, rate=0.5).phases
    assert phase.event == SelectiveGaussian(0.5, 2.0, 1.5, 2)


def test_noise_is_calibrated_to_the_target() -> None:
    made = plan(Target(2.0, 1e-4))
    (event,) = made.events()
    assert isinstance(event, SelectiveGaussian)
    assert 1.98 <= Selective(event, 20).epsilon(1e-4) <= 2.0
    with pytest.raises(UsageError, match="noise_multiplier"):
        plan()


def test_a_corpus_in_which_nothing_was_found_is_refused() -> None:
    with pytest.raises(DataError, match="nothing to noise"):
        selective_dpsgd.plan(corpus(["hello"] * 3), Config(noise_multiplier=1.0), Target())


def test_what_is_claimed() -> None:
    event = SelectiveGaussian(0.1, 3.0, 6.0, 4)
    found = list(guarantees({"private": {event: 50}}, EVIDENCE))
    sdp, missed, record = found
    assert (sdp.notion, sdp.relation, sdp.status) == ("sdp", "substitution", "proved")
    assert sdp.epsilon == Selective(event, 50).epsilon(1e-4)
    assert sdp.detail["epsilon_of_redaction"] == 0
    assert sdp.detail["effective_noise_multiplier"] == pytest.approx(3 / math.sqrt(2))
    assert [(g.notion, g.status, g.epsilon) for g in (missed, record)] == [
        ("sdp", "none", math.inf),
        ("dp", "none", math.inf),
    ]
    assert missed.detail["gamma"] > 0.1
    seeded = next(guarantees({"private": {event: 50}}, replace(EVIDENCE, seeded_noise=True)))
    assert (seeded.status, seeded.epsilon) == ("none", math.inf)


def test_a_plain_step_voids_the_claim() -> None:
    counts: dict[Event, int] = {SelectiveGaussian(0.1, 3.0, 6.0, 4): 50, NonPrivate(("original",)): 1}
    first = next(guarantees({"private": counts}, EVIDENCE))
    assert (first.status, first.epsilon) == ("none", math.inf)
    assert "without noise" in first.reason
