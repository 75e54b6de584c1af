"""Optimisers move weights as PyTorch's plain ones do, and a schedule is a function of the step alone."""

from __future__ import annotations

from dataclasses import asdict
from inspect import signature
from math import cos, pi
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers.optimization as hf
from hypothesis import given
from hypothesis import strategies as st
from tiny import plan, private, public, run, weights
from torch import nn
from transformers import SchedulerType, get_scheduler

from taciturn.errors import UsageError
from taciturn.mechanisms.config import OptimiserConfig, PrivateSteps, parse
from taciturn.training.optim import build, schedule
from taciturn.training.schedules import FEEDBACK, SCHEDULES, Optimiser

OPTIONS: dict[str, dict[str, Any]] = {
    "cosine_with_min_lr": {"min_lr_rate": 0.1},
    "cosine_warmup_with_min_lr": {"min_lr_rate": 0.1},
    "polynomial": {"power": 2.0, "lr_end": 1e-4},
    "warmup_stable_decay": {"num_decay_steps": 20, "decay_type": "1-sqrt"},
}


@pytest.mark.parametrize(
    ("config", "reference"),
    [
        (Optimiser("sgd", 0.1), lambda ps: torch.optim.SGD(ps, 0.1)),
        (Optimiser("sgd", 0.1, momentum=0.9), lambda ps: torch.optim.SGD(ps, 0.1, momentum=0.9)),
        (
            Optimiser("sgd", 0.1, momentum=0.9, nesterov=True),
            lambda ps: torch.optim.SGD(ps, 0.1, momentum=0.9, nesterov=True),
        ),
        (Optimiser("adam", 0.1), lambda ps: torch.optim.Adam(ps, 0.1, foreach=False)),
        (
            Optimiser("adam", 0.1, betas=(0.5, 0.9), eps=1e-3),
            lambda ps: torch.optim.Adam(ps, 0.1, betas=(0.5, 0.9), eps=1e-3, foreach=False),
        ),
        (Optimiser("adamw", 0.1), lambda ps: torch.optim.AdamW(ps, 0.1, weight_decay=0.0, foreach=False)),
    ],
    ids=lambda value: f"{value.name} {value.momentum} {value.nesterov}" if isinstance(value, Optimiser) else "",
)
def test_each_optimiser_is_pytorchs_own(config: Optimiser, reference: Any) -> None:
    torch.manual_seed(0)
    ours, theirs = nn.Linear(5, 3), nn.Linear(5, 3)
    theirs.load_state_dict(ours.state_dict())
    a, b = build(config, ours), reference(theirs.parameters())
    for _ in range(5):
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            p.grad = torch.randn_like(p)
            q.grad = p.grad.clone()
        a.step()
        b.step()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-7)


def test_weight_decay_spares_vectors_and_frozen_tensors_are_left_out() -> None:
    m = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    m[0].weight.requires_grad_(False)
    groups = build(Optimiser(weight_decay=0.1), m).param_groups
    assert [(len(g["params"]), g["weight_decay"]) for g in groups] == [(1, 0.1), (2, 0.0)]
    with pytest.raises(UsageError, match="no trainable parameter"):
        build(Optimiser(), m.requires_grad_(False))


def test_present_configurations_keep_their_curve() -> None:
    """Warm-up from 1/w, full rate at its end; then constant, or to 0 after the last step by a line or half a cosine."""

    def curve(name: str, warmup: float, t: int, steps: int) -> float:
        warm = int(warmup * steps)
        if t < warm:
            return (t + 1) / warm
        left = 1 - (t - warm) / max(1, steps - warm)
        return {"constant": 1.0, "linear": left, "cosine": 0.5 * (1 + cos(pi * (1 - left)))}[name]

    for name in ("constant", "linear", "cosine"):
        for warmup in (0.0, 0.1, 0.37):
            rate = schedule(Optimiser(lr=0.02, schedule=name, warmup=warmup), 40)
            assert [rate(t) for t in range(40)] == pytest.approx([0.02 * curve(name, warmup, t, 40) for t in range(40)])


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_every_schedule_is_that_of_transformers(name: str) -> None:
    """Stepped as a Trainer steps it; after the warm-up the rates are equal, before it ours are one step ahead."""
    steps, warm = 100, 10
    parameter = torch.zeros(1, requires_grad=True)
    optimiser = torch.optim.SGD([parameter], lr=0.5)
    theirs = get_scheduler(name, optimiser, warm, steps, dict(OPTIONS.get(name, {})))
    rates = []
    for _ in range(steps):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        theirs.step()
    ours = schedule(Optimiser(lr=0.5, schedule=name, warmup=0.1, schedule_options=OPTIONS.get(name)), steps)
    found = [ours(t) for t in range(steps)]
    assert found[warm:] == pytest.approx(rates[warm:])
    assert all(rate > 0 for rate in found)
    if rates[0] == 0:
        assert found[: warm - 1] == pytest.approx(rates[1:warm])


