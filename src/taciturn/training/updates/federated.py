"""Federated averaging under a clip norm: users train copies of the model, and what they moved is clipped, summed and
noised (McMahan, Ramage, Talwar, Zhang 2018, Algorithm 1; the local update of UeDP's Algorithm 1, lines 20–30).

UeDP prints θ ← θ⁰ − η·Δ in line 27, which would forget every batch but the last; here it is θ ← θ − η·Δ, as in the
federated averaging it builds on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from taciturn.errors import UsageError
from taciturn.models.loss import microbatches
from taciturn.models.tokens import Tokens
from taciturn.persample.capture import trainable_names
from taciturn.persample.clip import SAFETY
from taciturn.persample.sums import Sums
from taciturn.training.distributed.fsdp import release_sums
from taciturn.training.distributed.processes import ALONE, World
from taciturn.training.passes import Work, batch_of, scored
from taciturn.training.phase_terms import LocalUpdates
from taciturn.training.plan import Step
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.state.checkpoint import State
from taciturn.training.units.row_groups import Ints, Units
from taciturn.training.updates.release import Context


def release(step: Step, state: State, tokens: Tokens, drawn: Ints | Units, run: Context) -> None:
    """The noised sum of what the drawn users' copies moved."""
    assert isinstance(drawn, Units)
    model, seed = state.model, run.seeds.model
    local_gradient(model, tokens, drawn, run.mask, run.clipped, step, run.secret, seed, run.world)


def local_gradient(
    model: nn.Module,
    tokens: Tokens,
    drawn: Units,
    mask: int,
    work: Work,
    step: Step,
    secret: SecretSource,
    seed: int,
    world: World = ALONE,
) -> None:
    """Set ``.grad`` to (Σ_u w_u·clip(θ − θ_u) + noise) / E[Σ of drawn w_u]: a step of plain SGD at rate 1 adds the mean of
    what users moved (as a gradient, Reddi et al. 2021, "Adaptive federated optimization"), for any number of users.

    ``drawn``: the users of the step, the same in every process of ``world``; each trains its share of them. Dropout is
    dealt to each user from the beginning of one stream, of (``seed``, step): what a user moves is then a function of the
    weights, its records and a public number, whoever else was drawn. An update that is not finite adds nothing.
    """
    rule = step.phase.rule
    assert isinstance(rule, LocalUpdates)
    if world.mesh is not None or work.scale != 1.0:
        raise UsageError("local updates need a whole model in float32 or bf16: leave train.shard and dtype fp16 out")
    users = world.share(np.arange(len(drawn)), drawn.sizes(tokens.sizes(drawn.rows)))
    named = trainable_names(model)
    start = {p: p.detach().clone() for p in named}
    sums = Sums()
    for user in users:
        ALONE.seed(seed, step.number)
        moved = _moved(model, tokens, drawn.take(np.array([user])), mask, work, rule, step.number, start)
        _put_back(start)
        norm = float(torch.stack([m.double().square().sum() for m in moved.values()]).sum().sqrt())
        if not np.isfinite(norm):
            continue  # adds nothing: to stop here would tell of this user
        worth = 1.0 if drawn.worth is None else float(drawn.worth[user])
        factor = worth * min(1.0, rule.clip / (norm * SAFETY)) if norm else 0.0
        for p, name in named.items():
            sums.add(name, moved[p] * factor)
    model.zero_grad(set_to_none=True)
    std = rule.noise_multiplier * rule.clip / step.phase.expected

    def noise(tensors: Sequence[Tensor], starts: Sequence[int]) -> None:
        secret.add_gaussian(step.number, tensors, std, 1 / step.phase.expected, starts)

    release_sums(model, sums, [], noise, world)


def _moved(
    model: nn.Module,
    tokens: Tokens,
    user: Units,
    mask: int,
    work: Work,
    rule: LocalUpdates,
    number: int,
    start: dict[nn.Parameter, Tensor],
) -> dict[nn.Parameter, Tensor]:
    """θ − θ_u: what local SGD took away from each parameter. A batch's gradient is the mean of weight · mean loss: weights
    are 1, or w_e of UeDP, and never 1 over the rows of the user, which the mean over the batch is there for."""
    weight = dict(zip(user.rows.tolist(), user.weights.tolist(), strict=True))
    for epoch in range(rule.epochs):
        for rows in _batches(user.rows, rule.batch_size, (number, epoch)):
            model.zero_grad(set_to_none=True)
            for part in microbatches(rows, tokens.sizes(rows), work.token_budget):
                batch = batch_of(tokens, part, mask, model)
                weights = torch.tensor([weight[int(row)] for row in part], device=batch.input_ids.device)
                losses_B = work.losses(model, batch) / scored(batch).clamp_min(1.0)
                ((losses_B * weights).sum() / len(rows)).backward()
            with torch.no_grad():
                for p in start:
                    if p.grad is not None:
                        p.add_(p.grad, alpha=-rule.lr)
    return {p: before - p.detach() for p, before in start.items()}


def _batches(rows: Ints, size: int, seed: tuple[int, int]) -> list[Ints]:
    """A user's records in an order of their own; which one is no secret, as it depends on nothing but the step."""
    order = np.random.Generator(np.random.PCG64(list(seed))).permutation(len(rows))
    return [rows[order[i : i + size]] for i in range(0, len(rows), size)]


def _put_back(start: dict[nn.Parameter, Tensor]) -> None:
    with torch.no_grad():
        for p, before in start.items():
            p.copy_(before)
