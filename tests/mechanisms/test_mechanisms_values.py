"""crt with fill = "learned": the table in ledger, folder and certificate, in runs that are stopped, and in words."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from leaks import told
from taciturn.cli.main import run as command
from taciturn.errors import GuaranteeError, UsageError
from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.planning import make_plan
from taciturn.mechanisms.registry import verify
from taciturn.mechanisms.run import train
from taciturn.mechanisms.settings import RunConfig
from taciturn.mechanisms.values import MU, PHASE
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian, ThresholdedCounts
from taciturn.privacy.certificates.certificate import file_digest
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.reporting.export import export
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.readers import Corpus
from taciturn.training import engine
from taciturn.training.values.table import Table

DAYS = ("Monday", "Tuesday", "Sunday")
SECRET = "zqunique"
TEXTS = [
    f"see you on {DAYS[i % 3]} at 1{i % 7}:15, says {SECRET}{'abcdefghij'[i % 10]}{'klmnop'[i // 10]}"
    for i in range(42)
]
TEXTS += ["have a nice day"] * 6
VALUES = "values.json"
WEIGHTS = "model/model.safetensors"


@pytest.fixture(scope="module")
def corpus() -> ScreenedCorpus:
    return screen(Corpus.from_texts(TEXTS), policy("phone"), policy("conservative"), unit="document")


def config(noise: int | str = "os", epsilon: float | None = None, **options: Any) -> RunConfig:
    private = {"steps": 4, "batch": 6, **({} if epsilon else {"noise_multiplier": 2.0})}
    learned: dict[str, Any] = {
        "fill": "learned",
        "values": {"mu": 2.0 if epsilon is None else 0.5, "protect_copies": 2},
        "public": {"epochs": 2, "batch_size": 12},
        "private": private,
    }
    return RunConfig(
        mechanism="crt",
        corpus=Path("memory"),
        model={
            "name": "lstm",
            "tokenizer": "bytes",
            "options": {"hidden_size": 8, "embedding_size": 8, "dropout": 0.0},
        },  # type: ignore[arg-type]
        epsilon=epsilon,
        delta=1e-2,
        options=learned | options,
        seeds={"noise": noise},  # type: ignore[arg-type]
        train={"checkpoint_steps": 4, "keep": 100},  # type: ignore[arg-type]
    )


@pytest.fixture(scope="module")
def finished(corpus: ScreenedCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with noise from the operating system, certified."""
    out = tmp_path_factory.mktemp("learned") / "run"
    train(config(), out, screened=corpus)
    certify(out)
    return out


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "run")


def broken_off(settings: RunConfig, out: Path, corpus: ScreenedCorpus, step: int, resume: bool = False) -> None:
    def stop(p: Any) -> None:
        if p.step.number + 1 == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(settings, out, screened=corpus, resume=resume, notify=stop)


def table(out: Path) -> Table:
    return Table.from_bytes((out / VALUES).read_bytes())


# The share of a target that a table takes


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 8.0])
def test_a_table_leaves_a_third_of_any_target_to_the_steps(epsilon: float, corpus: ScreenedCorpus) -> None:
    """μ follows from the target alone, so that a small one can be planned for; a μ that is named stays."""
    plan = make_plan(config(epsilon=epsilon, values={"protect_copies": 2}).model_copy(update={"delta": 1e-4}), corpus)
    table = {phase.event: 1 for phase in plan.phases if not phase.moves}
    alone = compose(table, "substitution").epsilon(1e-4)
    assert alone < 0.7 * epsilon
    (rule,) = (phase.rule for phase in plan.phases if not phase.moves)
    assert rule.noise_multiplier >= 1 / MU
    assert (rule.noise_multiplier == 1 / MU) == (epsilon > 2.6)
    named = make_plan(config(epsilon=8.0, values={"protect_copies": 2, "mu": 1.25}), corpus)
    assert [phase.noise for phase in named.phases if not phase.moves] == [0.8]


# One run


