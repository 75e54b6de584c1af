"""What an attack proves against what a certificate says, and reference models trained on demand."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import taciturn as tt
from leaks import told
from taciturn.auditing.canaries.templates import Planted
from taciturn.auditing.controls import MEMBERS, TEMPLATE, overfitted
from taciturn.auditing.finding import Finding
from taciturn.auditing.lower_bounds.against_certificate import Audited, compared, exceeded, statement
from taciturn.auditing.membership.references import loaded, references
from taciturn.auditing.run import audit
from taciturn.cli.main import run as command
from taciturn.errors import UsageError
from taciturn.mechanisms.run import Run
from taciturn.models.hf import export
from taciturn.privacy.certificates.certificate import Certificate
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.premises import RECORD, SECRET, few
from taciturn.text.readers import Corpus

TINY: dict[str, Any] = {"name": "lstm", "options": {"hidden_size": 8, "embedding_size": 8}}
ONE = Guarantee("confidentiality", SECRET, "substitution", 2.0, 1e-5, "proved", "a theorem", "pld")
FIVE = replace(
    ONE, notion="group-confidentiality", unit="the secrets of group 'a' in 5 records", epsilon=9.0, detail={"k": 5.0}
)
NINE = replace(FIVE, epsilon=20.0, detail={"k": 9.0})
ADDED = replace(ONE, notion="dp", relation="add-remove", unit=RECORD, epsilon=1.0)
PART = replace(ADDED, unit="whether one record of the private part was there")
ALL = [NINE, ADDED, FIVE, ONE]
FOUND = Finding("exposure", 19.9, "bits", None, {"p": 0.001}, {}, "no leak found")


def test_a_bound_is_compared_with_its_own_unit_and_relation_only() -> None:
    assert statement(Audited("confidentiality", "substitution"), ALL) == ONE
    assert statement(Audited("confidentiality", "substitution", 3), ALL) == FIVE
    assert statement(Audited("confidentiality", "substitution", 6), ALL) == NINE
    assert statement(Audited("confidentiality", "substitution", 20), ALL) is None
    assert statement(Audited("dp", "add-remove"), ALL) == ADDED
    assert statement(Audited("dp", "add-remove"), [ONE, PART]) is None
    assert statement(Audited("confidentiality", "substitution"), [replace(ONE, status="estimate")]) is None
    assert (
        statement(Audited("confidentiality", "substitution"), [replace(ONE, detail={"spans_not_stable": 0.0})])
        is not None
    )


def test_a_claim_about_rare_values_is_held_against_attacks_on_few_copies_alone() -> None:
    """Where common values stand, a claim about twenty records leaves out a value that stands in all of them."""
    rare = few(10)
    single = replace(ONE, unit=SECRET + rare, detail={"copies": 10.0})
    twenty = replace(FIVE, unit=f"the secrets of group 'a' in 20 records{rare}", detail={"k": 20.0, "copies": 10.0})
    assert statement(Audited("confidentiality", "substitution"), [single, twenty]) == single
    assert statement(Audited("confidentiality", "substitution", 10), [single, twenty]) == twenty
    assert statement(Audited("confidentiality", "substitution", 20), [single, twenty]) is None


def test_a_bound_above_the_certificate_is_said() -> None:
    audited = Audited("confidentiality", "substitution")
    above = compared(FOUND, audited, ALL, lambda delta: 2.5 if delta == 1e-5 else 0.0)
    assert above.verdict == "leak"
    assert above.detail["certificate"]["exceeded"]
    assert "at least 2.5, certified 2)" in above.notes[0]
    below = compared(FOUND, audited, ALL, lambda _: 1.9)
    assert (below.verdict, below.notes, below.detail["certificate"]["exceeded"]) == ("no leak found", (), False)
    unknown = compared(FOUND, replace(audited, k=20), ALL, lambda _: 99.0)
    assert "of 20 at once" in unknown.detail["certificate"]["why"]
    assert exceeded([FOUND, above, below, unknown]) == ["exposure"]
    infinite = replace(ONE, epsilon=math.inf, status="none", reason="no noise")
    json.dumps(compared(FOUND, audited, [infinite], lambda _: 3.0).to_json())


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of DP-SGD with its certificate, ε = 1, in which somebody put a model that was trained without noise."""
    folder = tmp_path_factory.mktemp("certified")
    everything = tt.policy("all-private")
    screened = tt.screen(
        Corpus.from_texts([f"code {i:06d}" for i in range(40)]), everything, everything, out=folder / "s"
    )
    plan = tt.plan("dpsgd", screened, TINY, tokenizer="bytes", epsilon=1, delta=1e-4, steps=2, batch=4)
    run = tt.train(plan, folder / "run")
    run.certify()
    toy = overfitted()
    shutil.rmtree(folder / "run" / "model")
    export(toy.model, toy.tokenizer, folder / "run" / "model")
    return folder / "run"


