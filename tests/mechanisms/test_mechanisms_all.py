"""Every mechanism on a corpus of people and phone numbers: a kill, a resume, a certificate within its target, verified."""

from __future__ import annotations

import html
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from every_mechanism import DOCUMENTS, FREE_OF_NOISE, OPTIONS, PEOPLE, PLAIN, PRIVATE, config, corpus
from taciturn.errors import DataError, GuaranteeError, UsageError
from taciturn.mechanisms import MECHANISMS
from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.registry import mechanism, verify
from taciturn.mechanisms.run import make_plan, train
from taciturn.mechanisms.settings import ModelConfig
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import KindsGaussian, PoissonGaussian, SelectiveGaussian, TwoLevelGaussian
from taciturn.privacy.accounting.user_entity import TwoLevel, Units
from taciturn.privacy.certificates.certificate import file_digest
from taciturn.privacy.guarantees.published_uedp import published_bound
from taciturn.reporting import RunView, write
from taciturn.text.document import Document


def test_every_mechanism_in_the_registry_is_run_here() -> None:
    assert set(OPTIONS) == set(MECHANISMS)
    for name in MECHANISMS:
        assert mechanism(name).SUMMARY
    with pytest.raises(UsageError, match="user_dp"):
        mechanism("user_pd")


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_run_stays_within_its_target_and_its_certificate_verifies(name: str, tmp_path: Path) -> None:
    train(config(name), tmp_path, screened=corpus())
    certificate = certify(tmp_path)
    assert not verify(tmp_path / "certificate.json")
    page = write(tmp_path / "report.html", [RunView.load(tmp_path)]).read_text()
    assert all(unit in html.unescape(page) for unit in (g["unit"] for g in certificate.guarantees))
    if name in FREE_OF_NOISE:
        return
    assert 3.9 <= certificate.spent["epsilon"] <= 4.0
    finite = [g for g in certificate.statements() if g.finite and g.status in ("proved", "conditional")]
    assert any(abs(g.epsilon - certificate.epsilon_spent) < 1e-6 for g in finite)


def test_certificates_are_computed_again_without_torch(tmp_path: Path) -> None:
    for name in ("uedp", "selective_dpsgd"):
        train(config(name), tmp_path / name, screened=corpus())
        certify(tmp_path / name)
    code = (
        "import sys; from pathlib import Path; from taciturn.mechanisms import MECHANISMS\n"
        "from taciturn.mechanisms.registry import mechanism, verify\n"
        "assert all(mechanism(name).guarantees for name in MECHANISMS)\n"
        f"assert not any(verify(p) for p in Path({str(tmp_path)!r}).glob('*/certificate.json'))\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_run_that_was_killed_goes_on_to_the_same_weights(name: str, tmp_path: Path) -> None:
    screened = corpus()
    train(config(name, noise=3), tmp_path / "whole", screened=screened)

    def stop(progress: Any) -> None:
        if progress.step.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config(name, noise=3), tmp_path / "part", screened=screened, notify=stop)
    train(config(name, noise=3), tmp_path / "part", screened=screened, resume=True)
    weights = [file_digest(tmp_path / run / "model" / "model.safetensors") for run in ("whole", "part")]
    assert weights[0] == weights[1]
    assert certify(tmp_path / "part").ledger_steps == certify(tmp_path / "whole").ledger_steps


def said(folder: Path, notion: str) -> dict[str, Any]:
    return {g["unit"]: g for g in certify(folder).guarantees if g["notion"] == notion}


def test_uedp_states_a_curve_where_the_corpus_stands(tmp_path: Path) -> None:
    train(config("uedp", None, noise_multiplier=9.0), tmp_path, screened=corpus())
    found = said(tmp_path, "uedp")
    run = Units((0.25, 0.5), 9.0, 5)
    assert len(found) >= 2
    for statement in found.values():
        detail = statement["detail"]
        assert statement["epsilon"] == pytest.approx(run.epsilon(int(detail["k"]), 1e-3))
        assert statement["status"] == "proved"
    assert max(g["detail"]["k"] for g in found.values()) == detail["largest"]
    plan = make_plan(config("uedp", None, noise_multiplier=9.0), corpus())
    assert plan.phases[0].event == KindsGaussian((0.25, 0.5), 9.0)
    # 4 people × 5 numbers and their sentences without one: a unit is a person's sentences about a number.
    assert plan.phases[0].records == detail["detected"] + detail["extended"]
    assert detail["extended"] == sum(i % 3 == 0 for i in range(24))


