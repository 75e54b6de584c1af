"""The moving average of the weights: a slow loop's numbers, evaluated and exported, and nothing else changed by it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny import VALID, model, plan, run, weights
from torch import nn

from taciturn.errors import UsageError
from taciturn.training.state.average import decay_at
from taciturn.training.state.metrics import Progress


@pytest.mark.parametrize("decay", [0.5, 0.999])
def test_the_average_is_that_of_a_slow_loop_and_is_what_comes_out(tmp_path: Path, decay: float) -> None:
    p, m = plan(average=decay), model(1)
    slow = weights(m).double()

    def follow(progress: Progress) -> None:
        t = progress.step.number + 1
        d = decay_at(decay, t)
        slow.mul_(d).add_(weights(m).double(), alpha=1 - d)

    run(p, tmp_path, m, notify=follow)
    torch.testing.assert_close(weights(m).double(), slow, rtol=1e-5, atol=1e-7)
    last = run(plan(), tmp_path / "last")
    assert not torch.allclose(weights(last), weights(m), atol=1e-4)


def test_evaluations_see_the_average_and_training_does_not(tmp_path: Path) -> None:
    seen: list[Progress] = []
    averaged = run(plan(average=0.9), tmp_path / "a", notify=seen.append)
    assert seen[-1].utility == VALID.utility(averaged)
    losses = [p.loss for p in seen]
    seen.clear()
    run(plan(), tmp_path / "b", notify=seen.append)
    assert losses == [p.loss for p in seen]


def test_the_average_is_of_trained_tensors_only_in_at_least_float32() -> None:
    from taciturn.training.state.average import Average

    m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).bfloat16()
    m[0].requires_grad_(False)
    average = Average(m, 0.999)
    assert {name: t.dtype for name, t in average.weights.items()} == {
        "1.weight": torch.float32,
        "1.bias": torch.float32,
    }
    before = m[1].weight.detach().clone()
    with torch.no_grad():
        m[1].weight.add_(1.0)
    moved = m[1].weight.detach().clone()
    for t in range(1, 4):
        average.update(m, 10**6)
        expected = before.float() + (moved.float() - before.float()) * (1 - 0.999**t)
        torch.testing.assert_close(average.weights["1.weight"], expected)
    with average.applied(m):
        assert torch.equal(m[1].weight, average.weights["1.weight"].bfloat16())
    assert torch.equal(m[1].weight, moved)


def test_a_plan_with_an_average_is_another_plan() -> None:
    assert len({plan().key, plan(average=0.9).key, plan(average=0.99).key}) == 3
    with pytest.raises(UsageError, match="average"):
        replace(plan(), average=1.0)


def test_a_configuration_reaches_average_keep_and_events(tmp_path: Path) -> None:
    """From run.toml to the exported model: its weights are the average, and the plan says so."""
    from safetensors.torch import load_file

    from taciturn.mechanisms.run import train
    from taciturn.mechanisms.settings import RunConfig
    from taciturn.screening.pipeline import screen
    from taciturn.screening.policies import policy
    from taciturn.text.readers import Corpus

    texts = ["hello there"] * 6 + [f"my number is (555) 010-77{i:02}" for i in range(9)]
    screened = screen(Corpus.from_texts(texts), policy("phone"), policy("conservative"))
    raw = {
        "mechanism": "crt",
        "corpus": Path("memory"),
        "model": {"name": "lstm", "tokenizer": "bytes", "options": {"hidden_size": 8, "embedding_size": 8}},
        "delta": 1e-3,
        "options": {"public": {"epochs": 1}, "private": {"steps": 4, "batch": 4, "noise_multiplier": 1.5}},
        "seeds": {"noise": 3},
        "train": {"average": 0.9, "keep": 1, "checkpoint_steps": 2, "report_to": ["tensorboard"]},
    }
    train(RunConfig.model_validate(raw), tmp_path, screened=screened)
    assert json.loads((tmp_path / "plan.json").read_text())["average"] == 0.9
    (last,) = (tmp_path / "checkpoints").glob("step-*.pt")
    held = torch.load(last, weights_only=True)
    exported = load_file(tmp_path / "model" / "model.safetensors")
    for name, average in held["average"].items():
        assert torch.equal(exported[name], average)
        assert not torch.equal(exported[name], held["model"][name])
    assert any((tmp_path / "tensorboard").iterdir())
