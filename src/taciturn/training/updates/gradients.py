"""What one step does to the gradients: plain mean, or clipped sum with noise over a constant divisor."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from taciturn.errors import UsageError
from taciturn.models.loss import collate, microbatches
from taciturn.models.tokens import Tokens
from taciturn.persample.clip import NotFiniteError
from taciturn.persample.sums import Sums
from taciturn.training.clipping import clipped, clipped_units
from taciturn.training.distributed.all_reduce import total_gradient
from taciturn.training.distributed.fsdp import release_sums
from taciturn.training.distributed.processes import ALONE, World
from taciturn.training.passes import Work, batch_of, scored
from taciturn.training.plan import Step
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.units.row_groups import Ints, Units


def plain_gradient(
    model: nn.Module, tokens: Tokens, rows: NDArray[np.int64], mask: int, work: Work, world: World = ALONE
) -> float | None:
    """Set ``.grad`` to the gradient of the batch's mean loss per target; return that loss (None: no target).

    ``rows``: of the whole batch, the same in every process of ``world``.
    """
    mine = world.share(rows, tokens.sizes(rows))
    count = float(world.total(np.array([_targets(tokens, mine, mask, work)]))[0])
    if count == 0:
        model.zero_grad(set_to_none=True)
        return None

    def run() -> float:
        model.zero_grad(set_to_none=True)
        total = torch.zeros((), device=_device(model))
        for part in world.passes(microbatches(mine, tokens.sizes(mine), work.token_budget)):
            loss = work.losses(model, batch_of(tokens, part, mask, model)).sum() / count
            # FSDP divides the sum over processes by their number
            (loss * (work.scale * (1 if world.mesh is None else world.size))).backward()
            total += loss.detach()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        if work.scale != 1.0:
            torch._foreach_mul_(grads, 1 / work.scale)
            if not all(bool(g.isfinite().all()) for g in grads):
                raise NotFiniteError("a gradient overflowed in fp16 even without scaling; use bf16 or float32")
        return float(total)

    return total_gradient(model, work.attempt(run), world)


def private_gradient(
    model: nn.Module,
    tokens: Tokens,
    drawn: Ints | Units,
    mask: int,
    work: Work,
    step: Step,
    secret: SecretSource,
    clip: float,
    world: World = ALONE,
) -> float:
    """Set ``.grad`` to (Σ clipped per-unit gradients + noise) / E[units drawn], for any number of units, none included, and
    return the clip norm of the phase's next step (``clip`` unless it adapts).

    ``drawn``: all that the step draws, the same in every process of ``world``; each clips its share, and the divisor is of
    the whole.

    A record's loss is the mean over its targets. Nothing about the drawn records is returned or kept but what the
    mechanism has noised: a loss or a norm would be a private value released outside it.
    """
    rule, expected = step.phase.noised, step.phase.expected
    assert rule is not None
    sums, below, mine = _sums(model, tokens, drawn, mask, work, rule.factors, clip, world)
    std = rule.sum_noise * clip / expected
    # Andrew et al. 2021, Algorithm 1: the share of records within the clip norm moves it towards the quantile. The count
    # is released with the sum, in units in which its noise has the same deviation.
    unit = std / rule.count_noise or 1.0
    count = torch.tensor([(below - mine / 2) * unit * expected], device=next(model.parameters()).device)
    extra = [count] if rule.adapts else []

    def noise(tensors: Sequence[Tensor], starts: Sequence[int]) -> None:
        secret.add_gaussian(step.number, tensors, std, 1 / expected, starts)

    release_sums(model, sums, extra, noise, world)
    if not rule.adapts:
        return clip
    share = float(count) / unit / expected + 0.5
    return clip * exp(-rule.quantile_rate * (share - rule.quantile))


def _sums(
    model: nn.Module,
    tokens: Tokens,
    drawn: Ints | Units,
    mask: int,
    work: Work,
    factors: str,
    clip: float,
    world: World,
) -> tuple[Sums, int, int]:
    """(this process's clipped sums, how many of its units were within ``clip``, how many it has)."""
    if not isinstance(drawn, Units):
        mine = world.share(drawn, tokens.sizes(drawn))
        return *work.attempt(lambda: clipped(model, tokens, mine, mask, work, factors, clip, world)), len(mine)
    if world.mesh is not None:
        raise UsageError("a sharded model clips records, not users or other units: leave train.shard out")
    part = drawn.take(world.share(np.arange(len(drawn)), drawn.sizes(tokens.lengths)))
    return *work.attempt(lambda: clipped_units(model, tokens, part, mask, work, factors, clip)), len(part)


def add_mean_gradient(model: nn.Module, tokens: Tokens, rows: Ints, mask: int, work: Work) -> None:
    """Add to ``.grad`` the mean over ``rows`` of the gradients of their mean losses per target."""
    held = {p: p.grad for p in model.parameters() if p.grad is not None}

    def run() -> None:
        model.zero_grad(set_to_none=True)
        for part in microbatches(rows, tokens.sizes(rows), work.token_budget):
            batch = batch_of(tokens, part, mask, model)
            losses_B = work.losses(model, batch) / scored(batch).clamp_min(1.0)
            (losses_B.sum() * (work.scale / len(rows))).backward()

    work.attempt(run)
    for p in model.parameters():
        if p.grad is not None and work.scale != 1.0:
            p.grad.div_(work.scale)
        if p in held:
            p.grad = held[p] if p.grad is None else p.grad.add_(held[p])


def _targets(tokens: Tokens, rows: NDArray[np.int64], mask: int, work: Work) -> float:
    """How many targets of ``rows`` count."""
    parts = microbatches(rows, tokens.sizes(rows), work.token_budget)
    return float(sum(float(scored(collate(tokens, part, mask)).sum()) for part in parts))


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