def test_a_cap_that_selects_is_paid_for_and_reports_what_it_dropped(tmp_path: Path) -> None:
    train(config("uedp", None, noise_multiplier=9.0, units_per_user=3, selects=True), tmp_path, screened=corpus())
    run = Units((0.5,), 9.0, 5, selects=True)
    for statement in said(tmp_path, "uedp").values():
        assert statement["epsilon"] == pytest.approx(run.epsilon(int(statement["detail"]["k"]), 1e-3))
        assert statement["detail"]["dropped_units"] > 0
    with pytest.raises(DataError, match="units_per_user"):
        make_plan(config("uedp", None, noise_multiplier=9.0, units_per_user=3), corpus())


def test_two_level_coins_are_accounted_within_limits_that_the_corpus_keeps(tmp_path: Path) -> None:
    two = config("uedp", None, noise_multiplier=9.0, coins="two-level", limits=(6, 3, 1))
    plan = make_plan(two, corpus())
    assert plan.phases[0].event == TwoLevelGaussian(0.5, 1.0, 6, 3, 1, 9.0)
    train(two, tmp_path, screened=corpus())
    ((_, statement),) = said(tmp_path, "uedp").items()
    assert statement["epsilon"] == pytest.approx(TwoLevel(0.5, 1.0, 6, 3, 1, 9.0, 5).epsilon(1e-3))
    with pytest.raises(DataError, match="limits"):
        make_plan(config("uedp", None, noise_multiplier=9.0, coins="two-level", limits=(6, 2, 1)), corpus())
    with pytest.raises(UsageError, match="limits"):
        make_plan(config("uedp", None, noise_multiplier=9.0, coins="two-level"), corpus())


def test_uedp_as_published_states_a_bound_that_holds_beside_its_own_number(tmp_path: Path) -> None:
    train(config("uedp-published"), tmp_path, screened=corpus())
    bound, claim = sorted(certify(tmp_path).statements(), key=lambda g: g.status)
    assert (bound.status, claim.status) == ("proved", "published-claim")
    assert bound.detail["holders"] == 3  # people who give the same number
    sigma = 2.5 * (0.5 * 4 + 1)
    assert bound.epsilon == pytest.approx(published_bound(3, 0.5, sigma, 5, 1e-3).epsilon)
    assert claim.epsilon < bound.epsilon
    with pytest.raises(UsageError, match="no target"):
        make_plan(config("uedp-published").model_copy(update={"epsilon": 1.0}), corpus())


def test_unit_user_changes_sampling_clipping_and_certificate_together(tmp_path: Path) -> None:
    asked = config("dpsgd", unit="user", batch=2)
    (phase,) = make_plan(asked, corpus()).phases
    assert (phase.unit, phase.records, phase.sampler.rate) == ("user", 4, 0.5)  # type: ignore[union-attr]
    train(asked, tmp_path, screened=corpus())
    ((unit, statement),) = said(tmp_path, "user-dp").items()
    assert "one user" in unit
    assert statement["relation"] == "add-remove"
    assert statement["epsilon"] <= 4.0


def test_residuals_cost_less_where_the_secret_is_all_that_is_marked(tmp_path: Path) -> None:
    train(config("crt_residual", noise="os"), tmp_path, screened=corpus())
    found = said(tmp_path, "confidentiality")
    alone = next(g for unit, g in found.items() if "all the conservative policy marks" in unit)
    every = found["a secret in one record"]
    event = next(e["event"] for e in certify(tmp_path).ledger_steps if e["phase"] == "private")
    noisy = PoissonGaussian(event["rate"], event["noise_multiplier"])
    assert every["epsilon"] == pytest.approx(compose({noisy: 5}, "substitution").epsilon(1e-3))
    assert alone["epsilon"] == pytest.approx(compose({noisy: 5}, "add-remove").epsilon(1e-3))
    assert alone["epsilon"] < every["epsilon"]
    with pytest.raises(UsageError, match="adaptively"):  # a vanished residual would still move the noised count
        make_plan(config("crt_residual", private={**PRIVATE, "clipping": "adaptive"}), corpus())


