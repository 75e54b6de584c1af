"""Every trainable tensor moves, or the run stops by name; what cannot move at once is given a second update."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import SGD, model, plan, private, public, run
from torch import nn

from taciturn.errors import TaciturnError
from taciturn.training.schedules import Optimiser
from taciturn.training.state.stuck_tensors import fingerprint, to_watch, watched


@pytest.mark.parametrize("make", [lambda: public(3), lambda: private(steps=3)])
def test_a_tensor_that_takes_no_part_stops_the_run_by_name(tmp_path: Path, make: Any) -> None:
    m = model()
    m.extra = nn.Linear(2, 2)
    with pytest.raises(TaciturnError, match=r"extra\.(weight|bias)"):
        run(plan(make()), tmp_path, m)


class Adapter(nn.Module):
    """x + B(A(x)) on the embedding, B zero, as LoRA starts."""

    def __init__(self, base: nn.Embedding, alive: bool = True) -> None:
        super().__init__()
        self.base, self.A, self.B = base, nn.Linear(8, 2, bias=False), nn.Linear(2, 8, bias=False)
        nn.init.zeros_(self.B.weight)
        if not alive:
            nn.init.zeros_(self.A.weight)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x: torch.Tensor = self.base(ids)
        return x + self.B(self.A(x))


@pytest.mark.parametrize("optimiser", [SGD, Optimiser("adamw", 0.01), Optimiser("adam", 1e-4)])
def test_a_zero_first_gradient_may_move_by_the_second_update(tmp_path: Path, optimiser: Optimiser) -> None:
    m = model().requires_grad_(False)
    m.embedding = Adapter(m.embedding)
    before = m.embedding.A.weight.detach().clone()
    run(plan(public(3, optimiser), repeat=1), tmp_path, m)
    assert not torch.equal(before, m.embedding.A.weight)


def test_a_gradient_that_stays_exactly_zero_stops_the_run(tmp_path: Path) -> None:
    m = model().requires_grad_(False)
    m.embedding = Adapter(m.embedding, alive=False)  # A and B zero: neither can ever move
    with pytest.raises(TaciturnError, match=r"exactly zero.*embedding\.A\.weight.*embedding\.B\.weight"):
        run(plan(public(3), repeat=1), tmp_path, m)


def test_an_optimiser_that_holds_other_tensors_is_found_out() -> None:
    m = nn.Linear(3, 2)
    still = to_watch(m)
    m(torch.ones(3)).sum().backward()
    optimiser = torch.optim.SGD([p.detach().clone().requires_grad_() for p in m.parameters()], lr=0.1)
    with pytest.raises(TaciturnError, match=r"did not move.*bias, weight"), watched(m, still, 0.1):
        optimiser.step()


def test_an_update_below_precision_is_a_warning_not_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """The gradient of an attention key's bias is rounding noise: no loss depends on it, and it need not move."""
    m = nn.Linear(3, 2)
    nn.init.ones_(m.bias)
    m(torch.ones(3)).sum().backward()
    m.bias.grad = torch.full((2,), 1e-11)
    still = to_watch(m)
    with caplog.at_level(logging.WARNING, "taciturn"), watched(m, still, 0.1):
        torch.optim.SGD(m.parameters(), lr=0.1).step()
    assert not still
    assert "precision of the weights: bias" in caplog.text


def test_a_rate_too_small_for_the_weights_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(TaciturnError, match=r"below the precision.*raise the learning rate"):
        run(plan(public(3, Optimiser("sgd", 1e-40)), repeat=1), tmp_path)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_fingerprints_see_what_sums_do_not(dtype: torch.dtype) -> None:
    zero = torch.zeros(300_000, dtype=dtype)
    moved = zero.clone().add_(0.001)  # Adam's first step on a zero bias; its exclusive-or is that of zeros
    swapped = torch.arange(300_000).to(dtype)
    assert len(fingerprint(zero)) == 2
    assert not torch.equal(fingerprint(zero), fingerprint(moved))
    assert not torch.equal(fingerprint(swapped), fingerprint(swapped.flip(0)))
    for i in (0, 77_777, 299_999):
        one = zero.clone()
        one[i] = torch.finfo(dtype).smallest_normal
        assert not torch.equal(fingerprint(one), fingerprint(zero))
