"""A look before the first step: do per-record gradients of this very model agree with one record at a time?

The rules assume that a layer's rows are the batch's records in order. A model that mixes records, or reorders them,
would be clipped wrongly without an error; two random records show it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from taciturn.errors import UsageError
from taciturn.persample.capture import captured, trainable_names
from taciturn.persample.clip import clipped_sum
from taciturn.persample.sums import Sums

TOLERANCE = 1e-2
"""Largest relative difference of norms; rounding gives 1e-6, in bf16 1e-3, a mixed-up record order one."""

Losses = Callable[[slice], Tensor]
"""Losses of some rows of a fixed batch, differentiable, [rows]."""


def disagreement(model: nn.Module, losses: Losses, rows: int) -> tuple[float, str]:
    """The largest relative difference between a layer's per-record gradient norm and the one-by-one value, and the
    parameter of the largest gradient error. Weights, gradients and training mode are left as they were."""
    with _still(model):
        with captured(model, rows) as tape:
            sums = Sums()
            norms = clipped_sum(model, tape, losses(slice(0, rows)), float("inf"), sums)
        total: dict[str, Tensor] = {name: torch.zeros_like(p) for p, name in trainable_names(model).items()}
        worst = 0.0
        for b in range(rows):
            losses(slice(b, b + 1)).sum().backward()
            squared = torch.zeros((), device=norms.device)
            for p, name in trainable_names(model).items():
                if p.grad is not None:
                    squared += p.grad.float().square().sum()
                    total[name] += p.grad
            model.zero_grad(set_to_none=True)
            norm = float(squared.sqrt())
            worst = max(worst, abs(float(norms[b]) - norm) / max(norm, 1e-12))
        scale = max(float(t.abs().max()) for t in total.values()) or 1.0
        errors = {name: float((sums[name] - t).abs().max()) / scale for name, t in total.items()}
        name = max(errors, key=lambda n: errors[n])
        return max(worst, errors[name]), name


def verify(model: nn.Module, losses: Losses, rows: int) -> float:
    """:func:`disagreement`; UsageError when it exceeds TOLERANCE, since then no clip norm would hold."""
    found, name = disagreement(model, losses, rows)
    if not found <= TOLERANCE:
        raise UsageError(
            f"per-record gradients of this model differ from one record at a time by {found:.2g} (expected below "
            f"{TOLERANCE:g}), most in {name}: it mixes records or reorders them, so clipping could not be trusted; freeze "
            "that part or choose another model"
        )
    return found


@contextmanager
def _still(model: nn.Module) -> Any:
    """Without dropout, and back to what it was."""
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode
