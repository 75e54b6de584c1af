"""One step, by its phase's rule: what a plain batch shows the model, and what a noised one releases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from numpy import arange, int64
from numpy.typing import NDArray

from taciturn.models.sensitive import Sensitive
from taciturn.models.tokens import Tokens, packed
from taciturn.persample.capture import trainable_names
from taciturn.persample.clip import NotFiniteError
from taciturn.training.distributed.processes import World
from taciturn.training.fill import filled
from taciturn.training.passes import Work
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import LocalUpdates, SelectiveState
from taciturn.training.plan import Step
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.state.checkpoint import State
from taciturn.training.units.row_groups import Units
from taciturn.training.updates.federated import local_gradient
from taciturn.training.updates.gradients import private_gradient
from taciturn.training.updates.selective import selective_gradient


def never_filled(tokenizer: Any, model: Any) -> list[int]:
    """Ids that no fill may be: special ones, and those of which the tokenizer knows nothing."""
    return [*tokenizer.all_special_ids, *range(len(tokenizer), model.config.vocab_size)]


def model_input(
    phase: Phase,
    filler: Any,
    tokens: Tokens,
    rows: NDArray[int64],
    mask: int,
    seed: tuple[int, ...],
    never: Sequence[int],
) -> tuple[Tokens, NDArray[int64]]:
    """A plain batch as the model is to see it: its masks filled, its records packed, where the phase says so."""
    if phase.fill is not None:
        tokens = filled(filler, tokens, rows, mask, seed, phase.fill.longest, phase.fill.loss, never=never)
        rows = arange(len(tokens))
    if phase.packed:
        tokens = packed(tokens, rows, phase.packed, mask)
        rows = arange(len(tokens))
    return tokens, rows


def noised(
    state: State,
    tokens: Tokens,
    drawn: NDArray[int64] | Units,
    mask: int,
    work: Work,
    step: Step,
    secret: SecretSource,
    seed: int,
    world: World,
) -> None:
    """Set ``.grad`` to what the mechanism releases; nothing else of the records drawn may be known. seed: of dropout in
    local updates, the one form that noised steps know."""
    name, rule, model = step.phase.name, step.phase.rule, state.model
    if not bool(torch.stack(torch._foreach_norm(list(trainable_names(model)))).isfinite().all()):
        raise NotFiniteError("the weights are not finite: the model has diverged; lower the learning rate")
    if isinstance(rule, SelectiveState):
        assert not isinstance(drawn, Units)
        assert tokens.sensitive is not None
        selective_gradient(model, Sensitive(tokens, tokens.sensitive), drawn, work, step, secret, world)
        return
    if isinstance(rule, LocalUpdates):
        assert isinstance(drawn, Units)
        local_gradient(model, tokens, drawn, mask, work, step, secret, seed, world)
        return
    state.clips[name] = private_gradient(model, tokens, drawn, mask, work, step, secret, state.clips[name], world)
