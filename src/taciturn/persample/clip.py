"""Exact flat clipping: Σ_b min(1, C/‖G_b‖)·G_b over the records of a batch, one forward and one backward pass.

While :func:`captured` is active the forward of every module with trainable parameters is replaced *on the instance* by
one that records what its rule needs; the model's class, its weights and its `state_dict` stay as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from taciturn.errors import TaciturnError, UsageError
from taciturn.persample.embedding import Lookup
from taciturn.persample.linear import Affine
from taciturn.persample.lstm import LSTM, LSTMUse
from taciturn.persample.norm import LayerNorm
from taciturn.persample.tied import cross_terms

SAFETY = 1 + 2e-6
"""Clip factors are computed in float32: dividing by norm·SAFETY keeps the clipped norm at or below C after rounding."""


@dataclass(slots=True)
class Tape:
    """What the layers saw in one forward and backward pass over ``records`` records."""

    records: int
    uses: list[Any] = field(default_factory=list)


@contextmanager
def captured(model: nn.Module, records: int) -> Iterator[Tape]:
    """Record, in the yielded tape, what each trainable layer sees in one pass over a batch of ``records`` records.

    Raises UsageError naming every trainable parameter that belongs to a module without a rule.
    """
    check_supported(model)
    tape = Tape(records)
    swapped = [m for m in model.modules() if any(p.requires_grad for p in m.parameters(recurse=False))]
    try:
        for module in swapped:
            module.forward = _recording(module, tape)
        yield tape
    finally:
        for module in swapped:
            del module.forward


def check_supported(model: nn.Module) -> None:
    """Raise UsageError when a trainable parameter has no per-record rule; its name and module type are in the message."""
    unknown = [
        f"{f'{name}.' if name else ''}{p_name} ({type(module).__name__})"
        for name, module in model.named_modules()
        for p_name, p in module.named_parameters(recurse=False)
        if p.requires_grad and not _has_rule(module)
    ]
    if unknown:
        raise UsageError(
            "no per-record gradient rule for: "
            + ", ".join(unknown[:8])
            + (", …" if len(unknown) > 8 else "")
            + ". Rules exist for Linear, Conv1D, Embedding, LayerNorm and one-layer LSTM; freeze the others "
            "(requires_grad_(False)) or choose another model"
        )


def clipped_sum(model: nn.Module, tape: Tape, losses_B: Tensor, C: float, into: dict[nn.Parameter, Tensor]) -> Tensor:
    """Add Σ_b c_b·∇losses_b to ``into`` and return the unclipped norms ‖∇losses_b‖, [B].

    Must run inside :func:`captured`, right after the forward pass that made ``losses_B``. Raises UsageError when a
    parameter was used outside its module, since its gradient would then escape clipping.
    """
    losses_B.sum().backward()
    leaked = [name for name, p in model.named_parameters() if p.requires_grad and p.grad is not None]
    if leaked:
        model.zero_grad(set_to_none=True)
        raise UsageError(f"used outside the layer that owns it, so it has no per-record gradient: {', '.join(leaked)}")
    with torch.no_grad():
        norms = _squared_norms(tape).clamp_min_(0).sqrt_()
        if not bool(norms.isfinite().all()):
            raise TaciturnError(
                "a per-record gradient is not finite: lower the learning rate, or check the model's weights"
            )
        c = (C / (norms * SAFETY)).clamp_max_(1.0)
        while tape.uses:  # release what each use holds as soon as it is summed
            use = tape.uses.pop()
            pairs = use.clipped_sums(c) if isinstance(use, LSTMUse) else [(use.weight, use.clipped_sum(c))]
            for weight, total in pairs:
                if weight in into:
                    into[weight].add_(total)
                else:
                    into[weight] = total
    return norms


def _squared_norms(tape: Tape) -> Tensor:
    by_weight: dict[nn.Parameter, list[Any]] = defaultdict(list)
    total = torch.zeros(tape.records)
    for use in tape.uses:
        squared = use.squared_norms().float()
        if squared.shape != (tape.records,):
            raise UsageError(
                f"{type(use).__name__} has per-record norms of shape {tuple(squared.shape)}, expected ({tape.records},): "
                "the model broadcasts an input or mixes records, so their gradients cannot be told apart"
            )
        total = total.to(squared.device) + squared
        by_weight[use.weights[0] if isinstance(use, LSTMUse) else use.weight].append(use)
    for uses in by_weight.values():
        if len(uses) > 1 and isinstance(uses[0], LSTMUse):
            raise UsageError("an LSTM layer ran twice in one forward pass: per-record gradients need a single run")
        total = total + cross_terms(uses)
    return total


def _has_rule(module: nn.Module) -> bool:
    if isinstance(module, nn.LSTM):
        return (
            module.num_layers == 1
            and not module.bidirectional
            and module.batch_first
            and module.bias
            and not module.proj_size
        )
    if isinstance(module, nn.LayerNorm):
        return len(module.normalized_shape) == 1 and module.elementwise_affine
    if isinstance(module, nn.Embedding):
        return module.max_norm is None and not module.scale_grad_by_freq and not module.sparse
    return isinstance(module, nn.Linear) or _is_conv1d(module)


def _is_conv1d(module: nn.Module) -> bool:
    return type(module).__name__ == "Conv1D" and hasattr(module, "nf")  # transformers' transposed Linear


def _recording(module: Any, tape: Tape) -> Any:
    uses = tape.uses
    if isinstance(module, nn.Linear):
        return lambda x: Affine.apply(x, module.weight, module.bias, False, uses)
    if isinstance(module, nn.Embedding):
        # Position ids come as [1, T] and are broadcast over the batch: one row per record keeps records apart.
        return lambda ids: Lookup.apply(
            ids.expand(tape.records, *ids.shape[1:]) if ids.shape[0] == 1 else ids, module.weight, uses
        )
    if isinstance(module, nn.LayerNorm):
        return lambda x: LayerNorm.apply(x, module.weight, module.bias, module.eps, uses)
    if isinstance(module, nn.LSTM):
        return lambda x, state=None: _run_lstm(module, x, state, uses)
    return lambda x: Affine.apply(x, module.weight, module.bias, True, uses)


def _run_lstm(module: nn.LSTM, x: Tensor, state: Any, uses: list[Any]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    zeros = x.new_zeros(x.shape[0], module.hidden_size)
    h0, c0 = (zeros, zeros) if state is None else (state[0][0], state[1][0])
    y, h, c = LSTM.apply(
        x, h0, c0, module.weight_ih_l0, module.weight_hh_l0, module.bias_ih_l0, module.bias_hh_l0, uses
    )
    return y, (h[None], c[None])
