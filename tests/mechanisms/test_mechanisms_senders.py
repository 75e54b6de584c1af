"""Field cases P07 and P14: beside a claim about records stands what it means for whoever wrote most of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from taciturn.cli.main import run
from taciturn.mechanisms.planning import expected_guarantees, make_plan
from taciturn.mechanisms.run import train
from taciturn.mechanisms.settings import RunConfig
from taciturn.privacy.certificates.certificate import Certificate
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.document import Document
from taciturn.text.readers import Corpus


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> ScreenedCorpus:
    """1,000 messages of which one sender wrote 400, the others five each."""
    senders = ["anna"] * 400 + [f"u{i // 5}" for i in range(600)]
    mail = [Document(str(i), f"message {i}, call (555) 010-{i:04}", user) for i, user in enumerate(senders)]
    out = tmp_path_factory.mktemp("senders") / "screened"
    return screen(Corpus.from_documents(mail), policy("phone"), policy("conservative"), unit="document", out=out)


def config(corpus: ScreenedCorpus, name: str, **options: object) -> RunConfig:
    private = {"steps": 3, "batch": 10, "noise_multiplier": 20.0}
    return RunConfig(
        mechanism=name,
        corpus=corpus.path,  # type: ignore[arg-type]
        model={"name": "lstm", "tokenizer": "bytes", "options": {"hidden_size": 8, "embedding_size": 8}},  # type: ignore[arg-type]
        delta=1e-5,
        options=(private if name == "dpsgd" else {"private": private, "public": {"epochs": 1}}) | options,
        allow=("cannot-learn",),
    )


@pytest.mark.parametrize("name", ["dpsgd", "crt"])
def test_p14_a_claim_about_records_prints_the_group_epsilon_of_the_largest_user(
    thousand: ScreenedCorpus, name: str
) -> None:
    settings = config(thousand, name)
    found = expected_guarantees(settings, make_plan(settings, thousand), thousand)
    (group,) = [g for g in found if g.notion == "group-confidentiality"]
    (single,) = [g for g in found if g.notion == "confidentiality"]
    assert group.unit == "all secrets of one user in at most 400 records"
    assert group.detail["k"] == 400
    assert group.epsilon > single.epsilon
    if name == "dpsgd":  # skeletons of crt show that a record was there, so it has no such claim
        one, many = [g for g in found if g.notion == "dp"]
        assert many.unit == "whether one user's records (at most 400) were there"
        assert (many.detail["k"], many.relation) == (400, "add-remove")
        assert many.epsilon > one.epsilon


def test_p07_p14_the_certificate_of_a_run_says_so_and_points_to_users(
    thousand: ScreenedCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(config(thousand, "dpsgd"), tmp_path / "run", screened=thousand)
    assert run(["certify", str(tmp_path / "run")]) == 0
    said = capsys.readouterr()
    assert "all secrets of one user in at most 400 records" in said.out
    assert "whether one user's records (at most 400) were there" in said.out
    assert "one user has up to 400 records: for a promise about users, train with user_dp or uedp" in " ".join(
        said.err.split()
    )
    assert Certificate.read(tmp_path / "run/certificate.json").evidence["records_per_user"] == 400


def test_p07_a_unit_of_users_promises_users_and_no_group(thousand: ScreenedCorpus) -> None:
    settings = config(thousand, "dpsgd", unit="user")
    made = make_plan(settings, thousand)
    (private,) = made.phases
    assert (private.unit, private.records) == ("user", 121)
    (claim,) = expected_guarantees(settings, made, thousand)
    assert (claim.notion, claim.relation, claim.status) == ("user-dp", "add-remove", "proved")
    assert "user" in claim.label()