def test_a_certificate_that_does_not_hold_ends_with_exit_code_4(certified: Path, tmp_path: Path, capsys: Any) -> None:
    toy = overfitted()
    Planted(TEMPLATE, (toy.secret,), copies=20).write(tmp_path / "canaries.json")
    call = ["audit", str(certified), "--canaries", str(tmp_path / "canaries.json")]
    assert command(call) == 0  # 20 copies: the certificate has no statement about 20 records
    assert "not compared with the certificate" in " ".join(capsys.readouterr().out.split())
    assert command([*call, "--copies", "1"]) == 4
    shown = capsys.readouterr()
    assert "above the certificate" in " ".join((shown.out + shown.err).split())
    assert not told(toy.secret, shown.out + shown.err)
    (kept,) = json.loads((certified / "audit.json").read_text())["findings"]
    assert kept["detail"]["certificate"]["eps_lower"] > kept["detail"]["certificate"]["epsilon"]
    assert not told(toy.secret, (certified / "audit.json").read_text())


def test_members_audit_one_record_added_or_removed(certified: Path, tmp_path: Path, capsys: Any) -> None:
    toy = overfitted()
    (found,) = audit(certified, ["membership"], members=toy.members, nonmembers=toy.nonmembers)
    claim = next(g for g in Certificate.read(certified / "certificate.json").statements() if g.unit == RECORD)
    detail = found.detail["certificate"]
    assert (detail["relation"], detail["k"], detail["epsilon"], detail["delta"]) == (
        "add-remove",
        1,
        claim.epsilon,
        claim.delta,
    )
    assert detail["eps_lower"] > 0
    assert detail["noise_at_most"] < 1  # no noise at all was in what somebody put there
    assert detail["exceeded"]
    for side, texts in (("in", toy.members), ("out", toy.nonmembers)):
        (tmp_path / side).write_text("\n".join(texts) + "\n")
    code = command(["audit", str(certified), "--attack", "membership,extraction", "--members", str(tmp_path / "in"),
                    "--nonmembers", str(tmp_path / "out"), "--secrets", str(_secrets(tmp_path))])  # fmt: skip
    out = capsys.readouterr().out
    assert code == (4 if detail["exceeded"] else 0)
    assert "not measurable" in out
    assert "min_k_plus" in out
    assert not any(told(text, out) for text in (toy.secret, *toy.members))


def _secrets(folder: Path) -> Path:
    path = folder / "secrets.jsonl"
    path.write_text(json.dumps({"prefix": TEMPLATE.prefix, "secret": overfitted().secret}) + "\n")
    return path


