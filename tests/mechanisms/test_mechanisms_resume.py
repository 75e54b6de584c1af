"""What was done is paid: runs that are stopped, put back, ended, or worked on by two processes at once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from forks import fork
from processes import ended
from taciturn.errors import DataError, GuaranteeError
from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.corpus_history import chosen, plan_key
from taciturn.mechanisms.lock import training
from taciturn.mechanisms.registry import verify
from taciturn.mechanisms.run import Run, train
from taciturn.mechanisms.settings import RunConfig
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.privacy.accounting.rounding import up
from taciturn.privacy.certificates.certificate import file_digest, load_json
from taciturn.privacy.certificates.history import RUNS, Drawn, Line, append, lines_of, read_history
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.privacy.guarantees import selection_law
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.private_selection import NegativeBinomial
from taciturn.reporting.export import export
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.readers import Corpus
from taciturn.training import engine
from taciturn.training.state import releases

TEXTS = ["hello there"] * 6 + [f"my number is (555) 010-77{i:02}, ask for Zed Quill" for i in range(9)]
STEPS, RATE, SIGMA = 10, 4 / 15, 1.5
EVENT = PoissonGaussian(RATE, SIGMA)
WEIGHTS = "model/model.safetensors"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def screened(out: Path | None) -> ScreenedCorpus:
    return screen(Corpus.from_texts(TEXTS), policy("phone"), policy("conservative"), out=out)


def config(corpus: Path = Path("in memory"), epsilon: float | None = None) -> RunConfig:
    noise = {} if epsilon else {"noise_multiplier": SIGMA}
    model: Any = {"name": "lstm", "tokenizer": "bytes", "options": {"hidden_size": 8, "embedding_size": 8}}
    options: dict[str, Any] = {"steps": STEPS, "batch": 4, **noise}
    saves: Any = {"checkpoint_steps": 4, "keep": 100}
    return RunConfig(
        mechanism="dpsgd", corpus=corpus, model=model, delta=1e-3, epsilon=epsilon, options=options, train=saves
    )


@pytest.fixture
def corpus(tmp_path: Path) -> ScreenedCorpus:
    return screened(tmp_path / "screened")


def broken_off(settings: RunConfig, out: Path, corpus: ScreenedCorpus, step: int, resume: bool = False) -> None:
    def stop(p: Any) -> None:
        if p.step.number + 1 == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(settings, out, screened=corpus, resume=resume, notify=stop)


def on_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    real = engine.environment
    monkeypatch.setattr(engine, "environment", lambda *facts: {**(real(*facts) or {}), "the machine": "another"})


def put_back(out: Path, step: int) -> None:
    """As if the run had never gone on from ``step``: no later checkpoint, no model, no later line of the ledger."""
    for path in (out / "checkpoints").glob("step-*.pt"):
        if int(path.stem.removeprefix("step-")) > step:
            path.unlink()
    shutil.rmtree(out / "model", ignore_errors=True)
    lines = (out / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (out / "ledger.jsonl").write_bytes(b"".join(lines[:step]))


@pytest.mark.parametrize("harm", ["nothing", "model", "checkpoints", "the key put back"])
def test_a_finished_run_does_not_go_on(tmp_path: Path, harm: str) -> None:
    """Also where there is no history that would tell."""
    memory, out = screened(None), tmp_path / "run"
    broken_off(config(), out, memory, 5)
    key = (out / "checkpoints/noise.key").read_bytes()
    train(config(), out, screened=memory, resume=True)
    model = file_digest(out / WEIGHTS)
    assert not (out / "checkpoints/noise.key").exists()
    if harm == "model":
        shutil.rmtree(out / "model")
    if harm == "checkpoints":
        shutil.rmtree(out / "model")
        for path in sorted((out / "checkpoints").glob("step-*.pt"))[1:]:
            path.unlink()
    if harm == "the key put back":
        (out / "checkpoints/noise.key").write_bytes(key)
    with pytest.raises(DataError, match=r"this run has ended\. An ended run does not go on"):
        train(config(), out, screened=memory, resume=True)
    assert not (out / "checkpoints/noise.key").exists()
    if harm in ("nothing", "the key put back"):
        assert file_digest(out / WEIGHTS) == model


def test_a_run_whose_ledger_is_put_back_with_its_checkpoint_is_known_to_the_corpus(
    tmp_path: Path, corpus: ScreenedCorpus
) -> None:
    settings = config(tmp_path / "screened")
    broken_off(settings, tmp_path / "run", corpus, 7)
    put_back(tmp_path / "run", 4)
    with pytest.raises(DataError, match="remembers 7 lines of this run's ledger, which is shorter or another one"):
        train(settings, tmp_path / "run", screened=corpus, resume=True)
    train(settings, tmp_path / "done", screened=corpus)
    put_back(tmp_path / "done", 4)
    with pytest.raises(DataError, match=r"runs\.jsonl of the corpus says that this run has ended"):
        train(settings, tmp_path / "done", screened=corpus, resume=True)


def test_a_finished_run_without_its_last_line_pays_for_every_step_that_is_done_anew(tmp_path: Path) -> None:
    """The key is gone with the run, so going on from an older checkpoint is another release, beside the first."""
    memory, out = screened(None), tmp_path / "run"
    train(config(), out, screened=memory)
    whole = (out / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    put_back(out, 4)
    (out / "ledger.jsonl").write_bytes(b"".join(whole[:-1]))
    train(config(), out, screened=memory, resume=True)
    certificate = certify(out)
    assert [(row["steps"], row["lost"]) for row in certificate.ledger_steps] == [(STEPS + 6, 6)]


def test_lost_steps_are_in_every_epsilon_and_verify_agrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = screened(None)
    train(config(), tmp_path / "whole", screened=memory)
    broken_off(config(), tmp_path / "part", memory, 7)
    shown: list[Any] = []
    on_another_machine(monkeypatch)
    train(config(), tmp_path / "part", screened=memory, resume=True, notify=shown.append)
    whole, part = certify(tmp_path / "whole"), certify(tmp_path / "part")
    for relation in ("substitution", "add-remove"):
        paid = compose({EVENT: STEPS + 3}, relation).epsilon(1e-3)
        found = [g.epsilon for g in part.statements() if g.relation == relation and g.finite]
        assert min(found) >= paid * (1 - 1e-9) > compose({EVENT: STEPS}, relation).epsilon(1e-3)
    assert part.epsilon_spent > whole.epsilon_spent
    assert shown[-1].epsilon is None or up(shown[-1].epsilon) >= part.epsilon_spent
    assert not verify(tmp_path / "part" / "certificate.json")
    ledger = tmp_path / "part/ledger.jsonl"
    kept = [line for line in ledger.read_bytes().splitlines(keepends=True) if b'"from"' not in line]
    ledger.write_bytes(b"".join(kept))
    assert verify(tmp_path / "part" / "certificate.json")


def test_a_target_that_lost_steps_exceed_is_a_reason_against_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = screened(None)
    broken_off(config(epsilon=4.0), tmp_path, memory, 7)
    on_another_machine(monkeypatch)
    train(config(epsilon=4.0), tmp_path, screened=memory, resume=True)
    certificate = certify(tmp_path)
    assert certificate.epsilon_spent > 4.0
    assert not certificate.release
    assert "more was spent than the plan's target" in certificate.reasons


def test_a_corpus_remembers_where_each_start_goes_on_and_what_was_lost(
    tmp_path: Path, corpus: ScreenedCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, out = config(tmp_path / "screened"), tmp_path / "run"
    broken_off(settings, out, corpus, 7)
    on_another_machine(monkeypatch)
    broken_off(settings, out, corpus, 9, resume=True)
    monkeypatch.undo()
    (one,) = read_history(tmp_path / "screened")
    found = lines_of(tmp_path / "screened", one.last.key)
    assert [(line.state, line.start, line.ledger[0], line.lost) for line in found] == [
        ("begun", 0, 0, 0), ("stopped", 0, 7, 0),
        ("begun", 4, 8, 3), ("stopped", 4, 13, 3),  # 7 steps and the mark; then steps 5 to 9 once more
    ]  # fmt: skip
    assert found[2].phases[0][3] == STEPS + 3, "killed now, it would count with all that it may have spent"
    assert found[3].phases[0][3] == one.noised == 12
    train(settings, out, screened=corpus, resume=True)  # back on the first machine, from step 8: one more is lost
    last = lines_of(tmp_path / "screened", one.last.key)[-1]
    assert (last.state, last.lost) == ("finished", 4)
    assert last.ledger == (len(Ledger.read(out / "ledger.jsonl")), Ledger.read(out / "ledger.jsonl").digest)


def test_a_run_with_lost_steps_is_not_priced_by_private_selection(tmp_path: Path) -> None:
    law = selection_law.to_json(NegativeBinomial(3.0))
    append(tmp_path, Drawn(drawn=law, runs=1, date="2026-01-01T00:00:00+00:00"))
    memory = screened(None)
    train(config(), tmp_path / "run", screened=memory)
    plan = load_json(tmp_path / "run/plan.json")
    phases = (("private", "record", EVENT.to_json(), STEPS + 1),)
    fields = {"date": "2026-01-01T00:00:00+00:00", "path": "/runs/a", "mechanism": "dpsgd", "seeded": False}
    line = Line(key=plan_key(plan), state="finished", relation="substitution", phases=phases, lost=1, **fields)
    append(tmp_path, line)
    with pytest.raises(GuaranteeError, match="steps of these were done, lost at a stop and done anew: a"):
        chosen(Evidence(1e-3), tmp_path / "run", tmp_path)
    (tmp_path / RUNS).write_text("")
    append(tmp_path, Drawn(drawn=law, runs=1, date="2026-01-01T00:00:00+00:00"))
    append(tmp_path, line.model_copy(update={"lost": 0}))
    assert chosen(Evidence(1e-3), tmp_path / "run", tmp_path).selection == law


def test_stopped_between_model_and_end_is_not_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = screened(None)
    monkeypatch.setattr(releases, "finish", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train(config(), tmp_path, screened=memory)
    model = file_digest(tmp_path / WEIGHTS)
    assert not Run(tmp_path).finished
    with pytest.raises(DataError, match="stopped before its run ended"):
        certify(tmp_path)
    monkeypatch.undo()
    train(config(), tmp_path, screened=memory, resume=True)
    assert file_digest(tmp_path / WEIGHTS) == model
    assert certify(tmp_path).ledger_steps[0]["lost"] == 0


def test_one_process_at_a_time_trains_certifies_or_exports(tmp_path: Path) -> None:
    memory, out = screened(None), tmp_path / "run"
    said: list[str] = []

    def interfere(p: Any) -> None:
        if p.step.number == 5:
            for other in (
                lambda: train(config(), out, screened=memory, resume=True),
                lambda: train(config(), out, screened=memory),
                lambda: certify(out),
                lambda: export(out, tmp_path / "exported"),
            ):
                with pytest.raises(DataError, match="is at work in") as raised:
                    other()
                said.append(str(raised.value))

    salts = set[bytes]()
    train(config(), out, screened=memory, notify=lambda p: (interfere(p), salts.add(_salt(out))))
    assert len(salts) == 1, "no other start has put its salt there"
    assert all(f"another process ({os.getpid()}) is at work in {out}" in text for text in said)
    assert len(said) == 4
    assert Ledger.read(out / "ledger.jsonl").counts() == {EVENT: STEPS}
    certify(out)
    export(out, tmp_path / "exported")
    names = {path.name for path in (tmp_path / "exported").rglob("*")}
    assert not names & {"noise.key", "corpus.salt", "environment.json", "lock"}


def _salt(out: Path) -> bytes:
    return (out / "checkpoints/corpus.salt").read_bytes()


def test_a_start_that_comes_second_has_not_touched_the_salt(tmp_path: Path) -> None:
    with training(tmp_path, resume=False):
        (tmp_path / "checkpoints/corpus.salt").write_bytes(b"of the first")
        with pytest.raises(DataError, match="is at work in"):
            train(config(), tmp_path, screened=screened(None))
        assert _salt(tmp_path) == b"of the first"
        assert not (tmp_path / "plan.json").exists()
    with pytest.raises(DataError, match="nothing to resume"), training(tmp_path / "nowhere", resume=True):
        pass
    assert not (tmp_path / "nowhere").exists()


TWO = """
    import os, sys, time
    from taciturn.cli.main import run
    os.chdir({folder!r})
    print("ready", flush=True)
    while not os.path.exists("go"):
        time.sleep(0.01)
    sys.exit(run({words}))
