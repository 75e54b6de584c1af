from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from signed_off import edited

from taciturn.errors import DataError, GuaranteeError
from taciturn.mechanisms.registry import guarantees, verify
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian
from taciturn.privacy.certificates.certificate import Certificate, canonical, digest_of, issue, load_json, write_json
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.privacy.guarantees.evidence import Evidence

OPEN, NOISY = NonPrivate(("public", "skeletons")), PoissonGaussian(0.05, 2.0)
PLAN = {
    "mechanism": "crt",
    "relation": "substitution",
    "target": {"epsilon": 1.5, "delta": 8e-5},
    "phases": [
        {"name": "public", "reads": ["public", "skeletons"], "steps": 6, "event": OPEN.to_json(), "records": 90},
        {"name": "private", "reads": ["private"], "steps": 8, "event": NOISY.to_json(), "records": 40},
    ],
    "seeds": {"model": 1, "data": 2, "noise": "os"},
    "corpus_key": "abc123",
}
EVIDENCE = Evidence(
    delta=8e-5, skeletons=True, labelled=200, missed_by_pi=20, missed_by_both=0, groups=(("accounts", 2),),
    counts={"read": 130, "public": 90, "private": 40, "quarantined": 0}, protected=40,
)  # fmt: skip
tampering = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def make_run(folder, plan=PLAN, evidence=EVIDENCE):
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "model.safetensors").write_bytes(bytes(range(256)) * 4)
    write_json(folder / "plan.json", plan)
    write_json(folder / "evidence.json", evidence.to_json())
    with Ledger.create(folder / "ledger.jsonl") as ledger:
        step = 0
        for phase in plan["phases"]:
            for _ in range(phase["steps"]):
                ledger.append(step, phase["name"], OPEN if phase["name"] == "public" else NOISY)
                step += 1
    return folder


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    folder = make_run(tmp_path_factory.mktemp("run") / "r")
    issue(folder, guarantees, {"torch": "0"}).write(folder / "certificate.json")
    return folder


@pytest.fixture
def run(pristine, tmp_path):
    return shutil.copytree(pristine, tmp_path / "r")


