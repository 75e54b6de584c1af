"""What a record's gradient may depend on: the weights and the record.

Every bound on a clipped sum (docs/guarantees.md, Theorem 1 and Lemma 2) takes the gradients of the other records for
given. Dropout breaks that: masks come from one stream and are dealt by a record's place in a pass, so one record more, or
a longer one, gives all others other masks, and the sum moves by many times C. So passes that are clipped run without
dropout of any form, draw nothing from torch's streams, and multiply float32 matrices as float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from taciturn.errors import UsageError

Modes = list[tuple[nn.Module, bool]]


@contextmanager
def isolated(model: nn.Module) -> Iterator[None]:
    """Around passes whose per-record gradients are clipped; modes and precision are put back.

    Raises UsageError when a pass drew random numbers all the same (dropout that is not told the mode): then nothing that
    it computed may be released.
    """
    before = _streams(model)
    with without_dropout(model), float32_products():
        yield
    if any(not torch.equal(a, b) for a, b in zip(before, _streams(model), strict=True)):
        raise UsageError(
            "a pass that is clipped drew random numbers, which are shared by the records of a pass, so no clip norm would "
            f"hold: {RANDOM}"
        )


RANDOM = "set the model's dropout to 0 (model.options), or choose a model whose layers heed evaluation mode"


@contextmanager
def without_dropout(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, but for layers that recompute their activations, which transformers does in training mode only."""
    modes: Modes = [(module, module.training) for module in model.modules()]
    for module, training in modes:
        module.training = training and bool(getattr(module, "gradient_checkpointing", False))
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


@contextmanager
def float32_products() -> Iterator[None]:
    """Products of float32 matrices without TF32 or bfloat16 inside: norms would be off by 1e-3, and the clipped sum by more
    than its bound. Nor are sums of half-precision products kept in half precision (products.py bounds float32 ones). What
    autocast does is not touched: its factors are rounded before norm and sum alike read them."""
    found, matmul = product_precisions(), torch.backends.cuda.matmul
    allowed = [name for name in HALF_SUMS if getattr(matmul, name, False)]
    set_product_precisions("highest" if isinstance(found, str) else dict.fromkeys(found, "ieee"))
    for name in allowed:
        setattr(matmul, name, False)
    try:
        yield
    finally:
        set_product_precisions(found)
        for name in allowed:
            setattr(matmul, name, True)


HALF_SUMS = (
    "allow_bf16_reduced_precision_reduction",
    "allow_fp16_reduced_precision_reduction",
    "allow_fp16_accumulation",
)
"""What lets a GPU add products in less than float32; torch has had the last since 2.7."""


def product_precisions() -> dict[str, str] | str:
    """How float32 products are computed now: a word for each kind, which torch's single word cannot always sum up; that
    word alone in torch before 2.9."""
    if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        return {name: str(kind.fp32_precision) for name, kind in _kinds().items()}
    return str(torch.get_float32_matmul_precision())


def set_product_precisions(words: dict[str, str] | str) -> None:
    """Compute float32 products as :func:`product_precisions` said in ``words``."""
    if isinstance(words, str):
        torch.set_float32_matmul_precision(words)
        return
    for name, kind in _kinds().items():
        kind.fp32_precision = words[name]


def _kinds() -> dict[str, Any]:
    backends: Any = torch.backends
    return {
        "cuda.matmul": backends.cuda.matmul,
        "cudnn.rnn": backends.cudnn.rnn,
        "mkldnn.matmul": backends.mkldnn.matmul,
    }


def mixes_records(model: nn.Module, longest: int) -> list[str]:
    """Modules that make one record's output a function of others, by what they are, when the longest record has ``longest``
    tokens: sentences, empty if there are none."""
    found = [
        f"{name} ({type(module).__name__}) has statistics of a batch"
        for name, module in model.named_modules()
        if isinstance(module, _BatchNorm)
    ]
    found += [
        f"{name} ({type(module).__name__}) has room for {module.expert_capacity} tokens of a batch for each expert"
        for name, module in model.named_modules()
        if getattr(module, "expert_capacity", None)
    ]
    config = getattr(model, "config", None)
    rope = getattr(config, "rope_parameters", None) or {}
    trained = rope.get("original_max_position_embeddings") or getattr(config, "max_position_embeddings", None) or 0
    if rope.get("rope_type") in ("dynamic", "longrope") and longest > trained:
        found.append(
            f"rotary positions of the type {rope['rope_type']!r} follow the longest record of a batch beyond {trained} "
            f"tokens (set model.max_length = {trained})"
        )
    return found


@contextmanager
def random_layers(model: nn.Module) -> Iterator[list[str]]:
    """Collects the names of the innermost modules that draw random numbers in the block, each with its type."""
    found: list[str] = []
    began: list[tuple[Tensor, ...]] = []

    def before(*_: Any) -> None:
        began.append(_streams(model))

    def after(name: str, module: nn.Module) -> None:
        drew = any(not torch.equal(a, b) for a, b in zip(began.pop(), _streams(model), strict=True))
        inner = any(each.startswith(f"{name}.") or name == "" for each in found)
        if drew and not inner:
            found.append(f"{name or 'the model'} ({type(module).__name__})")

    handles = []
    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(before))
        handles.append(module.register_forward_hook(lambda module, *_, name=name: after(name, module)))
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def _streams(model: nn.Module) -> tuple[Tensor, ...]:
    """The states of the generators that the model's passes could draw from."""
    devices = {p.device for p in model.parameters() if p.device.type == "cuda"}
    return torch.get_rng_state(), *(torch.cuda.get_rng_state(device) for device in sorted(devices, key=str))