"""


@pytest.mark.parametrize("words", ["run.toml -o run", "run --resume"])
def test_of_two_commands_at_once_one_goes_on(words: str, tmp_path: Path, corpus: ScreenedCorpus) -> None:
    """Whichever is later finds the lock, or that the run has begun or ended."""
    settings, out = config(tmp_path / "screened"), tmp_path / "run"
    (tmp_path / "run.toml").write_text(tomli_w.dumps(settings.model_dump(mode="json", exclude_none=True)))
    if "--resume" in words:
        broken_off(settings, out, corpus, 7)
    code = textwrap.dedent(TWO).format(folder=str(tmp_path), words=["train", *words.split()])
    processes = [fork(code, ENVIRONMENT, subprocess.PIPE, subprocess.STDOUT) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    (tmp_path / "go").touch()
    said = [heard.decode() for heard, _ in ended(*processes)]
    codes = [process.returncode for process in processes]
    assert sorted(codes) == [0, 3], said
    refused = said[codes.index(3)]
    assert any(why in refused for why in ("at work in", "already holds a run", "has ended")), refused
    assert Ledger.read(out / "ledger.jsonl").counts() == {EVENT: STEPS}


def test_a_lock_goes_with_its_process(tmp_path: Path) -> None:
    code = f"""
        from pathlib import Path
        import time
        from taciturn.mechanisms.lock import training
        with training(Path({str(tmp_path)!r}), False):
            print("held", flush=True)
            time.sleep(1800)
    """
    child = fork(textwrap.dedent(code), ENVIRONMENT, subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    with pytest.raises(DataError, match=rf"another process \({child.pid}\)"), training(tmp_path, True):
        pass
    child.send_signal(signal.SIGKILL)
    child.communicate()
    with training(tmp_path, True):
        assert (tmp_path / "checkpoints/lock").stat().st_mode & 0o777 == 0o600


def test_the_key_is_in_no_file_of_a_run_or_an_export(tmp_path: Path) -> None:
    memory, out = screened(None), tmp_path / "run"
    broken_off(config(), out, memory, 5)
    key = (out / "checkpoints/noise.key").read_bytes()
    train(config(), out, screened=memory, resume=True)
    assert json.loads((out / "plan.json").read_text())["seeds"]["noise"] == "os"
    certificate = certify(out)
    assert not certificate.seeded_noise
    export(out, tmp_path / "exported")
    for path in tmp_path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert key not in content, path
            assert key.hex().encode() not in content.lower(), path
