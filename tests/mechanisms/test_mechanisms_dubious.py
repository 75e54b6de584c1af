"""Plans that are nearly always a mistake, validation text, and runs that would train on nothing: refused or told in time."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from neighbours import words_policy
from taciturn.cli.main import run
from taciturn.cli.options import Allowed
from taciturn.errors import DataError, UsageError
from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.planning import expected_guarantees, make_plan
from taciturn.mechanisms.run import train
from taciturn.mechanisms.settings import RunConfig, load_config
from taciturn.privacy.certificates.certificate import Certificate
from taciturn.privacy.guarantees.evidence import ALLOWED
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.readers import Corpus, read

TEXTS = ["hello there"] * 6 + [f"my number is (555) 010-77{i:02}, ask for Zed Quill" for i in range(20)]
PRIVATE = {"steps": 4, "batch": 4, "noise_multiplier": 2.0}
TINY: Any = {"name": "lstm", "tokenizer": "bytes", "options": {"hidden_size": 8, "embedding_size": 8}}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> ScreenedCorpus:
    out = tmp_path_factory.mktemp("dubious") / "screened"
    return screen(Corpus.from_texts(TEXTS), policy("phone"), policy("conservative"), unit="turn", out=out)


def config(corpus: ScreenedCorpus, name: str = "dpsgd", delta: float = 1e-3, **more: Any) -> RunConfig:
    options = {"dpsgd": PRIVATE, "crt": {"public": {"epochs": 1}, "private": PRIVATE}, "sgd": {"epochs": 1}}[name]
    given = {"mechanism": name, "corpus": corpus.path or Path("memory"), "model": TINY, "delta": delta}
    return RunConfig(**{**given, "options": options, **more})


DUBIOUS: dict[str, dict[str, Any]] = {
    "large-delta": {"delta": 1 / 26},
    "full-batch": {"options": {**PRIVATE, "batch": 27}},
    "cannot-learn": {"options": {**PRIVATE, "noise_multiplier": 9.0}},
}


@pytest.mark.parametrize("name", DUBIOUS)
def test_a_plan_that_is_most_likely_a_mistake_is_refused_unless_allowed_by_name(
    name: str, corpus: ScreenedCorpus
) -> None:
    with pytest.raises(UsageError, match=f"--allow {name}"):
        make_plan(config(corpus, **DUBIOUS[name]), corpus)
    others = tuple(each for each in DUBIOUS if each != name)
    with pytest.raises(UsageError, match=f"--allow {name}"):
        make_plan(config(corpus, allow=others, **DUBIOUS[name]), corpus)
    make_plan(config(corpus, allow=(name,), **DUBIOUS[name]), corpus)


def test_just_below_each_of_them_is_an_ordinary_plan(corpus: ScreenedCorpus) -> None:
    for more in (
        {"delta": 1 / 26 - 1e-6},
        {"options": {**PRIVATE, "batch": 26}},
        {"options": {**PRIVATE, "batch": 999, "rate": 1.0}},  # said in so many words
        {"options": {**PRIVATE, "noise_multiplier": 7.9}},  # 7.9 < 4 records · √4 steps
    ):
        make_plan(config(corpus, **more), corpus)


@pytest.mark.parametrize("said", [1, 10, 25, 27])
@pytest.mark.parametrize("name", ["dpsgd", "crt"])
def test_a_plan_made_by_hand_promises_nothing_over_another_number_of_records(
    said: int, name: str, corpus: ScreenedCorpus
) -> None:
    """At δ = .039 > 1/26 there is a promise over 25 records and none over the 26 that dpsgd has; crt has 20."""
    asked = config(corpus, name, delta=0.039, allow=("large-delta",))
    made = make_plan(asked, corpus)
    *rest, noised = made.phases
    by_hand = replace(made, phases=(*rest, replace(noised, records=said)))
    with pytest.raises(DataError, match=rf"phase 'private' has {noised.records} records, its plan says {said}"):
        expected_guarantees(asked, by_hand, corpus)


def test_nor_over_another_number_of_users(tmp_path: Path) -> None:
    rows = [json.dumps({"text": f"note {i}", "user": f"u{i % 5}"}) for i in range(30)]
    (tmp_path / "notes.jsonl").write_text("\n".join(rows) + "\n")
    screened = screen(
        read(str(tmp_path / "notes.jsonl"), user="user"), policy("phone"), policy("conservative"), unit="turn"
    )
    options = {"steps": 2, "batch": 2, "noise_multiplier": 1.0}
    asked = RunConfig(mechanism="user_dp", corpus=Path("memory"), model=TINY, delta=0.1, options=options)
    made = make_plan(asked, screened)
    assert expected_guarantees(asked, made, screened)
    by_hand = replace(made, phases=(replace(made.phases[0], records=4),))
    with pytest.raises(DataError, match="has 5 units of the kind 'user', its plan says 4"):
        expected_guarantees(asked, by_hand, screened)


def test_the_default_delta_is_one_too(corpus: ScreenedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taciturn.mechanisms.refusals.DEFAULT_DELTA", 0.1)
    with pytest.raises(UsageError, match="--allow large-delta"):
        make_plan(config(corpus).model_copy(update={"delta": None}), corpus)


@pytest.mark.parametrize(("name", "reason"), [("cannot-learn", "cannot learn"), ("large-delta", "one over the number")])
def test_what_was_allowed_stays_in_run_toml_evidence_and_certificate(
    name: str, reason: str, corpus: ScreenedCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {"large-delta": ["--delta", str(1 / 20)], "cannot-learn": ["--delta", "1e-3"]}[name]
    sigma = {"large-delta": 2.0, "cannot-learn": 9.0}[name]
    sets = [f"options.{key}={value}" for key, value in {**PRIVATE, "noise_multiplier": sigma}.items()]
    sets += ["model.options.hidden_size=8", "model.options.embedding_size=8"]
    argv = ["plan", "dpsgd", str(corpus.path), "--tokenizer", "bytes", *made, "-o", f"{tmp_path}/run.toml"]
    argv += [each for s in sets for each in ("--set", s)]
    assert run(argv) == 2
    assert not (tmp_path / "run.toml").exists()
    assert run([*argv, "--allow", name]) == 0
    assert load_config(tmp_path / "run.toml").allow == (name,)
    bare = (tmp_path / "run.toml").read_text().replace(f'    "{name}",\n', "")
    (tmp_path / "bare.toml").write_text(bare)
    assert run(["train", f"{tmp_path}/bare.toml", "-o", f"{tmp_path}/run"]) == 2
    assert run(["train", f"{tmp_path}/bare.toml", "-o", f"{tmp_path}/run", "--allow", name]) == 0
    assert load_config(tmp_path / "run/run.toml").allow == (name,)
    certificate = certify(tmp_path / "run")
    assert certificate.evidence["allowed"] == [name]
    assert not certificate.release
    assert any(reason in each for each in certificate.reasons)
    assert any(g.finite for g in certificate.statements()) == (name == "cannot-learn")
    capsys.readouterr()


# Validation text


def validated(corpus: ScreenedCorpus, **train: Any) -> set[str]:
    """Statuses of what dpsgd would promise."""
    asked = config(corpus, train=train)
    return {each.status for each in expected_guarantees(asked, make_plan(asked, corpus), corpus)}


def test_validation_text_of_which_nobody_says_that_it_is_public_is_a_condition(
    corpus: ScreenedCorpus, tmp_path: Path
) -> None:
    (tmp_path / "valid.txt").write_text("good morning\n")
    valid = (str(tmp_path / "valid.txt"),)
    assert validated(corpus) == {"proved"}
    assert validated(corpus, valid_is="private") == {"proved"}, "there is none"
    assert validated(corpus, valid=valid) == {"conditional"}
    for kind, status in (("unknown", "conditional"), ("private", "conditional"), ("public", "proved")):
        assert validated(corpus, valid=valid, valid_is=kind) == {status}
    assert validated(corpus, valid=valid, evaluations=0) == {"proved"}, "nobody looked"
    asked = config(corpus, train={"valid": valid})
    (first, *_) = expected_guarantees(asked, make_plan(asked, corpus), corpus)
    assert "no secret is in the validation text that decisions looked at" in first.words()


def test_a_file_of_the_corpus_itself_is_not_public(tmp_path: Path) -> None:
    (tmp_path / "talk.txt").write_text("\n".join(TEXTS) + "\n")
    (tmp_path / "copy.txt").write_text("\n".join(TEXTS) + "\n")
    screened = screen(
        read(str(tmp_path / "talk.txt"), format="lines"), policy("phone"), policy("conservative"), unit="turn"
    )
    with pytest.raises(UsageError, match="screened from that very file"):
        validated(screened, valid=(str(tmp_path / "copy.txt"),), valid_is="public")
    assert validated(screened, valid=(str(tmp_path / "copy.txt"),)) == {"conditional"}


@pytest.mark.parametrize(("kind", "status"), [("unknown", "conditional"), ("public", "proved")])
def test_text_given_in_python_counts_as_the_declaration_says(
    kind: str, status: str, corpus: ScreenedCorpus, tmp_path: Path
) -> None:
    from taciturn.text.segment import split

    held = [
        record for document in Corpus.from_texts(["good morning"]).documents() for record in split(document, "turn")
    ]
    train(config(corpus, train={"valid_is": kind}), tmp_path / "run", screened=corpus, valid=held)
    assert {each.status for each in certify(tmp_path / "run").statements()} == {status}
    known_better = certify(tmp_path / "run", private_validation=True)
    assert {each.status for each in known_better.statements()} == {"conditional"}


# Labels and groups against the policies


def test_labels_given_to_certify_refute_and_end_it_with_4(
    corpus: ScreenedCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    train(config(corpus, "crt"), folder, screened=corpus)
    assert run(["certify", str(folder), "--labelled", "21", "--missed", "11", "--missed-by-both", "0"]) == 0
    assert Certificate.read(folder / "certificate.json").release
    capsys.readouterr()
    assert run(["certify", str(folder), "--labelled", "21", "--missed", "11", "--missed-by-both", "11"]) == 4
    said = capsys.readouterr()
    missed = "11 of 21 labelled secrets are marked whole by no policy: at most 71.5 % with 95 % confidence"
    assert said.err.strip().splitlines()[-1] == f"refuted: {missed}"
    certificate = Certificate.read(folder / "certificate.json")
    assert certificate.refuted == [missed]
    assert not certificate.release
    assert any(missed in each for each in certificate.reasons)
    assert run(["verify", str(folder / "certificate.json")]) == 0, "it is true that the claim is refuted"


def test_a_group_that_stands_in_public_text_refutes_what_was_to_be_promised(
    corpus: ScreenedCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    train(config(corpus, "crt"), folder, screened=corpus)
    (tmp_path / "family.txt").write_text("hello there\n")
    (tmp_path / "names.txt").write_text("Zed Quill\n")
    assert run(["certify", str(folder), "--group", f"names={tmp_path}/names.txt"]) == 0
    argv = [
        "certify",
        str(folder),
        "--group",
        f"family={tmp_path}/family.txt",
        "--group",
        f"names={tmp_path}/names.txt",
    ]
    assert run(argv) == 4
    certificate = Certificate.read(folder / "certificate.json")
    assert certificate.evidence["open_groups"] == [["family", 6], ["names", 0]]
    assert "6 records that are read without noise still hold a secret of the group 'family'" in certificate.refuted[0]
    assert "hello there" not in (folder / "certificate.json").read_text() + capsys.readouterr().err


def test_a_group_is_judged_by_its_own_secrets_and_the_model_by_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels show secrets that no policy marks; two groups were looked for, of one only halves are marked."""
    texts = [*TEXTS[:6], *(f"for {name} call {i} times" for i in range(10) for name in ("Zed Quill", "Ann"))]
    screened = screen(
        Corpus.from_texts(texts), words_policy([]), words_policy(["Zed", "Ann"]), unit="turn", out=tmp_path / "screened"
    )
    folder = tmp_path / "run"
    train(config(screened, "crt", delta=0.01), folder, screened=screened)
    (tmp_path / "half.txt").write_text("Zed Quill\n")
    (tmp_path / "full.txt").write_text("ann\n")
    argv = ["certify", str(folder), "--labelled", "21", "--missed", "11", "--missed-by-both", "11"]
    assert run([*argv, "--group", f"half={tmp_path}/half.txt", "--group", f"full={tmp_path}/full.txt"]) == 4
    certificate = Certificate.read(folder / "certificate.json")
    assert certificate.evidence["open_groups"] == [["full", 0], ["half", 10]]
    status = {g.unit: g.status for g in certificate.statements() if g.notion != "bayesian-confidentiality"}
    assert status["a secret in one record"] == status["the secrets of group 'half' in 10 records"] == "refuted"
    assert status["the secrets of group 'full' in 10 records"] == "conditional"
    assert not certificate.release
    assert any("10 records" in each and "'half', or a part of one" in each for each in certificate.reasons)
    assert run(["verify", str(folder / "certificate.json")]) == 0
    assert "Quill" not in (folder / "certificate.json").read_text() + capsys.readouterr().err