def test_a_model_from_elsewhere_is_attacked_and_has_no_certificate(tmp_path: Path, capsys: Any) -> None:
    """A plain model folder, without a plan, a ledger or a certificate; nothing is written into it."""
    toy = overfitted()
    export(toy.model, toy.tokenizer, tmp_path / "model")
    before = sorted(p.name for p in (tmp_path / "model").iterdir())
    Planted(TEMPLATE, (toy.secret,), copies=20).write(tmp_path / "canaries.json")
    for side, texts in (("in", toy.members), ("out", toy.nonmembers)):
        (tmp_path / side).write_text("\n".join(texts) + "\n")
    call = ["audit", str(tmp_path / "model"), "--attack", "exposure,membership,group-membership,extraction",
            "--canaries", str(tmp_path / "canaries.json"), "--members", str(tmp_path / "in"), "--nonmembers",
            str(tmp_path / "out"), "--group-size", "2", "--json"]  # fmt: skip
    assert command(call) == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [each["verdict"] for each in found] == ["leak"] * 4
    assert found[0]["score"] == pytest.approx(math.log2(10**6))  # 19.93 bits: trained without noise on 20 copies
    assert found[1]["score"] > 0.9
    assert all({"positive", "negative"} <= each["controls"].keys() for each in found)
    assert all("blind" in each["controls"] for each in found[1:])
    assert not any("certificate" in each["detail"] for each in found)
    assert before == sorted(p.name for p in (tmp_path / "model").iterdir())


@pytest.mark.parametrize("mechanism", ["sgd", "crt"])
def test_reference_models_of_the_same_plan(mechanism: str, tmp_path: Path) -> None:
    texts = [MEMBERS.fill(f"{i * 7919 % 10**6:06d}") for i in range(1, 61)]
    screened = tt.screen(
        Corpus.from_texts(texts[:20]), tt.policy("phone"), tt.policy("conservative"), out=tmp_path / "s"
    )
    plain = {"epochs": 2, "batch_size": 5, "optimiser": {"lr": 0.02}}
    options: dict[str, Any] = (
        plain if mechanism == "sgd" else {"public": plain, "private": {"steps": 2, "batch": 4, "noise_multiplier": 1.0}}
    )
    run = tt.train(tt.plan(mechanism, screened, TINY, tokenizer="bytes", delta=1e-3, **options), tmp_path / "run")
    folders = references(run.folder, texts[20:40], 2, tmp_path / "references")
    assert [f.name for f in folders] == ["0", "1"]
    for folder in folders:
        config = Run(folder).config
        assert config.mechanism == "sgd"
        assert config.model == Run(run.folder).config.model
        assert (config.options["epochs"], config.options["batch_size"], config.options["optimiser"]["lr"]) == (
            2,
            5,
            0.02,
        )
        assert Run(folder).plan["phases"][0]["records"] == 10
    stamps = [(f / "plan.json").stat().st_mtime_ns for f in folders]
    assert references(run.folder, texts[20:40], 2, tmp_path / "references") == folders  # kept, not trained again
    assert stamps == [(f / "plan.json").stat().st_mtime_ns for f in folders]
    (found,) = audit(
        run.folder, ["membership"], members=texts[:20], nonmembers=texts[40:], references=folders, population=texts[20:40],
        score="reference",
    )  # fmt: skip
    assert {"reference", "rmia"} <= set(found.detail["attacks"])
    for name, part in (("in", texts[:20]), ("out", texts[40:]), ("more", texts[20:40])):
        (tmp_path / name).write_text("\n".join(part) + "\n")
    call = ["audit", str(run.folder), "--attack", "membership", "--score", "reference", "--members", str(tmp_path / "in"),
            "--nonmembers", str(tmp_path / "out"), "--train-references", "2"]  # fmt: skip
    more = ["--reference-texts", str(tmp_path / "more"), "--references-out", str(tmp_path / "references")]
    assert command(call) == 2  # without texts of their own
    assert command([*call, *more]) == 0
    (kept,) = json.loads((run.folder / "audit.json").read_text())["findings"]
    assert kept["detail"]["attacks"]["reference"]["auc"] == pytest.approx(found.detail["attacks"]["reference"]["auc"])
    assert len(loaded(folders)) == 2
    with pytest.raises(UsageError, match="k = 0"):
        references(run.folder, texts, 0, tmp_path / "none")
