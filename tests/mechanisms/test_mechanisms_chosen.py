"""A run that is certified as the best of a number drawn beforehand: what must hold for it, and what is never told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from taciturn.errors import DataError, GuaranteeError, UsageError
from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.corpus_history import number_of_runs
from taciturn.mechanisms.registry import verify
from taciturn.mechanisms.run import train
from taciturn.mechanisms.settings import RunConfig
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.privacy.accounting.rounding import up
from taciturn.privacy.certificates.certificate import load_json, write_json
from taciturn.privacy.certificates.history import RUNS, Drawn, Line, append, drawn, read_history
from taciturn.privacy.guarantees import selection_law
from taciturn.privacy.guarantees.private_selection import NegativeBinomial, Poisson, select
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.readers import Corpus

TEXTS = ["hello there"] * 6 + [f"my number is (555) 010-77{i:02}, ask for Zed Quill" for i in range(9)]
LAW = NegativeBinomial(3.0)


def screened(out: Path) -> ScreenedCorpus:
    return screen(Corpus.from_texts(TEXTS), policy("phone"), policy("conservative"), out=out)


def config(corpus: Path, lr: float = 1e-3, epsilon: float | None = None) -> RunConfig:
    noise = {} if epsilon else {"noise_multiplier": 1.5}
    options: dict[str, Any] = {"steps": 4, "batch": 4, "optimiser": {"lr": lr}, **noise}
    model: Any = {"name": "lstm", "tokenizer": "bytes", "options": {"hidden_size": 8, "embedding_size": 8}}
    return RunConfig(mechanism="dpsgd", corpus=corpus, model=model, delta=1e-3, epsilon=epsilon, options=options)


def test_the_number_is_drawn_once_before_any_run(tmp_path: Path) -> None:
    assert not (tmp_path / RUNS).exists()
    first = number_of_runs(tmp_path, Poisson(40.0))
    assert [number_of_runs(tmp_path, Poisson(40.0)) for _ in range(5)] == [first] * 5
    kept = drawn(tmp_path)
    assert kept is not None
    assert (kept.runs, kept.drawn) == (first, {"law": "poisson", "mean": 40.0})
    assert (tmp_path / RUNS).stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="a Poisson law of mean 40 already"):
        number_of_runs(tmp_path, Poisson(39.0))


def line(key: str, noise: float = 1.5, mechanism: str = "dpsgd", state: Any = "finished") -> Line:
    event = PoissonGaussian(4 / len(TEXTS), noise).to_json()
    fields = {"date": "2026-01-01T00:00:00+00:00", "path": f"/runs/{key}", "mechanism": mechanism, "seeded": False}
    return Line(key=key, state=state, relation="substitution", phases=(("private", "record", event, 4),), **fields)


def test_after_a_run_there_is_nothing_left_to_draw(tmp_path: Path) -> None:
    append(tmp_path, line("a"))
    with pytest.raises(UsageError, match="1 runs were made on this corpus before"):
        number_of_runs(tmp_path, LAW)


def test_the_best_of_a_drawn_number_of_runs_is_certified_at_the_price_of_choosing(tmp_path: Path) -> None:
    """Two runs of different learning rates on a corpus for which two were drawn; then everything that must not be."""
    folder, run = tmp_path / "screened", tmp_path / "run-b"
    corpus = screened(folder)
    append(folder, Drawn(drawn=selection_law.to_json(LAW), runs=2, date="2026-01-01T00:00:00+00:00"))
    train(config(folder, 1e-2), run, screened=corpus)
    with pytest.raises(GuaranteeError, match="2 runs were drawn and 1 made"):
        certify(run, selected=True)
    append(folder, line("other"))  # the other learning rate; its cost is that of this one
    certificate = certify(run, selected=True)
    assert not verify(run / "certificate.json")

    said = certificate.other_runs
    assert (said["known"], said["counted_by"]) == (None, "selection")
    noisy = PoissonGaussian(4 / len(TEXTS), 1.5)
    for stated in said["together"]:
        alone = compose({noisy: 4}, stated["relation"])
        assert stated["epsilon"] == up(select(alone, LAW, 1e-3).epsilon) > alone.epsilon(1e-3)
        assert stated["status"] == "conditional"
    published = json.dumps([load_json(run / name) for name in ("certificate.json", "evidence.json", "plan.json")])
    assert '"other_steps": []' in published
    assert "run-b" not in published
    evidence = load_json(run / "evidence.json")
    write_json(run / "evidence.json", evidence | {"selection": selection_law.to_json(NegativeBinomial(2.0))})
    assert any(m.field.startswith("other_runs.together[0]") for m in verify(run / "certificate.json"))

    *without, _ = (folder / RUNS).read_bytes().splitlines(keepends=True)
    for more, says in (
        ((line("other"), line("third")), "2 runs were drawn and 3 made"),
        ((line("other", state="begun"),), "did not end"),
        ((line("other", noise=1.4),), "other ones than this run's have: other"),
        ((line("other", mechanism="crt"),), "other ones than this run's have: other"),
    ):
        (folder / RUNS).write_bytes(b"".join(without))
        for each in more:
            append(folder, each)
        with pytest.raises(GuaranteeError, match=says):
            certify(run, selected=True)


def test_without_a_draw_only_the_price_of_all_runs_together_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "screened"
    train(config(folder), tmp_path / "run", screened=screened(folder))
    with pytest.raises(UsageError, match="no number of runs was drawn"):
        certify(tmp_path / "run", selected=True)
    late = Drawn(drawn=selection_law.to_json(LAW), runs=1, date="2026-01-01T00:00:00+00:00")
    append(folder, late)
    with pytest.raises(DataError, match="after a run"):
        certify(tmp_path / "run", selected=True)
    assert len(read_history(folder)) == 1


def test_a_target_that_the_chosen_run_exceeds_is_a_reason_against_release(tmp_path: Path) -> None:
    folder = tmp_path / "screened"
    corpus = screened(folder)
    append(folder, Drawn(drawn=selection_law.to_json(LAW), runs=1, date="2026-01-01T00:00:00+00:00"))
    train(config(folder, epsilon=3.0), tmp_path / "run", screened=corpus)
    assert certify(tmp_path / "run").release
    chosen = certify(tmp_path / "run", selected=True)
    assert not chosen.release
    assert chosen.reasons == [
        "choosing this run among others spends more than the plan's target, which the run itself keeps"
    ]
    assert not verify(tmp_path / "run" / "certificate.json")