@given(st.sampled_from(sorted(SCHEDULES)), st.integers(1, 60), st.floats(0, 0.9))
def test_a_rate_depends_on_the_step_alone(name: str, steps: int, warmup: float) -> None:
    config = Optimiser(schedule=name, warmup=warmup, schedule_options=OPTIONS.get(name))
    forward = schedule(config, steps)
    straight = [forward(t) for t in range(steps)]
    again = schedule(config, steps)
    assert [again(t) for t in reversed(range(steps))] == straight[::-1]
    assert all(0 <= rate <= config.lr * (1 + 1e-12) for rate in straight)


def test_all_names_and_options_of_transformers_are_known_or_refused_for_a_reason() -> None:
    assert {kind.value for kind in SchedulerType} == {*SCHEDULES, *FEEDBACK}
    for name, options in SCHEDULES.items():
        known = set(signature(hf.TYPE_TO_SCHEDULER_FUNCTION[SchedulerType(name)]).parameters)
        assert set(options) <= known, name


def test_the_loop_uses_the_schedule(tmp_path: Path) -> None:
    """A curve that stays flat ends where the constant rate does, to the bit; another curve elsewhere."""
    decay = Optimiser("sgd", 0.5, schedule="warmup_stable_decay", schedule_options={"num_decay_steps": 0})
    short = run(plan(public(4, decay), repeat=1), tmp_path / "short")
    flat = run(plan(public(4, Optimiser("sgd", 0.5)), repeat=1), tmp_path / "flat")
    assert torch.equal(weights(short), weights(flat))
    linear = run(plan(public(4, Optimiser("sgd", 0.5, schedule="linear")), repeat=1), tmp_path / "linear")
    assert not torch.equal(weights(linear), weights(flat))


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ({"name": "adamww"}, "did you mean 'adamw'"),
        ({"name": "SDG"}, "known: adam, adamw, sgd"),
        ({"schedule": "cosin"}, "did you mean 'cosine'"),
        ({"schedule": "reduce_lr_on_plateau"}, "function of the step alone"),
        ({"schedule": "polynomial", "schedule_options": {"powr": 2}}, "did you mean 'power'"),
        ({"schedule": "linear", "schedule_options": {"power": 2}}, "it takes none"),
        ({"momentum": 0.9}, "belong to sgd"),
        ({"name": "sgd", "nesterov": True}, "nesterov needs a momentum"),
        ({"betas": [0.9, 1.0]}, r"betas\.1"),
        ({"learning_rate": 1}, "unknown key 'learning_rate'"),
        ({"lr": 0}, "lr: Input should be greater than 0"),
    ],
)
def test_a_wrong_optimiser_names_what_is_known(raw: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse(OptimiserConfig, raw, "options")
    with pytest.raises(UsageError, match="optimiser"):
        parse(PrivateSteps, {"optimiser": raw}, "options of dpsgd")


def test_a_schedule_without_what_it_needs_says_so() -> None:
    with pytest.raises(UsageError, match=r"warmup_stable_decay.*num_decay_steps"):
        schedule(Optimiser(schedule="warmup_stable_decay"), 10)
    with pytest.raises(UsageError, match=r"warmup_stable_decay.*linear"):
        schedule(
            Optimiser(schedule="warmup_stable_decay", schedule_options={"num_decay_steps": 2, "decay_type": "x"}), 10
        )


def test_a_configuration_becomes_the_optimiser_it_describes() -> None:
    raw = {"name": "sgd", "momentum": 0.9, "nesterov": True, "schedule": "cosine_with_restarts"}
    config = parse(OptimiserConfig, {**raw, "schedule_options": {"num_cycles": 3}}, "options")
    assert asdict(config.build()) == {
        **asdict(Optimiser("sgd")), **raw, "schedule_options": {"num_cycles": 3},
    }  # fmt: skip
    assert plan(public(2, config.build()), private()).key != plan(public(2), private()).key
