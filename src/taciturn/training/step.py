"""One step: whatever its phase's rule is, carried out, and what may be seen of it."""

from __future__ import annotations

import torch
from torch import nn

from taciturn.errors import TaciturnError
from taciturn.models.tokens import Tokens
from taciturn.persample.capture import trainable_names
from taciturn.persample.clip import NotFiniteError
from taciturn.training.plan import Step
from taciturn.training.state.checkpoint import State
from taciturn.training.units.row_groups import Ints, Units
from taciturn.training.updates import release
from taciturn.training.updates.release import Context, Shown
from taciturn.training.values.slots import Slots


def take(step: Step, state: State, tokens: Tokens | Slots, drawn: Ints | Units, run: Context) -> Shown | None:
    """Set ``.grad`` to what the step's rule makes of ``drawn``, and return what a step without noise shows. Of a noised one
    nothing else may be known.

    Raises NotFiniteError for weights that are no numbers, on which clipping is nothing.
    """
    private = step.phase.private
    if private:
        require_finite(state.model)
    shown = release.of(step.phase.rule)(step, state, tokens, drawn, run)
    if private and shown is not None:
        raise TaciturnError(
            f"the rule {type(step.phase.rule).__name__} of phase {step.phase.name!r} returned something of the records that "
            "a noised step drew, which no guarantee covers; its release must return None"
        )
    return shown


def require_finite(model: nn.Module) -> None:
    """Raises NotFiniteError for trainable weights that are no numbers."""
    if not bool(torch.stack(torch._foreach_norm(list(trainable_names(model)))).isfinite().all()):
        raise NotFiniteError("the weights are not finite: the model has diverged; lower the learning rate")
