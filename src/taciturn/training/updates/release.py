"""What carries out a rule, by its term: one module for each, with one function ``release``.

A new rule is a file beside these and its line in ``UPDATES`` (docs/how-to/new-rule.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

from taciturn.errors import UsageError, nearest
from taciturn.training.distributed.processes import World
from taciturn.training.passes import Work
from taciturn.training.phase_terms import ClipNoise, Counts, LocalUpdates, Plain, Residual, Rule, SelectiveState
from taciturn.training.plan import Seeds, Step
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.state.checkpoint import State
from taciturn.training.units.row_groups import Ints, Units
from taciturn.training.values.fill import Filler

UPDATES: dict[type[Any], str] = {
    Plain: "taciturn.training.updates.plain",
    ClipNoise: "taciturn.training.updates.clip_noise",
    SelectiveState: "taciturn.training.updates.selective",
    Residual: "taciturn.training.updates.residual",
    LocalUpdates: "taciturn.training.updates.federated",
    Counts: "taciturn.training.updates.counts",
}
"""Term -> module whose ``release`` carries it out; imported when a step needs it."""


@dataclass(frozen=True, slots=True)
class Context:
    """What all steps of a run have in common.

    mask: the id of `<MASK>`. initial: the model as training began, where a phase fills masks with it. never: ids that no
    fill may be. plain, clipped: how passes without and with per-unit gradients are run. fillers: of each phase whose masks a
    table fills, what does.
    """

    mask: int
    initial: Any
    never: tuple[int, ...]
    plain: Work
    clipped: Work
    secret: SecretSource
    seeds: Seeds
    world: World
    fillers: Mapping[str, Filler] = field(default_factory=dict)


class Shown(NamedTuple):
    """What a step without noise may show: its loss per target (None: no target), and the tokens it read."""

    loss: float | None
    tokens: int


Release = Callable[[Step, State, Any, Ints | Units, Context], Shown | None]
"""(step, state, the phase's data (Tokens, or Slots where it counts), rows or units drawn, context): sets ``.grad`` of the
model, and changes nothing else but ``state.clips`` and ``state.tables`` of its phase. Of the records that a noised step
drew, nothing but the noised sum may be known: it returns None."""


def of(rule: Rule) -> Release:
    """The function that carries out ``rule``. UsageError for a term that has none."""
    where = UPDATES.get(type(rule))
    if where is None:
        name = type(rule).__name__
        raise UsageError(f"no update is registered for the rule {name}; {nearest(name, [t.__name__ for t in UPDATES])}")
    release: Release = import_module(where).release
    return release
