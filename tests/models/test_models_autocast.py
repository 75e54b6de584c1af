"""Matrix products in bfloat16 on a CPU: which attention stays float32, and that gradients are those of float32 but for
rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as attention
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoConfig, AutoModelForCausalLM

from taciturn.models.precision import SHORT, autocast
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.models.tokens import encode_all
from taciturn.training.passes import Work, batch_of

HALF = torch.bfloat16
TOKENIZER = byte_tokenizer()


class Kernels(TorchDispatchMode):
    """Number types in which attention reaches torch's own kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.types: list[torch.dtype] = []

    def __torch_dispatch__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "attention" in str(function) and "backward" not in str(function):
            self.types.append(args[0].dtype)
        return function(*args, **(kwargs or {}))


def inputs(length: int, wanted: bool = True) -> list[Tensor]:
    g = torch.Generator().manual_seed(length)
    return [torch.randn(2, 2, length, 8, generator=g).requires_grad_(wanted) for _ in range(3)]


@pytest.mark.parametrize(
    ("length", "wanted", "kind", "recomputed", "found"),
    [
        (SHORT, True, HALF, False, torch.float32),
        (SHORT + 1, True, HALF, False, HALF),
        (SHORT, False, HALF, False, HALF),  # nothing goes backwards
        (SHORT, True, HALF, True, HALF),
        (SHORT, True, None, False, torch.float32),
    ],
)
def test_short_attention_that_is_learned_stays_float32(
    length: int, wanted: bool, kind: torch.dtype | None, recomputed: bool, found: torch.dtype
) -> None:
    with Kernels() as kernels, autocast("cpu", kind, recomputed=recomputed):
        made = attention(*inputs(length, wanted), is_causal=True)
    assert kernels.types == [found]
    assert made.dtype == (kind or torch.float32)


def test_arguments_by_name_and_a_mask_of_numbers_are_taken_too() -> None:
    q, k, v = inputs(7)
    mask = torch.randn(2, 1, 7, 7)
    exact = attention(q, k, v, mask)
    with Kernels() as kernels, autocast("cpu", HALF):
        found = [
            attention(q.to(HALF), k.to(HALF), v.to(HALF), attn_mask=mask.to(HALF)),
            attention(query=q.to(HALF), key=k.to(HALF), value=v.to(HALF), attn_mask=mask.to(HALF)),
        ]
    assert kernels.types == [torch.float32] * 2
    for each in found:
        torch.testing.assert_close(each.float(), exact, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("recomputed", [False, True], ids=["as it is", "checkpointed"])
def test_a_models_gradients_are_those_of_float32_but_for_rounding(recomputed: bool) -> None:
    torch.manual_seed(3)
    config = AutoConfig.for_model(
        "llama", vocab_size=len(TOKENIZER), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, intermediate_size=24, max_position_embeddings=64,
    )  # fmt: skip
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").train()
    if recomputed:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    tokens = encode_all(TOKENIZER, ["a record", "and a longer one", "b"])
    batch = batch_of(tokens, np.arange(3), mask_id(TOKENIZER), model)
    gradients = {}
    for kind in (None, HALF):
        with Kernels() as kernels:
            Work(autocast=kind).losses(model, batch).sum().backward()
        assert set(kernels.types) == {HALF if kind and recomputed else torch.float32}
        gradients[kind] = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        model.zero_grad(set_to_none=True)
    exact, found = gradients[None], gradients[HALF]
    assert 0 < float((found - exact).norm() / exact.norm()) < 0.03  # eight bits of a product, twice as many layers