def leaves(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path
    else:
        for key, inner in items:
            yield from leaves(inner, (*path, key))


def changed(value):
    """Another value of the same kind, as someone who wants to look better might write it."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 0.5 if value else 0.25
    return "seven" if value is None else f"{value}."


def test_a_fresh_certificate_verifies_and_says_what_it_should(run):
    assert verify(run / "certificate.json") == []
    certificate = Certificate.read(run / "certificate.json")
    assert certificate.release
    assert certificate.reasons == []
    assert certificate.epsilon_spent <= 1.5
    assert {g.notion for g in certificate.statements()} >= {"confidentiality", "bayesian-confidentiality", "dp"}
    assert all("ε" in sentence and "δ" in sentence for sentence in certificate.words)
    assert certificate.corpus_counts["read"] == 130


def test_the_same_certificate_is_the_same_bytes(run):
    before = (run / "certificate.json").read_bytes()
    Certificate.read(run / "certificate.json").write(run / "certificate.json")
    assert (run / "certificate.json").read_bytes() == before


@tampering
@given(st.data())
def test_any_edited_leaf_of_any_json_is_caught(run, data):
    name = data.draw(st.sampled_from(["certificate.json", "plan.json", "evidence.json"]))
    original = (run / name).read_bytes()
    value = orjson.loads(original)
    path = data.draw(st.sampled_from(list(leaves(value))))
    now = value
    for key in path:
        now = now[key]
    (run / name).write_bytes(canonical(edited(value, path, changed(now))))
    assert verify(run / "certificate.json"), path
    (run / name).write_bytes(original)


@tampering
@given(st.data())
def test_a_forged_digest_does_not_save_an_edited_claim(run, data):
    original = (run / "certificate.json").read_bytes()
    value = orjson.loads(original)
    free = {"digest", "created", "versions"}  # what nothing else can confirm
    path = data.draw(st.sampled_from([p for p in leaves(value) if p[0] not in free]))
    now = value
    for key in path:
        now = now[key]
    forged = edited(value, path, changed(now))
    forged["digest"] = digest_of(forged)
    (run / "certificate.json").write_bytes(canonical(forged))
    assert verify(run / "certificate.json"), path
    (run / "certificate.json").write_bytes(original)


@tampering
@given(st.data())
def test_any_changed_byte_is_caught(run, data):
    name = data.draw(
        st.sampled_from(["certificate.json", "plan.json", "evidence.json", "ledger.jsonl", "model/model.safetensors"])
    )
    original = (run / name).read_bytes()
    raw = bytearray(original)
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255).filter(lambda b: b != raw[at]))
    (run / name).write_bytes(raw)
    assert verify(run / "certificate.json"), (name, at)
    (run / name).write_bytes(original)


def test_a_smaller_epsilon_is_named_with_both_values(run):
    value = load_json(run / "certificate.json")
    value["guarantees"][0]["epsilon"] = 0.01
    value["digest"] = digest_of(value)
    write_json(run / "certificate.json", value)
    (mismatch,) = verify(run / "certificate.json")
    assert mismatch.field == "guarantees[0].epsilon"
    assert mismatch.certified == "0.01"
    assert float(mismatch.recomputed) > 0.1


def test_steps_left_out_of_the_ledger_are_caught(run):
    lines = (run / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (run / "ledger.jsonl").write_bytes(b"".join(lines[:-3]))
    fields = {m.field for m in verify(run / "certificate.json")}
    assert {"ledger_digest", "phase private", "ledger_steps[1].steps"} <= fields
    with pytest.raises(GuaranteeError, match="phase private"):
        issue(run, guarantees)


@pytest.mark.parametrize("name", ["plan.json", "evidence.json", "ledger.jsonl"])
def test_a_missing_file_is_a_mismatch(run, name):
    (run / name).unlink()
    assert any(name in m.recomputed for m in verify(run / "certificate.json"))


def test_a_certificate_that_is_none(run):
    for text in (b"{}", b"[]", b"", b"\xff", b'{"schema": "taciturn-certificate/9"}'):
        (run / "certificate.json").write_bytes(text)
        assert verify(run / "certificate.json")
    with pytest.raises(DataError):
        Certificate.read(run / "certificate.json")


def test_seeded_noise_is_not_for_release(tmp_path):
    seeded = {**PLAN, "seeds": {**PLAN["seeds"], "noise": 5}}
    evidence = Evidence.from_json({**EVIDENCE.to_json(), "seeded_noise": True})
    folder = make_run(tmp_path / "r", seeded, evidence)
    certificate = issue(folder, guarantees)
    assert certificate.seeded_noise
    assert not certificate.release
    assert "not for release" in certificate.reasons[0]
    assert all(g.status == "none" for g in certificate.statements())
    assert math.isfinite(certificate.epsilon_spent), "planned and spent still compare"
    certificate.write(folder / "certificate.json")
    assert verify(folder / "certificate.json") == []
    write_json(folder / "evidence.json", EVIDENCE.to_json())
    with pytest.raises(DataError, match="noise seed"):
        issue(folder, guarantees)


@pytest.mark.parametrize("said", [None, 39, 41, 10**6])
def test_the_size_that_delta_is_held_against_is_the_plans(tmp_path, said):
    """δ ≥ 1/n promises nothing, so an n that is said to be smaller, or not said, would make a claim of none."""
    folder = make_run(tmp_path / "r", evidence=Evidence.from_json({**EVIDENCE.to_json(), "protected": said}))
    with pytest.raises(DataError, match="with noise draw from 40 units"):
        issue(folder, guarantees)


@pytest.mark.parametrize("records", [None, 0])
@pytest.mark.parametrize("said", [None, 0, 5, 40])
def test_a_plan_that_does_not_say_how_many_units_there_are_certifies_nothing(pristine, tmp_path, records, said):
    """With δ = .03 for 40 records such a plan had a finite ε, release true, and verify agreed."""
    plan = json.loads(json.dumps(PLAN)) | {"target": {"epsilon": 1.5, "delta": 0.03}}
    del plan["phases"][1]["records"]
    plan["phases"][1] |= {} if records is None else {"records": records}
    evidence = Evidence.from_json({**EVIDENCE.to_json(), "delta": 0.03, "protected": said})
    folder = make_run(tmp_path / "r", plan, evidence)
    with pytest.raises(DataError, match=r"phases\.1\.records: expected how many units"):
        issue(folder, guarantees)
    shutil.copy(pristine / "certificate.json", folder)
    assert any("phases.1.records" in m.recomputed for m in verify(folder / "certificate.json"))


def test_more_spent_than_planned_fails(tmp_path):
    folder = make_run(tmp_path / "r", {**PLAN, "target": {"epsilon": 0.2, "delta": 8e-5}})
    certificate = issue(folder, guarantees)
    assert not certificate.release
    certificate.write(folder / "certificate.json")
    assert [m.field for m in verify(folder / "certificate.json")] == ["spent.epsilon"]


def test_verifying_imports_no_torch(run):
    code = (
        "import sys; from taciturn.mechanisms.registry import guarantees, verify; "
        f"assert verify({str(run / 'certificate.json')!r}) == []; "
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
