"""Steps without noise: the gradient of the mean loss per target, of records as they are, filled, or packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from taciturn.models.loss import collate, microbatches
from taciturn.models.tokens import Tokens, packed
from taciturn.persample.clip import NotFiniteError
from taciturn.training.distributed.all_reduce import total_gradient
from taciturn.training.distributed.processes import ALONE, World
from taciturn.training.fill import filled
from taciturn.training.passes import Work, batch_of, scored
from taciturn.training.phase import Phase
from taciturn.training.plan import Step
from taciturn.training.state.checkpoint import State
from taciturn.training.units.row_groups import Ints, Units
from taciturn.training.updates.release import Context, Shown


def release(step: Step, state: State, tokens: Tokens, drawn: Ints | Units, run: Context) -> Shown:
    """The batch's gradient, its loss, and the tokens the model saw."""
    assert not isinstance(drawn, Units)
    phase = step.phase
    filler = run.initial if phase.fill is not None and phase.fill.source == "initial" else state.model
    rows, seed = drawn, (run.seeds.data, 1, step.number)
    if phase.fill is not None and phase.fill.table is not None:
        table = state.tables[phase.fill.table]
        tokens = run.fillers[phase.name].filled(table, filler, rows, seed, phase.fill.candidates)
        rows = np.arange(len(tokens))
    tokens, rows = model_input(phase, filler, tokens, rows, run.mask, seed, run.never)
    loss = plain_gradient(state.model, tokens, rows, run.mask, run.plain, run.world)
    return Shown(loss, int(tokens.sizes(rows).sum()))


def never_filled(tokenizer: Any, model: Any) -> tuple[int, ...]:
    """Ids that no fill may be: special ones, and those of which the tokenizer knows nothing."""
    return (*tokenizer.all_special_ids, *range(len(tokenizer), model.config.vocab_size))


def model_input(
    phase: Phase,
    filler: Any,
    tokens: Tokens,
    rows: Ints,
    mask: int,
    seed: tuple[int, ...],
    never: Sequence[int],
) -> tuple[Tokens, Ints]:
    """A plain batch as the model is to see it: its masks filled, its records packed, where the phase says so."""
    if phase.fill is not None and phase.fill.longest:
        tokens = filled(filler, tokens, rows, mask, seed, phase.fill.longest, phase.fill.loss, never=never)
        rows = np.arange(len(tokens))
    if phase.packed:
        tokens = packed(tokens, rows, phase.packed, mask)
        rows = np.arange(len(tokens))
    return tokens, rows


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
