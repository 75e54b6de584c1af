"""The JSON Schema of certificates is the one in docs/, and real certificates follow it."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import orjson
import pytest

from taciturn.mechanisms.registry import guarantees
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian
from taciturn.privacy.certificates.certificate import Certificate, issue, write_json
from taciturn.privacy.certificates.history import Paid
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.privacy.certificates.schema import certificate_schema
from taciturn.privacy.guarantees.evidence import Evidence

DOCS = Path(__file__).parents[3] / "docs" / "certificate.schema.json"
NOISY, OPEN = PoissonGaussian(0.05, 2.0), NonPrivate(("public", "skeletons"))
STEPS = [("public", OPEN, 3), ("private", NOISY, 8)]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schema") / "run"
    (folder / "model").mkdir(parents=True)
    (folder / "model/model.safetensors").write_bytes(b"weights")
    phases = [{"name": n, "reads": ["private"], "records": 40, "steps": s, "event": e.to_json()} for n, e, s in STEPS]
    plan = {"mechanism": "crt", "relation": "substitution", "target": {"epsilon": 9.0, "delta": 1e-5}}
    write_json(folder / "plan.json", {**plan, "phases": phases, "seeds": {"noise": "os"}, "corpus_key": "k"})
    evidence = Evidence(
        1e-5, protected=40, skeletons=True, labelled=200, missed_by_pi=20, missed_by_both=0, groups=(("a", 2),),
        other_runs=1, other_steps=(Paid("record", NOISY, 5).to_json(),),
    )  # fmt: skip
    write_json(folder / "evidence.json", evidence.to_json())
    with Ledger.create(folder / "ledger.jsonl") as ledger:
        for step, (name, event) in enumerate((n, e) for n, e, s in STEPS for _ in range(s)):
            ledger.append(step, name, event)
    return orjson.loads(orjson.dumps(issue(folder, guarantees).model_dump(by_alias=True)))


def test_the_schema_in_the_docs_is_current():
    """After a wanted change: taciturn certify --schema > docs/certificate.schema.json"""
    assert json.loads(DOCS.read_text("utf-8")) == json.loads(json.dumps(certificate_schema()))


def test_the_schema_names_every_field():
    names = {info.alias or name for name, info in Certificate.model_fields.items()}
    assert certificate_schema()["required"] == sorted(names) == sorted(certificate_schema()["properties"])


def test_a_certificate_follows_the_schema_and_a_damaged_one_does_not(certificate):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema checks documents against schemas")
    schema = certificate_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert [error.message for error in validator.iter_errors(certificate)] == []

    def edited(*path, value):
        wrong = copy.deepcopy(certificate)
        place = wrong
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        return wrong

    assert certificate["guarantees"][-1]["epsilon"] == "inf", "∞ is written as the schema says"
    for wrong in (
        {k: v for k, v in certificate.items() if k != "other_runs"},
        certificate | {"more": 1},
        edited("guarantees", 0, "status", value="certain"),
        edited("guarantees", 0, "epsilon", value="small"),
        edited("evidence", "dedup", value="some"),
        edited("ledger_steps", 0, "event", "event", value="laplace"),
        edited("digest", value="abc"),
        edited("other_runs", "known", value=-1),
    ):
        assert not validator.is_valid(wrong)