def test_the_table_is_the_first_line_of_the_ledger_and_a_file_of_the_run(finished: Path) -> None:
    lines = [json.loads(line) for line in (finished / "ledger.jsonl").read_text().splitlines()]
    assert lines[0]["phase"] == PHASE
    assert lines[0]["event"]["event"] == "thresholded-counts"
    kinds = [type(event) for event in Ledger.read(finished / "ledger.jsonl").counts()]
    assert kinds == [ThresholdedCounts, NonPrivate, PoissonGaussian]
    made = table(finished)
    assert set(DAYS) & set(made.values)
    assert 0 < made.coverage < 1


def test_the_certificate_has_its_digest_its_epsilon_and_says_what_it_shows(finished: Path) -> None:
    certificate = certify(finished)
    assert certificate.values_digest == file_digest(finished / VALUES)
    assert verify(finished / "certificate.json") == []
    events = Ledger.read(finished / "ledger.jsonl").counts()
    single = next(g for g in certificate.statements() if g.notion == "confidentiality")
    assert single.epsilon == pytest.approx(compose(events, "substitution").epsilon(1e-2), rel=1e-6)
    without = {event: n for event, n in events.items() if not isinstance(event, ThresholdedCounts)}
    assert single.epsilon > compose(without, "substitution").epsilon(1e-2)
    (said,) = [
        text
        for text in certificate.words
        if text.startswith("A table of values that stand in many records was released")
    ]
    assert said.endswith("a value in at most 2 records is in it with a chance of at most 0.01.")
    shown = compose(events, "substitution")
    assert shown.for_group(2).escaped <= 1e-2 < shown.for_group(3).escaped
    (record,) = [g for g in certificate.statements() if g.notion == "dp"]
    assert record.status == "none"


def test_no_rare_value_stands_in_any_file_of_the_run(finished: Path) -> None:
    files = [path for path in finished.rglob("*") if path.is_file()]
    assert {VALUES, "certificate.json", "ledger.jsonl"} <= {path.name for path in files}
    for path in files:
        assert not told(SECRET, path.read_bytes()), path
    assert any(told("Monday", path.read_bytes()) for path in files), "as a common one does"


@pytest.mark.parametrize("harm", ["changed", "missing", "of another run"])
def test_a_table_that_is_not_the_runs_own_is_named(run: Path, harm: str, capsys: pytest.CaptureFixture[str]) -> None:
    if harm == "missing":
        (run / VALUES).unlink()
    elif harm == "changed":
        (run / VALUES).write_bytes((run / VALUES).read_bytes().replace(b"Monday", b"Mondey"))
    else:
        (run / VALUES).write_bytes(b"{}")
    assert "values" in str(verify(run / "certificate.json"))
    assert command(["verify", str(run)]) == 4
    assert "values" in "".join(capsys.readouterr())


