"""Reference values confirmed by two independent codes (../shared/vectors/accounting.json), kind by kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.calibrate import noise_multiplier
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.privacy.accounting.user_entity import TwoLevel, deletion_epsilon
from taciturn.privacy.guarantees.theorems import (
    averaged,
    bayesian,
    bayesian_simple,
    group_blackbox_delta,
    group_blackbox_epsilon,
    recall_bound,
)

FILE = Path(__file__).resolve().parents[3] / "shared" / "vectors" / "accounting.json"
KINDS = (
    "eps", "delta", "sigma", "group_tight", "group_delta", "group_blackbox_delta", "group_blackbox_eps",
    "bayes_simple_eps", "bayes_profile", "recall_gamma_upper", "compose2", "jft_mixture", "ue_units", "ue_two_level",
)  # fmt: skip
ELSEWHERE = ("exposure_null_max", "exposure_null_q95", "eps_lower_cp")  # tests/auditing/membership/test_statistics.py
UPPER = {"eps", "delta", "group_tight", "group_delta", "compose2", "jft_mixture", "ue_units", "ue_two_level"}


def split(kind: str) -> tuple[str, str]:
    """A kind without its relation, and the relation."""
    for suffix, relation in (("_add_remove", "add-remove"), ("_replace", "substitution")):
        if kind.endswith(suffix):
            return kind.removesuffix(suffix), relation
    return kind, "substitution"


CASES = json.loads(FILE.read_text())["cases"] if FILE.exists() else []
OURS = [case for case in CASES if split(case["kind"])[0] in KINDS]


def value(kind: str, relation: Any, p: dict[str, Any]) -> float:
    if kind == "compose2":
        events = {PoissonGaussian(phase["q"], phase["sigma"]): phase["steps"] for phase in p["phases"]}
        return compose(events, relation).epsilon(p["delta"])
    if kind == "sigma":
        return noise_multiplier(p["epsilon"], p["delta"], p["q"], p["steps"], relation)
    if kind == "recall_gamma_upper":
        return recall_bound(p["labelled"] - p["detected"], p["labelled"], p["confidence"])
    if kind == "bayes_simple_eps":
        return bayesian_simple(p["epsilon"], p["gamma"])
    if kind == "group_blackbox_delta":
        return group_blackbox_delta(p["epsilon"], p["delta"], p["k"])
    if kind == "jft_mixture":
        first, second = ({PoissonGaussian(phase["q"], phase["sigma"]): phase["steps"]} for phase in both(p))
        detected, missed = compose(second, relation), compose({**first, **second}, relation)
        return averaged(detected, missed, p["miss"], p["delta"])[0]
    if kind == "ue_units":
        return deletion_epsilon(p["M"] + p["K"], p["q"], p["sigma_over_beta"], p["steps"], p["delta"])
    if kind == "ue_two_level":
        return TwoLevel(p["q_user"], p["q_entity"], p["M"], p["K"], p["L"], p["sigma_over_beta"], p["steps"]).epsilon(
            p["delta"]
        )
    profile = compose({PoissonGaussian(p["q"], p["sigma"]): p["steps"]}, relation)
    if kind == "group_blackbox_eps":
        return group_blackbox_epsilon(profile, p["k"], p["delta"])
    if kind == "bayes_profile":
        return bayesian(profile, p["gamma"], p["delta2"], p["delta"]).forward
    profile = profile.for_group(p.get("k", 1))
    return profile.delta(p["epsilon"]) if "epsilon" in p else profile.epsilon(p["delta"])


def both(p: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return p["phase1"], p["phase2"]


@pytest.mark.parametrize("case", OURS, ids=lambda case: case["id"])
def test_value(case):
    kind, relation = split(case["kind"])
    found = value(kind, relation, case["parameters"])
    assert found == pytest.approx(case["expected"], rel=0, abs=case["tolerance"])
    if kind in UPPER:
        assert found >= min(case["expected"], case["second_code"]) * (1 - 1e-5), "an upper bound must not lie below"


REVERSED = [case for case in OURS if "reverse direction" in case.get("note", "")]


@pytest.mark.parametrize("case", REVERSED, ids=lambda case: case["id"])
def test_the_other_direction_of_a_bayesian_case(case):
    p, relation = case["parameters"], split(case["kind"])[1]
    profile = compose({PoissonGaussian(p["q"], p["sigma"]): p["steps"]}, relation)
    found = bayesian(profile, p["gamma"], p["delta2"], p["delta"])
    expected = float(case["note"].split("reverse direction")[1])
    assert found.reverse == pytest.approx(expected, abs=case["tolerance"])
    assert found.epsilon == max(found.forward, found.reverse)
    assert bayesian_simple(p["dpsgd_epsilon"], p["gamma"]) > found.epsilon  # it would need δ·γ, not δ


def test_every_kind_is_accounted_for(shared):
    assert shared.is_dir()
    assert {split(case["kind"])[0] for case in CASES} == set(KINDS) | set(ELSEWHERE)
