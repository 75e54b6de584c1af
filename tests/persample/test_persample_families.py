"""Per-record gradients against the one-by-one loop, for every family of models the engine says it trains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
)

from taciturn.errors import UsageError
from taciturn.models import precision
from taciturn.models.loss import Batch, looks_back, record_losses
from taciturn.persample.capture import captured, check_supported
from taciturn.persample.clip import clipped_sum
from taciturn.persample.premise import disagreement, verify
from taciturn.persample.sums import Sums

V, B, T = 83, 4, 9
SMALL = {"vocab_size": V, "num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 4}
BERT = SMALL | {"intermediate_size": 24, "max_position_embeddings": 40, "pad_token_id": 1}
LLAMA = SMALL | {"intermediate_size": 24, "num_key_value_heads": 2, "max_position_embeddings": 64}
DISTIL = {"vocab_size": V, "n_layers": 2, "dim": 16, "n_heads": 4, "hidden_dim": 24, "max_position_embeddings": 40}

CAUSAL: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("gpt2", {"vocab_size": V, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}),
    "llama-tied": ("llama", LLAMA | {"tie_word_embeddings": True}),
    "llama-untied": ("llama", LLAMA | {"tie_word_embeddings": False}),
    "qwen2": ("qwen2", LLAMA | {"tie_word_embeddings": True}),
    "qwen3": ("qwen3", LLAMA | {"head_dim": 4}),
    "mistral": ("mistral", LLAMA | {"sliding_window": 4}),
    "gpt_neox": ("gpt_neox", SMALL | {"intermediate_size": 24, "max_position_embeddings": 64}),
    "gpt_neox-serial": (
        "gpt_neox",
        SMALL | {"intermediate_size": 24, "max_position_embeddings": 64, "use_parallel_residual": False},
    ),
    "opt": ("opt", SMALL | {"ffn_dim": 24, "max_position_embeddings": 64, "word_embed_proj_dim": 16}),
    "opt-projected": ("opt", SMALL | {"ffn_dim": 24, "max_position_embeddings": 64, "word_embed_proj_dim": 8}),
    "phi": ("phi", SMALL | {"intermediate_size": 24, "max_position_embeddings": 64}),
}
ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("bert", BERT),
    "roberta": ("roberta", BERT | {"type_vocab_size": 1}),
    "distilbert": ("distilbert", DISTIL),
}
DROPOUTS = (
    "resid_pdrop embd_pdrop attn_pdrop hidden_dropout_prob attention_probs_dropout_prob dropout attention_dropout",
    "hidden_dropout seq_classif_dropout activation_dropout",
)
NO_DROPOUT = dict.fromkeys(" ".join(DROPOUTS).split(), 0.0)


def build(auto: Any, kind: str, options: dict[str, Any]) -> Any:
    torch.manual_seed(3)
    known = AutoConfig.for_model(kind)
    config = AutoConfig.for_model(kind, **options, **{k: v for k, v in NO_DROPOUT.items() if hasattr(known, k)})
    config.bos_token_id = config.eos_token_id = 0
    model = auto.from_config(config)
    with torch.no_grad():
        for p in model.parameters():  # norms start at 1 and biases at 0: make every term of the formulas count
            p.add_(torch.randn_like(p) * 0.05)
    return model.train()


def causal(name: str) -> Any:
    return build(AutoModelForCausalLM, *CAUSAL[name])


def padded(rows: int = B, width: int = T) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(5)
    ids = torch.randint(2, V, (rows, width), generator=g)
    lengths = torch.tensor([width, 3, width - 2, 5])[:rows]
    attention = (torch.arange(width)[None] < lengths[:, None]).long()
    return torch.where(attention > 0, ids, torch.ones_like(ids)), attention


def causal_batch() -> Batch:
    ids, attention = padded()
    weights = torch.zeros(ids.shape)
    weights[:, :-1] = attention[:, 1:]
    return Batch(ids, attention, torch.roll(ids, -1, 1), weights)


def masked_batch() -> Batch:
    ids, attention = padded()
    weights = torch.zeros(ids.shape)
    weights[:, 1] = weights[:, 2] = 1.0
    return Batch(ids, attention, torch.roll(ids, 3, 1), weights)


def classification_batch() -> Batch:
    ids, attention = padded()
    return Batch(ids, attention, ids, torch.zeros(ids.shape), torch.tensor([1, 0, 2, 1]))


def losses_of(model: Any, data: Batch) -> Callable[[slice], torch.Tensor]:
    def losses(rows: slice) -> torch.Tensor:
        names = ("input_ids", "attention", "targets", "weights")
        labels = None if data.labels is None else data.labels[rows]
        return record_losses(model, Batch(*(getattr(data, n)[rows] for n in names), labels))

    return losses


def assert_right(model: Any, data: Batch) -> None:
    worst, name = disagreement(model, losses_of(model, data), len(data))
    assert worst < 2e-5, name


@pytest.mark.parametrize("name", CAUSAL)
def test_causal_models(name: str) -> None:
    assert_right(causal(name), causal_batch())


class Masks(TorchFunctionMode):
    """What the attention kernel was given: (a mask, is_causal) of each call."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[bool, bool]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is nn.functional.scaled_dot_product_attention:
            self.seen.append((kwargs.get("attn_mask") is not None, bool(kwargs.get("is_causal"))))
        return func(*args, **kwargs)


