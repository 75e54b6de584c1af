"""What one step does to the gradients: plain mean, or clipped sum with noise over a constant divisor."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from taciturn.models.loss import collate, microbatches, record_losses
from taciturn.models.tokens import Tokens, targets
from taciturn.persample.clip import captured, clipped_sum
from taciturn.training.noise import SecretSource
from taciturn.training.plan import ClipNoise, Poisson, Step


def plain_gradient(
    model: nn.Module, tokens: Tokens, rows: NDArray[np.int64], mask: int, token_budget: int
) -> float | None:
    """Set ``.grad`` to the gradient of the batch's mean loss per target token; return that loss (None: no target)."""
    count = sum(int(targets(tokens[row], mask).sum()) for row in rows)
    if count == 0:
        return None
    total = 0.0
    for part in microbatches(rows, tokens.lengths, token_budget):
        losses_B = record_losses(model, collate(tokens, part, mask, _device(model)))
        loss = losses_B.sum() / count
        loss.backward()
        total += float(loss.detach())
    return total


def private_gradient(
    model: nn.Module,
    tokens: Tokens,
    rows: NDArray[np.int64],
    mask: int,
    token_budget: int,
    step: Step,
    secret: SecretSource,
) -> None:
    """Set ``.grad`` to (Σ clipped per-record gradients + noise) / (q·N), for any number of rows, none included.

    A record's loss is the mean over its targets. Nothing about the drawn records is returned or kept: a loss or a norm
    would be a private value released outside the mechanism.
    """
    rule, sampler = step.phase.rule, step.phase.sampler
    assert isinstance(rule, ClipNoise)
    assert isinstance(sampler, Poisson)
    sums: dict[nn.Parameter, torch.Tensor] = {}
    for part in microbatches(rows, tokens.lengths, token_budget):
        batch = collate(tokens, part, mask, _device(model))
        with captured(model, len(batch)) as tape:
            losses_B = record_losses(model, batch) / batch.weights.sum(1).clamp_min(1.0)
            clipped_sum(model, tape, losses_B, rule.clip, sums)
    trainable = [p for p in model.parameters() if p.requires_grad]
    for p in trainable:
        p.grad = sums[p] if p in sums else torch.zeros_like(p)
    secret.add_gaussian(step.number, [_grad(p) for p in trainable], rule.noise_multiplier * rule.clip)
    expected = sampler.rate * step.phase.records
    for p in trainable:
        _grad(p).div_(expected)


def _grad(p: Any) -> torch.Tensor:
    assert p.grad is not None
    return p.grad  # type: ignore[no-any-return]


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
