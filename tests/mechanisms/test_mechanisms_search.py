"""Batch, steps and σ from a target and a budget of compute."""

from __future__ import annotations

import json
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import taciturn as tt
from taciturn.cli.main import run
from taciturn.errors import GuaranteeError, UsageError
from taciturn.mechanisms.config import parse
from taciturn.mechanisms.search import CLOSE, LEAST, Candidate, best_first, search
from taciturn.mechanisms.settings import RunConfig, load_config
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.calibrate import noise_multiplier
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.screening.corpus.screened import ScreenedCorpus

RECORDS, DELTA = 4000, 1e-5


@pytest.fixture(scope="module")
def screened(tmp_path_factory: pytest.TempPathFactory) -> ScreenedCorpus:
    texts = [f"Call me at 555 0{i:04}." for i in range(RECORDS)]
    folder = tmp_path_factory.mktemp("search") / "screened"
    tt.screen(tt.read(texts), tt.policy("pii"), tt.policy("all-private"), unit="document", dedup="none", out=folder)
    return tt.load_screened(folder)


def asked(mechanism: str = "dpsgd", epsilon: float | None = 3.0, **options: Any) -> RunConfig:
    raw = {
        "mechanism": mechanism,
        "corpus": "c",
        "epsilon": epsilon,
        "delta": DELTA,
        "model": {"name": "lstm", "tokenizer": "bytes"},
    }
    return parse(RunConfig, {**raw, "options": options}, "plan")


def test_the_plan_taken_is_the_one_an_exhaustive_look_takes(screened: ScreenedCorpus) -> None:
    """Over every doubling of the steps, with σ calibrated by itself and the ratio written out."""
    reads = 8 * 1024
    found = search(asked(), screened, reads)
    ratios = {}
    for steps in (20, 40, 80, 160, 320, 640, 1280, 2560):
        batch = reads // steps
        sigma = noise_multiplier(3.0, DELTA, batch / RECORDS, steps, "substitution")
        ratios[steps] = sigma / batch / sqrt(steps)
    assert {each.steps: each.ratio for each in found} == pytest.approx(ratios, rel=1e-9)
    lowest = min(ratios.values())
    assert found[0].steps == max(steps for steps, each in ratios.items() if each <= 1.05 * lowest)


def test_every_plan_keeps_the_target_and_reads_no_more_than_asked(screened: ScreenedCorpus) -> None:
    for each in search(asked(), screened, 5000):
        assert each.batch * each.steps <= 5000
        event = PoissonGaussian(each.batch / RECORDS, each.noise_multiplier)
        assert compose({event: each.steps}, "substitution").epsilon(DELTA) <= 3.0


def test_no_text_is_read(screened: ScreenedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every text of the corpus another one of another length, the search finds the same."""
    before = [each.to_json() for each in search(asked(), screened, 4096)]
    monkeypatch.setattr(ScreenedCorpus, "texts", lambda *_: ["x" * 7] * RECORDS)
    assert [each.to_json() for each in search(asked(), screened, 4096)] == before


def test_a_batch_larger_than_the_corpus_is_left_out(screened: ScreenedCorpus) -> None:
    found = search(asked(), screened, 50 * RECORDS)
    assert all(each.batch <= RECORDS for each in found)
    assert LEAST not in {each.steps for each in found}


@given(st.lists(st.floats(1e-6, 10), min_size=1, max_size=9))
def test_of_plans_that_are_close_the_one_with_most_steps_comes_first(ratios: list[float]) -> None:
    config = asked()
    tried = [Candidate(config, 1, 2**i, 1.0, each) for i, each in enumerate(ratios)]
    found = best_first(tried)
    assert sorted(each.steps for each in found) == [each.steps for each in tried]
    assert found[0].ratio <= CLOSE * min(ratios)
    assert not any(each.steps > found[0].steps and each.ratio <= CLOSE * min(ratios) for each in tried)


@pytest.mark.parametrize(
    ("config", "reads", "said"),
    [
        (asked(epsilon=None), 4096, "needs a target"),
        (asked(steps=3), 4096, "leave steps out"),
        (asked("crt", private={"rate": 0.1}), 4096, "leave private.rate out"),
        (asked("dpsgd", rate=0.1, noise_multiplier=2.0), 4096, "leave noise_multiplier and rate out"),
        (asked("uedp"), 4096, "no batch and steps"),
        (asked(), 10, "do not suffice for 20 steps"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_is_refused(screened: ScreenedCorpus, config: RunConfig, reads: int, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        search(config, screened, reads)


def test_where_no_plan_can_be_made_its_reason_is_given(screened: ScreenedCorpus) -> None:
    with pytest.raises(GuaranteeError, match="no plan that reads 21 units"):
        search(asked(epsilon=1e-4), screened, 21)


def test_the_command_writes_the_plan_it_took(
    screened: ScreenedCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, line = tmp_path / "run.toml", ["plan", "dpsgd", str(screened.path), "--tokenizer", "bytes", "--epsilon", "3"]
    line += ["--delta", str(DELTA), "--search", "4096"]
    assert run([*line, "-o", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "taken" in shown
    assert "plans that read as much" in shown
    best = search(asked(), screened, 4096)[0]
    options = load_config(out).options
    assert (options["batch"], options["steps"]) == (best.batch, best.steps)
    assert run([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["search"][0] == pytest.approx(best.to_json())