def test_a_table_that_no_run_released_is_named(corpus: ScreenedCorpus, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "plain"
    train(config(fill="none"), out, screened=corpus)
    assert certify(out).values_digest is None
    assert not (out / VALUES).exists()
    shutil.copy(run / VALUES, out / VALUES)
    assert VALUES in str(verify(out / "certificate.json"))
    assert command(["verify", str(out)]) == 4


def test_an_export_has_the_table_and_is_verified(run: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "exported")
    assert (tmp_path / "exported" / VALUES).read_bytes() == (run / VALUES).read_bytes()
    assert verify(tmp_path / "exported/certificate.json") == []
    (tmp_path / "exported" / VALUES).write_bytes(b"{}")
    assert verify(tmp_path / "exported/certificate.json")


# Runs that are stopped


@pytest.fixture(scope="module")
def straight(corpus: ScreenedCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a stored noise seed that nobody stopped."""
    out = tmp_path_factory.mktemp("straight") / "run"
    train(config(noise=7), out, screened=corpus)
    return out


@pytest.mark.parametrize("step", [1, 3, 6])
def test_a_run_that_was_stopped_comes_to_the_same_table_and_model(
    corpus: ScreenedCorpus, straight: Path, tmp_path: Path, step: int
) -> None:
    """After the table and before the first checkpoint, in the phase that fills, and behind a checkpoint."""
    broken_off(config(noise=7), tmp_path, corpus, step)
    assert (tmp_path / VALUES).read_bytes() == (straight / VALUES).read_bytes()
    train(config(noise=7), tmp_path, screened=corpus, resume=True)
    assert (tmp_path / VALUES).read_bytes() == (straight / VALUES).read_bytes()
    assert file_digest(tmp_path / WEIGHTS) == file_digest(straight / WEIGHTS)


@pytest.mark.parametrize("step", [1, 6])
def test_with_secret_noise_the_table_is_released_once(corpus: ScreenedCorpus, tmp_path: Path, step: int) -> None:
    broken_off(config(), tmp_path, corpus, step)
    first = (tmp_path / VALUES).read_bytes()
    train(config(), tmp_path, screened=corpus, resume=True)
    assert (tmp_path / VALUES).read_bytes() == first
    assert [row["lost"] for row in certify(tmp_path).ledger_steps] == [0, 0, 0]


def test_a_table_that_cannot_be_repeated_is_paid_twice(
    corpus: ScreenedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_off(config(), tmp_path, corpus, 1)
    first, real = (tmp_path / VALUES).read_bytes(), engine.environment
    monkeypatch.setattr(engine, "environment", lambda *facts: {**(real(*facts) or {}), "the machine": "another"})
    train(config(), tmp_path, screened=corpus, resume=True)
    certificate = certify(tmp_path)
    assert (tmp_path / VALUES).read_bytes() != first
    (event, times) = next(
        (e, n) for e, n in Ledger.read(tmp_path / "ledger.jsonl").counts().items() if isinstance(e, ThresholdedCounts)
    )
    assert times == 2
    assert next(row for row in certificate.ledger_steps if row["phase"] == PHASE)["lost"] == 1
    twice = Ledger.read(tmp_path / "ledger.jsonl").counts()
    assert certificate.epsilon_spent == pytest.approx(compose(twice, "substitution").epsilon(1e-2), rel=1e-6)
    assert certificate.epsilon_spent > compose({**twice, event: 1}, "substitution").epsilon(1e-2)
    assert verify(tmp_path / "certificate.json") == []


# Options


def test_alternating_rounds_release_one_table(corpus: ScreenedCorpus, tmp_path: Path) -> None:
    train(config(schedule="alternate"), tmp_path, screened=corpus)
    assert Ledger.read(tmp_path / "ledger.jsonl").phases()[PHASE] == 1
    certify(tmp_path)
    assert verify(tmp_path / "certificate.json") == []


def test_without_loss_on_fills_the_other_masks_stay(corpus: ScreenedCorpus, tmp_path: Path) -> None:
    plans = {loss: make_plan(config(fill_loss=loss), corpus, b"salt") for loss in (True, False)}
    fills = {loss: next(p.fill for p in plan.phases if p.name == "public") for loss, plan in plans.items()}
    assert [(f.longest, f.loss, f.table) for f in fills.values() if f] == [(3, True, PHASE), (0, False, PHASE)]
    train(config(fill_loss=False), tmp_path, screened=corpus)
    certify(tmp_path)
    assert verify(tmp_path / "certificate.json") == []


def test_values_without_skeletons_to_put_them_in_are_refused(corpus: ScreenedCorpus, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="puts values into skeletons"):
        train(config(skeletons=False), tmp_path, screened=corpus)


def test_plan_says_what_the_table_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    screen(
        Corpus.from_texts(TEXTS * 20),
        policy("phone"),
        policy("conservative"),
        unit="document",
        out=tmp_path / "screened",
    )
    words = ["plan", "crt", str(tmp_path / "screened"), "--tokenizer", "bytes", "--epsilon", "3", "--delta", "8e-5"]
    sets = ["options.fill=learned", "options.private.steps=20", "options.private.batch=40"]
    assert command([*words, *(word for each in sets for word in ("-s", each))]) == 0
    said = " ".join("".join(capsys.readouterr()).split())
    assert "of it the table of values alone: ε = 1.729 at δ = 8e-05" in said
    assert "σ of phase private is" in said
    assert "without" in said


def test_a_target_that_the_table_alone_exceeds_is_refused(corpus: ScreenedCorpus, tmp_path: Path) -> None:
    with pytest.raises(GuaranteeError, match="released beside the steps spends"):
        train(config(epsilon=0.3), tmp_path / "run", screened=corpus)
    assert not (tmp_path / "run" / VALUES).exists()