# Nothing to learn from


def conversations(folder: Path, questions: list[str]) -> ScreenedCorpus:
    rows = [
        json.dumps({"messages": [{"role": "user", "content": q}, {"role": "assistant", "content": "yes it is"}]})
        for q in questions
    ]
    path = folder / "chats.jsonl"
    path.write_text("\n".join(rows) + "\n")
    return screen(read(str(path), chat="openai"), policy("phone"), policy("conservative"), unit="document")


@pytest.mark.parametrize("name", ["sgd", "dpsgd", "crt"])
def test_a_run_in_which_no_record_has_a_token_to_predict_is_refused_before_anything_is_paid(
    name: str, tmp_path: Path
) -> None:
    screened = conversations(
        tmp_path, [f"where is my parcel number {i}, and is it late? my code is 77{i:04}" for i in range(26)]
    )
    model = {**TINY, "loss_on": "assistant", "max_length": 20, "chat_template": "plain"}
    with pytest.raises(DataError, match=r"none of its \d+ records has a token to predict"):
        train(config(screened, name, model=model), tmp_path / "run", screened=screened)
    left = {path.name for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert not left & {"ledger.jsonl", "plan.json", "model", "metrics.jsonl"}
    train(config(screened, name, model={**model, "loss_on": "all"}), tmp_path / "all", screened=screened)


@pytest.mark.parametrize(("long", "more"), [(1, False), (5, True)])
def test_records_without_a_token_to_predict_are_counted_and_many_are_warned_of(
    long: int, more: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = [f"is it late number {i:03}" for i in range(40 - long)]
    screened = conversations(tmp_path, [*said, *(f"where is my parcel {i}, " + "and where " * 20 for i in range(long))])
    model = {**TINY, "loss_on": "assistant", "max_length": 60, "chat_template": "plain"}
    with caplog.at_level(logging.WARNING, "taciturn"):
        train(config(screened, model=model), tmp_path / "run", screened=screened)
    (line,) = [each.getMessage() for each in caplog.records if "no token to predict" in each.getMessage()]
    assert line.startswith(f"{long} of 40 records of phase private have no token to predict")
    assert ("more than 5" in line) == more
    written = "".join(path.read_text() for path in (tmp_path / "run").glob("*.json*"))
    assert "no token" not in written


def test_removed_copies_have_nothing_by_design_and_do_not_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    screened = screen(
        Corpus.from_texts(["call Zed Quill now"] * 20 + [f"ask for Zed Quill at {i}" for i in range(20)]),
        policy("phone"), policy("conservative"), unit="turn", skeletons=False,
    )  # fmt: skip
    assert screened.counts.duplicates == 19
    with caplog.at_level(logging.WARNING, "taciturn"):
        train(
            config(screened, "crt", options={"private": PRIVATE, "skeletons": False}),
            tmp_path / "run",
            screened=screened,
        )
    assert not [each for each in caplog.records if "no token to predict" in each.getMessage()]


def test_text_that_is_all_masked_trains_nothing(tmp_path: Path) -> None:
    screened = screen(Corpus.from_texts(TEXTS), policy("all-private"), policy("all-private"), unit="turn")
    for name in ("dpsgd", "crt"):
        options = {**PRIVATE, "reads": "redacted"} if name == "dpsgd" else {"private": PRIVATE}
        with pytest.raises(DataError, match="none of its 26 records has a token to predict"):
            train(config(screened, name, options=options), tmp_path / name, screened=screened)


def test_the_command_line_knows_the_names_that_plans_know() -> None:
    names, _ = get_args(get_args(Allowed)[0])
    assert set(get_args(names)) == ALLOWED
