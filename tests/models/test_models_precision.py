"""Frozen weights at half the memory: bit for bit what they were, or not at all."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from taciturn.models.hf import export, load_exported, load_model
from taciturn.models.lora import Lora, merge
from taciturn.models.loss import collate, record_losses
from taciturn.models.precision import HalfConv1D, HalfLinear, halve_frozen, widen_frozen
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.models.tokens import encode_all
from taciturn.persample.capture import captured
from taciturn.persample.clip import clipped_sum
from taciturn.persample.sums import Sums

pytest.importorskip("peft", reason="adapters come with the extra taciturn[lora]")

TOKENIZER = byte_tokenizer()
BASES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64, "tie_word_embeddings": False},
    "llama": {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 24,
              "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": True},
}  # fmt: skip


def adapted(name: str, folder: Path, published: torch.dtype) -> Any:
    """A base published in a type, with an adapter that is not zero."""
    torch.manual_seed(2)
    config = AutoConfig.for_model(name, vocab_size=len(TOKENIZER), **BASES[name])
    AutoModelForCausalLM.from_config(config).to(published).save_pretrained(str(folder))
    model = load_model(str(folder), TOKENIZER, adapter=Lora(r=2)).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad:
                p.add_(torch.randn_like(p) * 0.2)
    return model


def results(model: Any, half: bool) -> list[torch.Tensor]:
    """Losses of two records and the clipped sums of what is trained."""
    batch = collate(encode_all(TOKENIZER, ["a record with <MASK> in it", "another"]), np.arange(2), mask_id(TOKENIZER))
    sums = Sums()
    with captured(model, 2) as tape:
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            losses = record_losses(model, batch)
        kept = losses.detach().clone()
        clipped_sum(model, tape, losses, 0.5, sums)
    return [kept, *(sums[name] for name in sums)]


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("half", [True, False], ids=["autocast", "float32"])
def test_nothing_changes_but_the_memory(name: str, half: bool, tmp_path: Path) -> None:
    model = adapted(name, tmp_path / "base", torch.bfloat16)
    other = deepcopy(model)
    saved = halve_frozen(other)
    layers = [m for m in other.modules() if isinstance(m, HalfLinear | HalfConv1D)]
    assert saved == 2 * sum(m.weight.numel() for m in layers) > 0
    for ours, theirs in zip(results(other, half), results(model, half), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("name", BASES)
def test_what_is_trained_shared_or_finer_than_bfloat16_stays(name: str, tmp_path: Path) -> None:
    fine = adapted(name, tmp_path / "fine", torch.float32)
    assert halve_frozen(fine) == 0
    model = adapted(name, tmp_path / "base", torch.bfloat16)
    halve_frozen(model)
    kinds = {n: p.dtype for n, p in model.named_parameters()}
    assert {kinds[n] for n, p in model.named_parameters() if p.requires_grad} == {torch.float32}
    assert {t for n, t in kinds.items() if "embed" in n or "wte" in n or "norm" in n or "ln_" in n} == {torch.float32}


@pytest.mark.parametrize("name", BASES)
def test_an_adapter_is_added_to_whole_weights(name: str, tmp_path: Path) -> None:
    model = adapted(name, tmp_path / "base", torch.bfloat16)
    want = merge(model).state_dict()
    halve_frozen(model)
    found = merge(model).state_dict()
    assert found.keys() == want.keys()
    assert all(torch.equal(found[n], want[n]) for n in want)
    assert any(isinstance(m, HalfLinear | HalfConv1D) for m in model.modules()), "the model itself stays as it is"
    export(model, TOKENIZER, tmp_path / "out")
    loaded = load_exported(tmp_path / "out")[0].state_dict()
    assert all(torch.equal(loaded[n], want[n]) for n in want)
    widen_frozen(model)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert not any(isinstance(m, HalfLinear | HalfConv1D) for m in model.modules())
