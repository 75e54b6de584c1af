"""Σ of clipped per-unit gradients: a unit is a record, or several rows that are clipped as one (units/row_groups.py)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from taciturn.models.loss import Batch, collate, microbatches
from taciturn.models.tokens import Tokens
from taciturn.persample.capture import trainable_names
from taciturn.persample.clip import RULES
from taciturn.persample.isolated import isolated
from taciturn.persample.sums import Sums
from taciturn.persample.tape import layer_of
from taciturn.persample.twice import clipped_sum_of
from taciturn.training.distributed.fsdp import ShardedSums
from taciturn.training.distributed.processes import ALONE, World
from taciturn.training.passes import Work, batch_of, scored
from taciturn.training.units.row_groups import Ints, Units


def clipped(
    model: nn.Module,
    tokens: Tokens,
    rows: Ints,
    mask: int,
    work: Work,
    rule: str,
    C: float,
    world: World = ALONE,
) -> tuple[Sums, int]:
    """(Σ clipped per-record gradients, how many records were within C); no sum at all for no rows.

    Neither the order of ``rows`` nor the cut into passes changes the sums but for rounding, and what a record adds is a
    function of the weights and itself: see :func:`~taciturn.persample.isolated.isolated`. ``rows`` are this process's; with
    a sharded model all processes call this, and its sums are theirs together.
    """
    model.zero_grad(set_to_none=True)
    sums = Sums() if world.mesh is None else ShardedSums(model, world)
    below = 0
    with isolated(model):
        for scale in work.scales():
            again = [rows[:0]]
            for part in world.passes(microbatches(rows, tokens.sizes(rows), work.token_budget)):
                batch = batch_of(tokens, part, mask, model)
                norms = clipped_sum_of(
                    model, len(batch), len(batch), partial(_mean_losses, work, model, batch), C, sums, rule, scale
                )
                if part is not None:
                    found = norms.cpu().numpy()  # waits for the device once
                    below += int((found <= C).sum())
                    again.append(part[~np.isfinite(found)])
            rows = np.concatenate(again)
            if not len(rows) and world.mesh is None:
                break
    return sums, below


def clipped_units(
    model: nn.Module, tokens: Tokens, units: Units, mask: int, work: Work, rule: str, C: float
) -> tuple[Sums, int]:
    """(Σ clipped per-unit gradients, how many units were within C), as :func:`clipped`; a unit's gradient is that of
    Σ weight · mean loss of its rows. A unit whose rows do not fit in one pass is taken by itself, in several.

    ``units.worth``: what a clipped gradient is multiplied by. w·clip(G, C) is w·G clipped to w·C, and so it is done.
    """
    model.zero_grad(set_to_none=True)
    sums, limits_U = Sums(), _worth(units) * C
    units = replace(_weighed(units), worth=None)
    below = int((units.counts == 0).sum())
    with isolated(model):
        for scale in work.scales():
            again = [np.zeros(0, np.int64)]
            for part, rows in passes(units, tokens, work.token_budget):
                some, limits = units.take(part), limits_U[part]
                if rows is None:
                    norms = _alone(model, tokens, some, mask, work, rule, float(limits[0]), sums, scale)
                else:
                    norms = _together(model, tokens, some, rows, mask, work, rule, limits, sums, scale)
                below += int((norms <= limits).sum())
                again.append(part[~np.isfinite(norms)])
            left = np.concatenate(again)
            units, limits_U = units.take(left), limits_U[left]
            if not len(left):
                break
    return sums, below


def _together(
    model: nn.Module,
    tokens: Tokens,
    units: Units,
    rows_UR: Ints,
    mask: int,
    work: Work,
    rule: str,
    limits: NDArray[np.float32],
    into: Sums,
    scale: float,
) -> NDArray[np.float32]:
    """Add the clipped gradients of units whose rows share a pass; their norms, [U]."""
    U, R = rows_UR.shape
    batch = _padded(tokens, rows_UR, mask, model)
    device = batch.input_ids.device
    weights, C_U = torch.from_numpy(_weights(units, R)).to(device), torch.from_numpy(limits).to(device)

    def losses() -> Tensor:
        return (_mean_losses(work, model, batch).view(U, R) * weights).sum(1)

    return clipped_sum_of(model, U * R, U, losses, C_U, into, rule, scale).cpu().numpy()


def _mean_losses(work: Work, model: nn.Module, batch: Batch) -> Tensor:
    """The mean over its targets of each record's loss, [B]."""
    return work.losses(model, batch) / scored(batch).clamp_min(1.0)


