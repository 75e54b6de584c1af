"""A claim about one record never stands without what the user with most records gets (P14), and `plan` says no more than the
certificate will."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from taciturn.mechanisms import MECHANISMS
from taciturn.mechanisms.cost import cost_lines, planned_epsilon
from taciturn.mechanisms.planning import expected_guarantees, make_plan
from taciturn.mechanisms.registry import guarantees
from taciturn.mechanisms.settings import RunConfig
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian, SelectiveGaussian
from taciturn.privacy.accounting.selective import Selective
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.document import Document
from taciturn.text.readers import Corpus

NOISY = PoissonGaussian(0.02, 1.0)
PLAIN = NonPrivate(("public", "skeletons"))
SELECTIVE = SelectiveGaussian(0.05, 4.0, 8.0, 2)
DELTA, MOST = 1e-5, 7
RUNS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "dpsgd": ("dpsgd", {"private": {NOISY: 100}}, {"redacted": False}),
    "crt": ("crt", {"public": {NonPrivate(("public",)): 9}, "private": {NOISY: 100}}, {}),
    "crt, skeletons": ("crt", {"public": {PLAIN: 9}, "private": {NOISY: 100}}, {"skeletons": True}),
    "crt_residual": ("crt_residual", {"public": {PLAIN: 9}, "private": {NOISY: 100}}, {"skeletons": True}),
    "jft": ("jft", {"redacted": {NonPrivate(("redacted",)): 9}, "private": {NOISY: 100}}, {"redacted": False}),
    "jft, light": ("jft", {"redacted": {NOISY: 50}, "private": {NOISY: 100}}, {"redacted": False}),
    "jft, skeletons": (
        "jft",
        {"redacted": {PLAIN: 9}, "private": {NOISY: 100}},
        {"redacted": False, "skeletons": True},
    ),
    "selective_dpsgd": ("selective_dpsgd", {"private": {SELECTIVE: 40}}, {"redacted": False}),
}


def found(name: str, most: int | None = MOST) -> list[Guarantee]:
    mechanism, phases, facts = RUNS[name]
    return guarantees(mechanism, phases, Evidence(DELTA, records_per_user=most, **facts))


def of_users(claims: list[Guarantee]) -> list[Guarantee]:
    return [g for g in claims if "one user" in g.unit]


@pytest.mark.parametrize("name", RUNS)
def test_every_finite_claim_about_a_record_has_one_about_a_user_beside_it(name: str) -> None:
    claims = found(name)
    users = of_users(claims)
    for one in claims:
        if one in users or one.status not in ("proved", "conditional") or one.notion == "bayesian-confidentiality":
            continue
        beside = [g for g in users if g.relation == one.relation and g.epsilon > one.epsilon]
        assert beside, one.label()
    assert all(g.detail["k"] == MOST and f"at most {MOST}" in g.unit for g in users)
    assert not of_users(found(name, None)), "nobody knows whose the records are"


@pytest.mark.parametrize("name", RUNS)
def test_where_a_record_is_not_hidden_nor_is_a_user(name: str) -> None:
    record = [g for g in found(name) if g.notion == "dp"]
    assert len(record) == 2
    assert record[0].status == record[1].status
    assert record[0].epsilon == math.inf or record[0].epsilon < record[1].epsilon


def test_what_a_user_gets_is_the_group_of_its_records() -> None:
    dp = [g for g in found("crt") if g.notion == "dp"]
    assert dp[1].epsilon == compose({NOISY: 100}, "add-remove", MOST).epsilon(DELTA)
    assert "public records are not protected" in dp[1].unit
    residual = next(g for g in of_users(found("crt_residual")) if "all such secrets" in g.unit)
    assert residual.epsilon == compose({NOISY: 100}, "add-remove", MOST).epsilon(DELTA)
    (selective, _) = of_users(found("selective_dpsgd"))
    assert selective.epsilon == Selective(SELECTIVE, 40, MOST).epsilon(DELTA)


@pytest.mark.parametrize("k", [2, 3])
def test_k_records_of_selective_dpsgd_lie_between_one_and_full_sampling(k: int) -> None:
    """With every record drawn a step is one Gaussian pair at 2·√(k²/σ² + kR/σ_h²), known in closed form."""
    event = SelectiveGaussian(1.0, 4.0, 8.0, 2)
    effective = (k * k / 16 + k * 2 / 64) ** -0.5
    exact = compose({PoissonGaussian(1.0, effective): 30}, "substitution").epsilon(DELTA)
    assert Selective(event, 30, k).epsilon(DELTA) == pytest.approx(exact, rel=1e-3)
    drawn = Selective(SELECTIVE, 40, k).epsilon(DELTA)
    assert (
        Selective(SELECTIVE, 40).epsilon(DELTA)
        < drawn
        < Selective(SelectiveGaussian(1.0, 4.0, 8.0, 2), 40, k).epsilon(DELTA)
    )


DOCUMENTS = [
    Document(f"d{i}", f"call me on (555) 010-77{i % 5:02} ok" if i % 3 else f"see you at {i}", "abcd"[i % 4])
    for i in range(24)
]
SIGMA = {"steps": 5, "batch": 4, "noise_multiplier": 2.0}
OPTIONS: dict[str, dict[str, Any]] = {
    "crt": {"private": SIGMA},
    "crt_residual": {"private": SIGMA},
    "dpsgd": SIGMA,
    "jft": {"private": SIGMA},
    "redacted": {},
    "selective_dpsgd": {"steps": 5, "batch": 4, "noise_multiplier": 2.0},
    "sgd": {},
    "uedp": {"steps": 5, "user_rate": 0.5, "k": 3, "noise_multiplier": 9.0},
    "uedp-published": {"steps": 5, "user_rate": 0.5},
    "user_dp": {"steps": 5, "batch": 2, "noise_multiplier": 2.0},
}
MORE = {"crt": ({"skeletons": False},), "jft": ({"start": "skeletons"}, {"light": SIGMA}), "dpsgd": ({"unit": "user"},)}
CASES = [(name, more) for name in MECHANISMS for more in ({}, *MORE.get(name, ()))]


@pytest.fixture(scope="module")
def corpus() -> ScreenedCorpus:
    return screen(Corpus.from_documents(DOCUMENTS), policy("phone"), policy("conservative"), unit="document")


def config(name: str, more: dict[str, Any], delta: float | None = 1e-3) -> RunConfig:
    model: Any = {"name": "lstm", "tokenizer": "bytes"}
    options = {**OPTIONS[name], **more}
    return RunConfig(
        mechanism=name, corpus=Path("memory"), model=model, delta=delta, options=options, allow=("cannot-learn",)
    )


@pytest.mark.parametrize(("name", "more"), CASES)
def test_a_plan_prints_a_finite_cost_only_where_the_certificate_has_one(
    name: str, more: dict[str, Any], corpus: ScreenedCorpus
) -> None:
    asked = config(name, more)
    plan = make_plan(asked, corpus)
    promises = expected_guarantees(asked, plan, corpus)
    text = "\n".join(cost_lines(plan))
    for relation in ("substitution", "add-remove"):
        if f"{relation} (" not in text:
            continue
        epsilon = planned_epsilon(plan, relation)
        finite = [
            g.epsilon for g in promises if g.relation == relation and g.finite and g.status in ("proved", "conditional")
        ]
        if name == "redacted" and relation == "substitution":
            continue  # ε = 0 for what is detected; the plan's cost is of any secret
        if epsilon == math.inf:
            assert not finite or name == "uedp-published", (relation, finite)
            assert f"{relation} (" in text
            assert "∞" in text
        elif name != "uedp-published":  # its target is about users, its certificate about users and entities
            assert any(abs(each - epsilon) < 1e-9 for each in finite), (relation, epsilon, finite)


def test_skeletons_make_the_presence_of_a_record_cost_everything(corpus: ScreenedCorpus) -> None:
    (line,) = [line for line in cost_lines(make_plan(config("crt", {}), corpus)) if line.startswith("add-remove")]
    assert "ε = ∞" in line
    (line,) = [
        x for x in cost_lines(make_plan(config("crt", {"skeletons": False}), corpus)) if x.startswith("add-remove")
    ]
    assert "∞" not in line


def test_without_a_delta_a_plan_that_cannot_learn_is_named_all_the_same(corpus: ScreenedCorpus) -> None:
    loud = {**SIGMA, "noise_multiplier": 900.0}
    (line,) = cost_lines(make_plan(config("dpsgd", loud, None), corpus))
    assert "cannot learn" in line
    assert cost_lines(make_plan(config("dpsgd", {}, None), corpus)) == []
