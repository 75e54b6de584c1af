"""Troubles that users of other libraries reported, by their ids in the project's list of field cases, done right."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import ADAM, DATA, SGD, TOKENIZER, model, plan, private, public, run, weights
from torch.utils.data import DataLoader, WeightedRandomSampler

from taciturn.errors import GuaranteeError, Interrupted, MismatchError, UsageError
from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.cost import against_target, cost_lines, planned_epsilon, running
from taciturn.mechanisms.registry import guarantees
from taciturn.mechanisms.run import make_plan, train
from taciturn.mechanisms.settings import RunConfig
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.privacy.accounting.rounding import up
from taciturn.privacy.certificates.certificate import issue
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.readers import Corpus
from taciturn.training.engine import Options, fit
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import ClipNoise
from taciturn.training.plan import Target
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.randomness.sampling import draw
from taciturn.training.samplers import Poisson, Shuffle
from taciturn.training.state.metrics import Progress


def corpus(private_texts: int = 40) -> ScreenedCorpus:
    texts = ["good morning"] * 6 + [f"my number is (555) 010-77{i:02}, ask for Zed" for i in range(private_texts)]
    return screen(Corpus.from_texts(texts), policy("phone"), policy("conservative"))


def config(epsilon: float | None = 3.0, noise: int | str = 3, **private_steps: Any) -> RunConfig:
    return RunConfig(
        mechanism="crt",
        corpus=Path("memory"),
        model={"name": "lstm", "tokenizer": "bytes", "options": {"hidden_size": 8, "embedding_size": 8}},  # type: ignore[arg-type]
        epsilon=epsilon,
        delta=1e-3,
        options={
            "public": {"epochs": 2, "batch_size": 16},
            "private": {"steps": 8, "batch": 4, "clip": 0.7, **private_steps},
        },
        seeds={"noise": noise},  # type: ignore[arg-type]
        train={"checkpoint_steps": 4},  # type: ignore[arg-type]
    )


def test_p01_an_empty_poisson_draw_is_a_step_with_noise_and_a_ledger_line(tmp_path: Path) -> None:
    """30 records at rate .02: (.98)^30 = 55 % of the draws are empty."""
    phase = Phase("private", ("private",), len(DATA), Poisson(0.02), ClipNoise(0.5, 1.0), 20, SGD)
    p = plan(phase, repeat=1)
    drawn = [len(draw(step, 2, SecretSource(5))) for step in p.unroll()]
    assert drawn.count(0) >= 5
    moves = []
    m = model(1)
    before = weights(m).clone()

    def follow(_: Progress) -> None:
        moves.append(float((weights(m) - before).norm()))
        before.copy_(weights(m))

    run(p, tmp_path, m, notify=follow)
    n = len(before)
    expected = SGD.lr * 1.0 * 0.5 / (0.02 * len(DATA)) * n**0.5  # lr·σC/(qN)·√n: noise alone, over the constant divisor
    for moved, size in zip(moves, drawn, strict=True):
        if size == 0:
            assert moved == pytest.approx(expected, rel=0.1)  # ± 1/√(2n) = 1 %
    assert Ledger.read(tmp_path / "ledger.jsonl").counts() == {PoissonGaussian(0.02, 1.0): 20}


def test_p02_a_foreign_sampler_or_loader_is_refused_and_the_guarantee_named(tmp_path: Path) -> None:
    class Biased(Poisson):
        """Says one rate, and may draw at another."""

    weighted = WeightedRandomSampler([1.0] * len(DATA), 16)
    for sampler in (weighted, DataLoader(range(9), batch_size=3), Biased(0.1), 0.1, None):  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=r"ε of a run holds for records drawn independently at the rate"):
            Phase("private", ("private",), len(DATA), sampler, ClipNoise(1.0, 1.0), 1, SGD)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"Amplification by sampling.*ε"):
        Phase("private", ("private",), len(DATA), Shuffle(4), ClipNoise(1.0, 1.0), 1, SGD)
    loader: Any = DataLoader([torch.zeros(3)] * len(DATA), batch_size=3)
    with pytest.raises(UsageError, match=r"DataLoader.*rate the accountant does not know"):
        fit(plan(private()), model(), TOKENIZER, {"private": loader}, tmp_path, Options())
    assert not (tmp_path / "ledger.jsonl").exists()


@pytest.mark.parametrize("stop", [3, 8, 14])
def test_p05_stopped_and_whole_runs_report_the_same_epsilon_from_one_checkpoint(tmp_path: Path, stop: int) -> None:
    screened = corpus()
    train(config(), tmp_path / "whole", screened=screened)

    def interrupt(p: Progress) -> None:
        if p.step.number + 1 == stop:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        train(config(), tmp_path / "part", screened=screened, notify=interrupt)
    held = torch.load(sorted((tmp_path / "part/checkpoints").glob("step-*.pt"))[-1], weights_only=True)
    assert {"model", "optimisers", "position", "plan"} <= held.keys()
    assert held["position"][:2] == (stop, stop)  # updates, which are the sampler's position, and ledger lines
    train(config(), tmp_path / "part", screened=screened, resume=True)
    whole, part = certify(tmp_path / "whole"), certify(tmp_path / "part")
    assert whole.spent == part.spent
    assert whole.ledger_steps == part.ledger_steps
    with pytest.raises(MismatchError, match="corpus_key"):
        train(config(), tmp_path / "part", screened=corpus(41), resume=True)
    with pytest.raises(MismatchError, match="phases"):
        train(config(clip=0.8), tmp_path / "part", screened=screened, resume=True)


@pytest.mark.parametrize("target", [0.5, 3.0, 8.0])
def test_p09_planned_and_spent_come_from_one_accountant_and_stay_within_the_target(
    tmp_path: Path, target: float
) -> None:
    settings = config(epsilon=target)
    screened = corpus()
    planned = planned_epsilon(make_plan(settings, screened))
    shown: list[Progress] = []
    train(settings, tmp_path, screened=screened, notify=shown.append)
    certificate = certify(tmp_path)
    assert planned == shown[-1].epsilon
    assert up(planned) == certificate.epsilon_spent
    assert 0.99 * target <= certificate.epsilon_spent <= target
    assert max(p.epsilon or 0.0 for p in shown) == shown[-1].epsilon


def test_p09_a_plan_above_its_target_ends_with_guarantee_not_met(tmp_path: Path) -> None:
    with pytest.raises(GuaranteeError, match=r"would spend ε = .* where the target is 3") as raised:
        train(config(noise_multiplier=0.4), tmp_path, screened=corpus())
    assert raised.value.exit_code == 4
    assert not (tmp_path / "ledger.jsonl").exists()


def test_p11_the_loop_runs_the_planned_steps_and_no_more(tmp_path: Path) -> None:
    p = plan(public(3), private(steps=4), repeat=2)
    run(p, tmp_path)
    assert Ledger.read(tmp_path / "ledger.jsonl").counts() == p.events()
    before = (tmp_path / "ledger.jsonl").read_bytes()
    run(p, tmp_path, resume=True)
    assert (tmp_path / "ledger.jsonl").read_bytes() == before
    assert list(p.unroll(p.total_steps)) == []


def test_p11_a_step_beyond_the_plan_is_refused_when_certifying(tmp_path: Path) -> None:
    train(config(), tmp_path, screened=corpus())
    path = tmp_path / "ledger.jsonl"
    *steps, _ = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(steps))  # the line that ends the run is in the way
    with Ledger.resume(path) as ledger:
        ledger.append(99, "private", next(e for e in ledger.counts() if isinstance(e, PoissonGaussian)))
    with pytest.raises(GuaranteeError, match=r"phase private: the plan says 8 ×"):
        issue(tmp_path, guarantees)


def test_p11_the_accountant_has_no_cap_of_its_own() -> None:
    """806 records, one at a time, eight epochs; and a million steps. ε grows, and nothing gives up."""
    eight = compose({PoissonGaussian(1 / 806, 1.0): 8 * 806}, "substitution").epsilon(1e-5)
    million = compose({PoissonGaussian(1 / 806, 1.0): 10**6}, "substitution").epsilon(1e-5)
    assert 0 < eight < million < float("inf")
    private_steps = private(rate=1 / 806, steps=20_000, n=806)
    so_far = running(replace(plan(private_steps, repeat=1), target=Target(8.0, 1e-5)))
    assert (so_far(20_000) or 0) >= (so_far(1) or 0) > 0


def test_p13_plan_and_certificate_show_all_that_epsilon_depends_on(tmp_path: Path) -> None:
    screened = corpus()
    made = make_plan(config(), screened)
    train(config(), tmp_path, screened=screened)
    certificate = certify(tmp_path)
    for described in (json.loads((tmp_path / "plan.json").read_text()), certificate.plan):
        phase = described["phases"][-1]
        assert phase["sampler"] == {"name": "Poisson", "rate": pytest.approx(4 / 40)}
        assert phase["rule"]["clip"] == 0.7
        assert phase["rule"]["noise_multiplier"] == phase["event"]["noise_multiplier"] > 0
        assert phase["steps"] == 8
        assert described["target"] == {"epsilon": 3.0, "delta": 1e-3}
    assert certificate.target == {"epsilon": 3.0, "delta": 1e-3}
    assert cost_lines(made)[-1] in {
        f"target ε = 3, spent {e} ({share} %)" for e in (2.999, 3) for share in (99.9, 100.0)
    }


def test_p13_a_target_that_is_not_used_up_comes_with_its_reason() -> None:
    said = "\n".join(cost_lines(make_plan(config(noise_multiplier=5.0), corpus())))
    assert "noise_multiplier = 5 was set; leave it out" in said
    assert "least noise_multiplier" in against_target(1e9, 1e6, [0.01])
    assert against_target(3.0, 0.0, []).endswith("no step has noise")


@pytest.mark.parametrize("stop", [1, 6, 11])
def test_p33_the_same_seed_gives_the_same_bits_with_and_without_a_stop(tmp_path: Path, stop: int) -> None:
    """Shuffled order, dropout and Adam's moments all go on where they were."""
    p = plan(public(6, ADAM), private(steps=6), repeat=1)
    straight = weights(run(p, tmp_path / "straight"))
    again = weights(run(p, tmp_path / "again"))
    assert torch.equal(straight, again)
    torch.manual_seed(stop)

    def interrupt(progress: Progress) -> None:
        if progress.step.number + 1 == stop:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        run(p, tmp_path / "part", notify=interrupt)
    torch.rand(7)
    assert torch.equal(weights(run(p, tmp_path / "part", resume=True)), straight)
