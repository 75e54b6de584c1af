"""DP-SGD: a clipped sum of per-unit gradients, with noise, over a constant divisor (Abadi et al. 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import numpy as np
import torch
from torch import Tensor, nn

from taciturn.errors import UsageError
from taciturn.models.tokens import Tokens
from taciturn.persample.sums import Sums
from taciturn.training.clipping import clipped, clipped_units
from taciturn.training.distributed.fsdp import release_sums
from taciturn.training.distributed.processes import ALONE, World
from taciturn.training.passes import Work
from taciturn.training.phase_terms import ClipNoise
from taciturn.training.plan import Step
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.state.checkpoint import State
from taciturn.training.units.row_groups import Ints, Units
from taciturn.training.updates.release import Context


def release(step: Step, state: State, tokens: Tokens, drawn: Ints | Units, run: Context) -> None:
    """The noised sum of what was drawn."""
    rule = step.phase.rule
    assert isinstance(rule, ClipNoise)
    release_clipped(rule, step, state, tokens, drawn, run)


def release_clipped(
    rule: ClipNoise, step: Step, state: State, tokens: Tokens, drawn: Ints | Units, run: Context
) -> None:
    """:func:`private_gradient` by ``rule``, at the clip norm that ``state`` has for the phase, which follows it."""
    name = step.phase.name
    state.clips[name] = private_gradient(
        state.model, tokens, drawn, run.mask, run.clipped, rule, step, run.secret, state.clips[name], run.world
    )


def private_gradient(
    model: nn.Module,
    tokens: Tokens,
    drawn: Ints | Units,
    mask: int,
    work: Work,
    rule: ClipNoise,
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
    sums, below, mine = _sums(model, tokens, drawn, mask, work, rule.factors, clip, world)
    return noised(model, sums, below - mine / 2, rule, step, secret, clip, world)


def noised(
    model: nn.Module,
    sums: Sums,
    within: float,
    rule: ClipNoise,
    step: Step,
    secret: SecretSource,
    clip: float,
    world: World = ALONE,
) -> float:
    """Set ``.grad`` to (``sums`` + noise) / E[units drawn]; the clip norm of the phase's next step.

    within: how many of this process's units had a norm of at most ``clip``, less half of those it has.
    """
    expected = step.phase.expected
    std = rule.sum_noise * clip / expected
    # Andrew et al. 2021, Algorithm 1: the share of records within the clip norm moves it towards the quantile. The count
    # is released with the sum, in units in which its noise has the same deviation.
    unit = std / rule.count_noise or 1.0
    count = torch.tensor([within * unit * expected], device=next(model.parameters()).device)
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
    part = drawn.take(world.share(np.arange(len(drawn)), drawn.sizes(tokens.sizes(drawn.rows))))
    return *work.attempt(lambda: clipped_units(model, tokens, part, mask, work, factors, clip)), len(part)
