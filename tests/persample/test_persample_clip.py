"""Clipped per-record gradients against the obvious loop, for each architecture the engine trains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from taciturn.errors import UsageError
from taciturn.models.loss import Batch, collate, record_losses
from taciturn.models.lstm import LSTMConfig, LSTMForCausalLM
from taciturn.models.tokens import Tokens
from taciturn.persample.capture import captured, check_supported
from taciturn.persample.clip import clipped_sum
from taciturn.persample.sums import Sums

V, MASK_ID = 61, 7


def gpt2(tied: bool) -> nn.Module:
    config = AutoConfig.for_model(
        "gpt2",
        vocab_size=V,
        n_embd=16,
        n_layer=2,
        n_head=2,
        n_positions=64,
        tie_word_embeddings=tied,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    return AutoModelForCausalLM.from_config(config)


def lstm(tied: bool, layers: int = 1) -> nn.Module:
    return LSTMForCausalLM(
        LSTMConfig(vocab_size=V, embedding_size=12, hidden_size=12, num_layers=layers, tie_word_embeddings=tied)
    )


MODELS = {
    "gpt2-tied": lambda: gpt2(True),
    "gpt2-untied": lambda: gpt2(False),
    "lstm": lambda: lstm(False),
    "lstm-tied": lambda: lstm(True),
    "lstm-2-layers": lambda: lstm(False, 2),
}


def batch(lengths: list[int], seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, V, n).astype(np.int32) for n in lengths]
    tokens = Tokens(np.concatenate(rows), np.concatenate([[0], np.cumsum(lengths)]))
    return collate(tokens, np.arange(len(rows)), MASK_ID)


def one_by_one(model: nn.Module, data: Batch, C: float) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    total: dict[str, torch.Tensor] = {}
    norms = []
    for b in range(len(data)):
        single = Batch(*(getattr(data, n)[b : b + 1] for n in ("input_ids", "attention", "targets", "weights")))
        model.zero_grad(set_to_none=True)
        record_losses(model, single).sum().backward()
        grads = {n: p.grad.double() for n, p in model.named_parameters() if p.grad is not None}
        norm = torch.sqrt(sum(g.square().sum() for g in grads.values()))
        norms.append(norm)
        for n, g in grads.items():
            total[n] = total.get(n, 0) + g * min(1.0, C / max(float(norm), 1e-30))
    model.zero_grad(set_to_none=True)
    return total, torch.stack(norms)


def engine(model: nn.Module, data: Batch, C: float) -> tuple[Sums, torch.Tensor]:
    sums = Sums()
    with captured(model, len(data)) as tape:
        norms = clipped_sum(model, tape, record_losses(model, data), C, sums)
    return sums, norms


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("lengths", [[5, 9, 2, 14, 7], [40, 33]])
@pytest.mark.parametrize("C", [0.3, 1e6])
def test_equals_the_one_by_one_loop(name: str, lengths: list[int], C: float) -> None:
    torch.manual_seed(1)
    model = MODELS[name]()
    data = batch(lengths)
    want, want_norms = one_by_one(model, data, C)
    sums, norms = engine(model, data, C)
    torch.testing.assert_close(norms.double(), want_norms, rtol=1e-5, atol=1e-7)
    assert set(sums) == set(want)
    scale = max(float(g.abs().max()) for g in want.values())
    for name in sums:
        g = sums[name]
        assert float((g.double() - want[name]).abs().max()) <= 1e-5 * scale, name


@pytest.mark.parametrize("name", MODELS)
def test_one_records_clipped_norm_never_exceeds_the_bound(name: str) -> None:
    torch.manual_seed(2)
    model = MODELS[name]()
    for seed in range(20):
        C = 10.0 ** (seed % 5 - 3)
        sums, norms = engine(model, batch([3 + seed], seed), C)
        clipped = torch.sqrt(sum(g.double().square().sum() for g in map(sums.__getitem__, sums)))
        assert float(clipped) <= C
        if float(norms[0]) > C:
            assert float(clipped) >= C * (1 - 1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_left_as_it_was(name: str) -> None:
    model = MODELS[name]()
    data = batch([4, 6])
    before = model(input_ids=data.input_ids).logits
    engine(model, data, 1.0)
    assert all("forward" not in vars(m) for m in model.modules())
    assert all(p.grad is None for p in model.parameters())
    torch.testing.assert_close(model(input_ids=data.input_ids).logits, before)


def test_a_mask_only_record_adds_nothing() -> None:
    model = MODELS["gpt2-tied"]()
    rows = [np.array([0, MASK_ID], np.int32), np.array([0, 4, 5, 0], np.int32)]
    tokens = Tokens(np.concatenate(rows), np.array([0, 2, 6]))
    both, norms = engine(model, collate(tokens, np.arange(2), MASK_ID), 1.0)
    alone, _ = engine(model, collate(tokens, np.array([1]), MASK_ID), 1.0)
    assert float(norms[0]) == 0.0
    for name in both:
        torch.testing.assert_close(both[name], alone[name], rtol=1e-5, atol=1e-7)


def test_a_frozen_part_is_left_out_of_norm_and_sum() -> None:
    model = MODELS["gpt2-untied"]()
    for name, p in model.named_parameters():
        p.requires_grad_("mlp" in name or "ln_f" in name)
    data = batch([6, 9])
    want, want_norms = one_by_one(model, data, 0.1)
    sums, norms = engine(model, data, 0.1)
    torch.testing.assert_close(norms.double(), want_norms, rtol=1e-5, atol=1e-7)
    assert set(sums) == set(want)


class Odd(nn.Module):
    """Uses a weight behind its layer's back."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> Any:
        return self.layer(x) + x @ self.layer.weight


def test_what_has_no_forward_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"gain \(ParameterDict\).*Rules exist for Linear"):
        check_supported(nn.ParameterDict({"gain": nn.Parameter(torch.ones(3))}))


def test_a_raw_use_of_a_weight_is_refused_by_name() -> None:
    model = Odd()
    with captured(model, 4) as tape, pytest.raises(UsageError, match=r"layer\.weight"):
        clipped_sum(model, tape, model(torch.randn(4, 3)).square().sum(1), 1.0, Sums())


def test_a_layer_that_mixes_records_is_refused() -> None:
    model = nn.Linear(3, 3)
    with captured(model, 4) as tape:
        y = model(torch.randn(4, 3).mean(0, keepdim=True))
        with pytest.raises(UsageError, match="mixes records"):
            clipped_sum(model, tape, y.sum(1).expand(4), 1.0, Sums())


@pytest.mark.filterwarnings("ignore")  # of the compiler itself
def test_a_compiled_model_leaves_the_same_on_the_tape() -> None:
    """`torch.compile` around a model, its forwards replaced anew in each pass: no pass writes on the tape of another."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(9, 6), nn.LayerNorm(6), nn.Linear(6, 4))
    compiled = torch.compile(model, backend="eager")
    for rows in (3, 5, 3):
        ids = torch.randint(9, (rows, 7))
        found = []
        for each in (model, compiled):
            sums = Sums()
            with captured(each, rows) as tape:
                norms = clipped_sum(each, tape, each(ids).square().sum((1, 2)), 0.5, sums)
            found.append((norms, {key.removeprefix("_orig_mod."): sums[key] for key in sums}))
        (want_norms, want), (norms, made) = found
        torch.testing.assert_close(norms, want_norms)
        assert made.keys() == want.keys()
        for key in want:
            torch.testing.assert_close(made[key], want[key])