def _worth(units: Units) -> NDArray[np.float32]:
    return np.ones(len(units), np.float32) if units.worth is None else units.worth


def _weighed(units: Units) -> Units:
    """The same units with their worth in the weights of their rows."""
    return replace(units, weights=units.weights * np.repeat(_worth(units), units.counts))


def passes(units: Units, tokens: Tokens, token_budget: int) -> Iterator[tuple[Ints, Ints | None]]:
    """(numbers of units, their rows [U, R] with −1 where a unit has fewer); rows None for a unit too large for a pass.

    Units of about as many rows go together: R is rounded up so that at most a third of the rows are empty.
    """
    counts = units.counts
    lengths = tokens.lengths[units.rows]
    longest = np.zeros(len(units), np.int64)
    np.maximum.at(longest, np.repeat(np.arange(len(units)), counts), lengths)
    wide = _rounded(counts)
    for R in np.unique(wide[counts > 0]):
        members = np.flatnonzero((wide == R) & (counts > 0))
        large = R * longest[members] > token_budget
        for unit in members[large]:
            yield np.array([unit]), None
        fits = members[~large]
        for part in microbatches(fits, R * longest[fits], token_budget):
            rows = np.full((len(part), R), -1, np.int64)
            for i, unit in enumerate(part):
                rows[i, : counts[unit]] = units.of(int(unit))
            yield part, rows


def _rounded(counts: Ints) -> Ints:
    """1, 2, 3, 4, 6, 8, 12, 16, …: the next of these."""
    steps = np.array(sorted({2**i for i in range(40)} | {3 * 2**i for i in range(38)}))
    found: Ints = steps[np.searchsorted(steps, counts)]
    return found


def _weights(units: Units, R: int) -> NDArray[np.float32]:
    """The weights of the rows of units, [U, R]; zero where a unit has fewer rows."""
    out = np.zeros((len(units), R), np.float32)
    for i, count in enumerate(units.counts):
        out[i, :count] = units.weights[units.offsets[i] : units.offsets[i + 1]]
    return out


def _padded(tokens: Tokens, rows_UR: Ints, mask: int, model: nn.Module) -> Batch:
    """The rows laid end to end, [U·R, T]; an empty one (−1) repeats its unit's first row, and has no target: a row of
    another unit could turn what this one adds into no number."""
    flat = rows_UR.reshape(-1)
    device = next(model.parameters()).device
    batch = collate(tokens, np.where(rows_UR < 0, rows_UR[:, :1], rows_UR).reshape(-1), mask, device)
    gone = torch.from_numpy(flat < 0).to(device)
    batch.weights[gone] = 0
    if batch.labels is not None:
        batch.labels[gone] = -1
    return batch


def _alone(
    model: nn.Module, tokens: Tokens, unit: Units, mask: int, work: Work, rule: str, C: float, into: Sums, scale: float
) -> NDArray[np.float32]:
    """Add the clipped gradient of one unit, taken by ordinary passes over its rows, if it is finite; its norm, [1]."""
    weight = dict(zip(unit.rows.tolist(), unit.weights.tolist(), strict=True))
    for part in microbatches(unit.rows, tokens.sizes(unit.rows), work.token_budget):
        batch = batch_of(tokens, part, mask, model)
        weights = torch.tensor([weight[int(row)] for row in part], device=batch.input_ids.device)
        (((work.losses(model, batch) / scored(batch).clamp_min(1.0)) * weights).sum() * scale).backward()
    named = {name: p.grad for p, name in trainable_names(model).items() if p.grad is not None}
    layers = list(dict.fromkeys(map(layer_of, trainable_names(model).values())))
    squared: dict[str, Tensor] = {layer: torch.zeros(1) for layer in layers}
    for name, grad in named.items():
        squared[layer_of(name)] = squared[layer_of(name)].to(grad.device) + (grad.float() / scale).square().sum()
    squared_LU = torch.stack([squared[layer] for layer in layers])
    norm = squared_LU.sum(0).sqrt().cpu().numpy()
    if np.isfinite(norm).all():
        factors = dict(zip(layers, RULES[rule](squared_LU, C) / scale, strict=True))
        for name, grad in named.items():
            into.add(name, grad.float() * factors[layer_of(name)])
    model.zero_grad(set_to_none=True)
    return norm
