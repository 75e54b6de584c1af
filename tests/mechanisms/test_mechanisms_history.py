"""Training leaves its steps with the corpus, never fails because it cannot, and certificates count them."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from leaks import told
from taciturn.errors import Interrupted
from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.corpus_history import plan_key
from taciturn.mechanisms.registry import verify
from taciturn.mechanisms.run import Run, train
from taciturn.mechanisms.settings import RunConfig
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian
from taciturn.privacy.accounting.rounding import up
from taciturn.privacy.certificates.certificate import load_json
from taciturn.privacy.certificates.history import RUNS, read_history
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.readers import Corpus

TEXTS = ["hello there"] * 6 + [f"my number is (555) 010-77{i:02}, ask for Zed Quill" for i in range(9)]
STEPS = 6


def screened(out: Path | None) -> ScreenedCorpus:
    return screen(Corpus.from_texts(TEXTS), policy("phone"), policy("conservative"), out=out)


def config(corpus: Path, sigma: float = 1.5, name: str = "dpsgd") -> RunConfig:
    options: dict[str, Any] = {"steps": STEPS, "batch": 4, "noise_multiplier": sigma}
    return RunConfig(
        mechanism=name,
        corpus=corpus,
        model={"name": "lstm", "tokenizer": "bytes", "options": {"hidden_size": 8, "embedding_size": 8}},  # type: ignore[arg-type]
        delta=1e-3,
        options=options if name == "dpsgd" else {"epochs": 1, "batch_size": 4},
        train={"checkpoint_steps": 2},  # type: ignore[arg-type]
    )


def counts(folder: Path) -> list[tuple[str, int]]:
    return [(run.last.state, run.noised) for run in read_history(folder)]


def test_a_corpus_remembers_its_runs_and_the_certificate_counts_them(tmp_path: Path) -> None:
    corpus = screened(tmp_path / "screened")
    folder = tmp_path / "screened"
    train(config(folder), tmp_path / "one", screened=corpus)
    first = certify(tmp_path / "one")
    assert first.other_runs["known"] == 0
    train(config(folder, 3.0), tmp_path / "two", screened=corpus)
    assert (folder / RUNS).stat().st_mode & 0o777 == 0o600
    one, two = read_history(folder)
    assert [Path(run.last.path).name for run in (one, two)] == ["one", "two"]
    assert not any(told(text, (folder / RUNS).read_text()) for text in ("hello", "555", "Quill"))
    certificate = certify(tmp_path / "two")
    assert certificate.other_runs["known"] == 1
    q = 4 / len(TEXTS)
    both = compose({PoissonGaussian(q, 1.5): STEPS, PoissonGaussian(q, 3.0): STEPS}, "substitution").epsilon(1e-3)
    assert certificate.other_runs["together"][0]["epsilon"] == pytest.approx(up(both), rel=1e-9)
    assert certificate.other_runs["together"][0]["epsilon"] > certificate.guarantees[0]["epsilon"]
    assert not verify(tmp_path / "two" / "certificate.json")
    assert not verify(tmp_path / "one" / "certificate.json"), "an older certificate says what was known then"


def test_plain_runs_are_remembered_too(tmp_path: Path) -> None:
    corpus = screened(tmp_path / "screened")
    train(config(tmp_path / "screened", name="sgd"), tmp_path / "plain", screened=corpus)
    (run,) = read_history(tmp_path / "screened")
    assert {each.event for each in run.paid} == {NonPrivate(("original",))}
    train(config(tmp_path / "screened"), tmp_path / "run", screened=corpus)
    total = certify(tmp_path / "run").other_runs["together"]
    assert {each["epsilon"] for each in total} == {"inf"}


def test_a_stopped_run_is_remembered_as_far_as_it_went_and_once(tmp_path: Path) -> None:
    corpus = screened(tmp_path / "screened")

    def stop(p: Any) -> None:
        if p.step.number + 1 == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        train(config(tmp_path / "screened"), tmp_path / "run", screened=corpus, notify=stop)
    assert counts(tmp_path / "screened") == [("stopped", 3)]
    train(config(tmp_path / "screened"), tmp_path / "run", screened=corpus, resume=True)
    assert counts(tmp_path / "screened") == [("finished", STEPS)]
    assert certify(tmp_path / "run").other_runs["known"] == 0, "a run is not another to itself"


def test_a_run_that_fails_in_the_middle_is_remembered(tmp_path: Path) -> None:
    def fail(p: Any) -> None:
        if p.step.number == 1:
            raise ValueError("the display broke")

    with pytest.raises(ValueError, match="display"):
        train(config(tmp_path / "s"), tmp_path / "run", screened=screened(tmp_path / "s"), notify=fail)
    assert counts(tmp_path / "s") == [("stopped", 2)]


def test_a_corpus_in_memory_remembers_nothing_and_the_certificate_says_so(tmp_path: Path) -> None:
    train(config(Path("in memory")), tmp_path / "run", screened=screened(None))
    assert not list(tmp_path.rglob(RUNS))
    certificate = certify(tmp_path / "run")
    assert certificate.other_runs["known"] is None
    assert not verify(tmp_path / "run" / "certificate.json")


def test_training_goes_on_where_the_history_cannot_be_written_or_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = screened(tmp_path / "screened")
    (tmp_path / "screened" / RUNS).mkdir()  # what is no file can be neither written nor read, whoever runs the test
    with caplog.at_level(logging.WARNING, "taciturn"):
        train(config(tmp_path / "screened"), tmp_path / "run", screened=corpus)
        assert certify(tmp_path / "run").other_runs["known"] is None
    said = [record.getMessage() for record in caplog.records]
    assert sum("could not be written" in message for message in said) == 2
    assert any("other runs are not known" in message for message in said)


def test_the_key_of_a_run_is_that_of_its_plan_file(tmp_path: Path) -> None:
    corpus = screened(tmp_path / "screened")
    for name in ("a", "b"):  # the same settings on the same corpus are two runs
        train(config(tmp_path / "screened"), tmp_path / name, screened=corpus)
    keys = [run.last.key for run in read_history(tmp_path / "screened")]
    assert keys == [plan_key(load_json(Run(tmp_path / name).folder / "plan.json")) for name in ("a", "b")]
    assert len(set(keys)) == 2


def test_a_corpus_by_url_remembers_in_its_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run notes the copy it read, so that it is resumed, certified and counted without the store."""
    fsspec = pytest.importorskip("fsspec", reason="needs the cloud extra")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    url = "memory://history/of/runs"
    copy = screen(Corpus.from_texts(TEXTS), policy("phone"), policy("conservative"), out=url).path
    assert copy is not None
    train(config(url), tmp_path / "one")  # type: ignore[arg-type]
    assert Run(tmp_path / "one").config.corpus == str(copy)
    train(config(url, 3.0), tmp_path / "two")  # type: ignore[arg-type]
    fsspec.filesystem("memory").rm("/history", recursive=True)
    assert certify(tmp_path / "two", groups={"g": ["Quill"]}).other_runs["known"] == 1
    assert counts(copy) == [("finished", STEPS)] * 2
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "moved"))
    assert certify(tmp_path / "one").other_runs["known"] == 1, "where the copy is stands in the run"
