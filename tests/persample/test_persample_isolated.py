"""Models in which one record would touch another's gradient are refused by name; norms that cancel are computed again."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from taciturn.errors import UsageError
from taciturn.models.lstm import LSTMConfig, LSTMForCausalLM
from taciturn.persample.capture import captured
from taciturn.persample.clip import clipped_sum
from taciturn.persample.linear import AffineUse
from taciturn.persample.sums import Sums
from taciturn.persample.tape import Tape
from taciturn.training.check import assure

V = 40


def lstm() -> Any:
    torch.manual_seed(0)
    return LSTMForCausalLM(LSTMConfig(vocab_size=V, embedding_size=8, hidden_size=8, dropout=0.1))


class Centred(nn.Module):
    """Takes the mean over the records of a pass away."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(0, keepdim=True)


class Counting(nn.Module):
    """Passes on what it gets, and keeps a running mean of it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            with torch.no_grad():
                self.mean.mul_(0.9).add_(x.mean(), alpha=0.1)
        return x


class Always(nn.Module):
    """Dropout that does not heed the mode."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(x, 0.3, training=True)


class Norm(nn.Module):
    """Batch statistics over the features of [B, T, d]."""

    def __init__(self, affine: bool, frozen: bool) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8, affine=affine)
        self.norm.requires_grad_(not frozen)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


class Expert(nn.Module):
    expert_capacity = 4

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


class Faint(nn.Module):
    """Reads a millionth of the record before, or of the one behind: a difference that rounding would hide."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        far = torch.zeros_like(x[:1])
        beside = torch.cat((far, x[:-1])) if self.step < 0 else torch.cat((x[1:], far))
        return x + 1e-6 * beside


class Looking(nn.Module):
    """Reads a millionth of the next position, which may be padding, and another record's length with it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1e-6 * nn.functional.pad(x[:, 1:], (0, 0, 0, 1))


MIXING = {
    "faint, before": (lambda: Faint(-1), "mixes records"),
    "faint, behind": (lambda: Faint(1), "mixes records"),
    "looking": (Looking, "what stands behind its end"),
    "centred": (Centred, "mixes records"),
    "counting": (Counting, r"dropout\.mean is changed by every pass"),
    "always": (Always, r"dropout \(Always\) draws random numbers"),
    "batch-norm without weights": (lambda: Norm(False, False), r"dropout\.norm \(BatchNorm1d\)"),
    "frozen batch-norm": (lambda: Norm(True, True), r"dropout\.norm \(BatchNorm1d\)"),
    "experts": (Expert, r"dropout \(Expert\) has room for 4 tokens"),
}


@pytest.mark.parametrize("name", MIXING)
def test_a_model_in_which_records_meet_is_refused_and_the_module_named(name: str) -> None:
    make, said = MIXING[name]
    model = lstm()
    model.dropout = make()
    before = {n: b.clone() for n, b in model.named_buffers()}
    state = torch.get_rng_state()
    with pytest.raises(UsageError, match=said):
        assure(model)
    assert all(torch.equal(b, before[n]) for n, b in model.named_buffers())
    assert torch.equal(torch.get_rng_state(), state)


def test_ordinary_dropout_is_no_reason_to_refuse() -> None:
    model = lstm().train()
    assert assure(model) < 1e-5
    assert model.training


def test_positions_that_follow_the_longest_record_are_refused_only_where_they_do() -> None:
    config = AutoConfig.for_model(
        "llama", vocab_size=V, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    config.max_position_embeddings = 32
    config.rope_parameters = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    model = AutoModelForCausalLM.from_config(config)
    assert assure(model, longest=32) < 1e-4
    with pytest.raises(UsageError, match="max_length = 32"):
        assure(model, longest=33)


def test_norms_that_cancel_are_computed_again() -> None:
    """Positions whose gradients nearly cancel: in float32 the Gram norm is rounding, and a clip by it bounds nothing."""
    torch.manual_seed(0)
    U, T, d, p = 3, 16, 64, 48
    x = torch.randn(U, 1, d).expand(U, T, d) + 1e-4 * torch.randn(U, T, d)
    g = torch.randn(U, T, p)
    g[:2] -= g[:2].mean(1, keepdim=True) * (1 - 1e-4)
    model = nn.Linear(d, p, bias=False)
    exact = torch.einsum("utd,utp->upd", x.double(), g.double()).flatten(1).norm(dim=1)

    def losses() -> torch.Tensor:
        return (model(x) * g).sum((1, 2))

    sums, found = Sums(), None
    with captured(model, U) as tape:
        found = clipped_sum(model, tape, losses(), 1e-3, sums)
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=0)
    assert exact[0] < exact[2] / 100  # it does cancel
    use = AffineUse("weight", x, g, False)
    tape = Tape(U, U, ("",))
    tape.add(use)
    wrong = tape.squared["weight"][0].sqrt().double()
    assert not ((wrong - exact).abs() / exact).max() < 1e-2  # float32 has nothing of it left, here not even the sign