@pytest.mark.parametrize("name", CAUSAL)
def test_padding_on_the_right_needs_no_mask_where_attention_is_causal(name: str) -> None:
    """Without one attention takes its fast kernel; the losses are those with the mask."""
    model, data = causal(name).eval(), causal_batch()
    with Masks() as kernel, torch.no_grad():
        found = record_losses(model, data)
    assert looks_back(model)
    assert set(kernel.seen) == {(False, True)} or name == "mistral", "its window of 4 needs a mask for 9 tokens"
    with torch.no_grad():
        logits = model(input_ids=data.input_ids, attention_mask=data.attention).logits.log_softmax(-1)
    want = -(logits.gather(2, data.targets[:, :, None]).squeeze(2) * data.weights).sum(1)
    torch.testing.assert_close(found, want, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", ENCODERS)
def test_who_looks_both_ways_is_told_where_padding_is(name: str) -> None:
    model, data = build(AutoModelForMaskedLM, *ENCODERS[name]).eval(), masked_batch()
    with Masks() as kernel, torch.no_grad():
        record_losses(model, data)
    assert not looks_back(model)
    assert {mask for mask, _ in kernel.seen} == {True}


def test_p04_positions_built_as_one_row_are_told_apart_by_record() -> None:
    """GPT-2 asks for positions [1, T] and adds them to every record: each record still has a gradient of its own."""
    model, data = causal("gpt2"), causal_batch()
    with captured(model, B) as tape:
        losses_of(model, data)(slice(0, B)).sum().backward()
        (positions,) = [use for use in tape.uses if use.key == "transformer.wpe.weight"]
        together = positions.squared_norms()[0].sqrt()
    single = []
    for b in range(B):
        losses_of(model, data)(slice(b, b + 1)).sum().backward()
        single.append(model.transformer.wpe.weight.grad.norm())
        model.zero_grad(set_to_none=True)
    torch.testing.assert_close(together, torch.stack(single), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ENCODERS)
def test_sequence_classification(name: str) -> None:
    kind, options = ENCODERS[name]
    model = build(AutoModelForSequenceClassification, kind, options | {"num_labels": 3})
    assert_right(model, classification_batch())


@pytest.mark.parametrize("name", ENCODERS)
def test_masked_language_models(name: str) -> None:
    kind, options = ENCODERS[name]
    assert_right(build(AutoModelForMaskedLM, kind, options), masked_batch())


@pytest.mark.parametrize("name", ["gpt2", "llama-tied", "opt", "gpt_neox"])
def test_lora(name: str) -> None:
    peft = pytest.importorskip("peft")
    model = causal(name)
    peft_model = peft.get_peft_model(
        model, peft.LoraConfig(r=3, lora_dropout=0.0, target_modules="all-linear", fan_in_fan_out=name == "gpt2")
    )
    with torch.no_grad():
        for n, p in peft_model.named_parameters():
            if "lora_B" in n:
                p.normal_(std=0.1)  # at zero the gradient of A would be zero too
    assert sum(p.requires_grad for p in peft_model.parameters()) > 4
    assert_right(peft_model, causal_batch())


@pytest.mark.parametrize("name", ["gpt2", "llama-tied", "opt"])
def test_gradient_checkpointing(name: str) -> None:
    model = causal(name)
    plain = losses_of(model, causal_batch())
    model.train()
    sums = Sums()
    with captured(model, B) as tape:
        norms = clipped_sum(model, tape, plain(slice(0, B)), 0.1, sums)
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    enable({"use_reentrant": False})
    model.train()
    again = Sums()
    with captured(model, B) as tape:
        norms_again = clipped_sum(model, tape, plain(slice(0, B)), 0.1, again)
    torch.testing.assert_close(norms, norms_again)
    for key in sums:
        torch.testing.assert_close(again[key], sums[key])


@pytest.mark.parametrize("short", [0, precision.SHORT], ids=["attention too", "but for short attention"])
@pytest.mark.parametrize("name", ["gpt2", "llama-tied", "opt", "gpt_neox"])
def test_bf16_autocast_keeps_the_bound_and_stays_close(name: str, short: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "SHORT", short)
    model, data, C = causal(name), causal_batch(), 0.05
    exact = Sums()
    with captured(model, B) as tape:
        want = clipped_sum(model, tape, losses_of(model, data)(slice(0, B)), C, exact)
    with precision.autocast("cpu", torch.bfloat16):
        for b in range(B):
            sums = Sums()
            with captured(model, 1) as tape:
                norms = clipped_sum(model, tape, losses_of(model, data)(slice(b, b + 1)), C, sums)
            assert all(t.dtype == torch.float32 for t in map(sums.__getitem__, sums))
            assert torch.sqrt(sum(t.double().square().sum() for t in map(sums.__getitem__, sums))) <= C
            torch.testing.assert_close(norms[0], want[b], rtol=0.05, atol=1e-4)


def test_units_of_several_rows_are_clipped_as_one() -> None:
    """Two users with two rows each: the gradient of a user is the sum over the rows."""
    model, data = causal("llama-tied"), causal_batch()
    losses = losses_of(model, data)
    want = []
    for rows in (slice(0, 2), slice(2, 4)):
        model.zero_grad(set_to_none=True)
        losses(rows).sum().backward()
        want.append(torch.sqrt(sum(p.grad.square().sum() for p in model.parameters())))
    model.zero_grad(set_to_none=True)
    with captured(model, 4, units=2) as tape:
        norms = clipped_sum(model, tape, losses(slice(0, 4)).view(2, 2).sum(1), 1.0, Sums())
    torch.testing.assert_close(norms, torch.stack(want), rtol=1e-5, atol=1e-7)


class Shuffling(nn.Module):
    """Reverses the batch on the way: the rows of its second layer are not the records in order."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.a(x)).flip(0)
        return self.b(y).flip(0).squeeze(-1)


def test_a_model_that_reorders_records_is_refused() -> None:
    torch.manual_seed(0)
    model, x = Shuffling(), torch.randn(5, 3)
    check_supported(model)
    with pytest.raises(UsageError, match="mixes records or reorders them"):
        verify(model, lambda rows: model(x[rows]).square(), 5)


def test_a_trainable_part_outside_the_loss_is_named() -> None:
    model = nn.ModuleDict({"used": nn.Linear(3, 2), "idle": nn.Linear(3, 2)})
    with (
        captured(model, 4) as tape,
        pytest.raises(UsageError, match=r"no per-record gradient: idle\.bias, idle\.weight"),
    ):
        clipped_sum(model, tape, model["used"](torch.randn(4, 3)).sum(1), 1.0, Sums())
