"""How often a clipped pass waits for its device: a number read on the host stops a GPU's queue until it is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tiny import DATA, TOKENIZER
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from taciturn.training.clipping import clipped
from taciturn.training.passes import Work

READ = {
    "aten._local_scalar_dense.default",
    "aten.nonzero.default",
    "aten.masked_select.default",
    "aten.is_nonzero.default",
}
"""Operations whose result, or its size, the host has to know."""
FETCHED = {"cpu", "tolist", "item"}


class Kernels(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.reads += str(func) in READ
        return func(*args, **(kwargs or {}))


class Calls(TorchFunctionMode):
    """On the CPU a copy to the CPU is no operation, but it is asked for all the same. ``put``: by name of the device, which
    here may be that of the model."""

    def __init__(self) -> None:
        super().__init__()
        self.copies = self.put = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        self.copies += name in FETCHED
        self.put += name == "to" and "cpu" in (*map(str, args[1:]), str(kwargs.get("device")))
        return func(*args, **kwargs)


ENDS = {"bos_token_id": 0, "eos_token_id": 0}


def made(kind: str, layers: int) -> Any:
    torch.manual_seed(0)
    size = len(TOKENIZER)
    if kind == "gpt2":
        return GPT2LMHeadModel(GPT2Config(vocab_size=size, n_positions=64, n_embd=16, n_layer=layers, n_head=2, **ENDS))
    narrow = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=size, num_hidden_layers=layers, **narrow, **ENDS))


def waits(model: Any, rows: int) -> tuple[int, int]:
    with Kernels() as kernels, Calls() as calls:
        clipped(model, DATA, np.arange(rows), 0, Work(10_000), "flat", 1.0)
    return kernels.reads + calls.copies, calls.put


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_pass_waits_as_often_for_six_layers_as_for_one(kind: str) -> None:
    few = waits(made(kind, 1), 8)
    assert waits(made(kind, 6), 8) == few
    assert 0 < few[0] <= 4  # of which one is of transformers, for a mask