def test_a_first_phase_on_skeletons_costs_a_covered_secret_nothing(tmp_path: Path) -> None:
    train(config("jft", start="skeletons"), tmp_path, screened=corpus())
    found = said(tmp_path, "sdp")
    missed, detected = found["a secret that the policy misses"], found["a secret that the policy detects"]
    assert missed["epsilon"] == detected["epsilon"]
    assert any("conservative" in a["text"] for a in missed["assumptions"] if not a["enforced"])


def test_hand_screened_records_alone_are_read_first_and_bounded_by_a_second_look(tmp_path: Path) -> None:
    screened = corpus()
    ids = screened.table["id"].to_pylist()[:6]
    (tmp_path / "ids").write_text("\n".join(ids) + "\n")
    by_hand = {"ids": str(tmp_path / "ids"), "checked": 40, "missed": 0}
    plan = make_plan(config("jft", screened=by_hand), screened)
    assert plan.phases[0].records == 6
    assert plan.phases[1].records == 24
    train(config("jft", screened=by_hand), tmp_path / "run", screened=screened)
    found = said(tmp_path / "run", "bayesian-confidentiality")
    statement = next(g for unit, g in found.items() if "hand-screened" in unit)
    assert statement["detail"]["gamma"] == pytest.approx(1 - 0.05 ** (1 / 40))
    assert statement["delta"] == pytest.approx(1e-3 + statement["detail"]["gamma"])
    (tmp_path / "ids").write_text("nobody#0")
    with pytest.raises(DataError, match="1 are not in"):
        make_plan(config("jft", screened=by_hand), screened)


def test_a_share_of_the_records_serves_both_phases() -> None:
    first, second = make_plan(config("jft", share=0.25), corpus()).phases
    assert first.records == second.records == 6
    assert first.rows == second.rows


def test_classifiers_are_fine_tuned_twice_too(tmp_path: Path) -> None:
    labelled = [replace(d, label="call" if "call" in d.text else "meet") for d in DOCUMENTS]
    model = {"name": "awd-lstm", "tokenizer": "bytes", "task": "classify", "labels": ["call", "meet"]}
    small = {"hidden_size": 8, "embedding_size": 8}
    asked = config("jft").model_copy(update={"model": ModelConfig(**model, options=small)})
    train(asked, tmp_path, screened=corpus(labelled))
    certificate = certify(tmp_path)
    assert not certificate.release
    assert certificate.reasons[0].startswith("nothing is guaranteed about a secret that the policy misses")
    assert not verify(tmp_path / "certificate.json")


def test_packed_blocks_carry_no_guarantee(tmp_path: Path) -> None:
    train(config("jft", redacted={**PLAIN, "packed": 32}), tmp_path, screened=corpus())
    certificate = certify(tmp_path)
    assert all(g.epsilon == math.inf for g in certificate.statements())
    assert not certificate.release


def test_selective_dpsgd_promises_nothing_for_what_the_policy_misses(tmp_path: Path) -> None:
    train(config("selective_dpsgd"), tmp_path, screened=corpus())
    found = said(tmp_path, "sdp")
    assert found["a secret that the policy misses"]["epsilon"] == "inf"
    assert found["a secret that the policy detects"]["epsilon"] <= 4.0
    (phase,) = make_plan(config("selective_dpsgd"), corpus()).phases
    assert isinstance(phase.event, SelectiveGaussian)


def test_a_plan_refuses_what_the_corpus_cannot_carry() -> None:
    nameless = corpus([Document(d.id, d.text) for d in DOCUMENTS])
    for name in ("uedp", "uedp-published", "user_dp"):
        with pytest.raises(DataError, match="user"):
            make_plan(config(name), nameless)
    quiet = corpus([Document(f"d{i}", "nothing here at all", PEOPLE[i % 4]) for i in range(8)])
    for name in ("uedp", "uedp-published"):
        with pytest.raises(DataError, match="entity"):
            make_plan(config(name), quiet)
    with pytest.raises(UsageError, match="needs k"):
        make_plan(config("uedp", k=None), corpus())
    for name in ("redacted", "sgd"):
        with pytest.raises(GuaranteeError, match="misses"):
            make_plan(config(name).model_copy(update={"epsilon": 1.0}), corpus())
