"""One release of how often values stand behind masks: counted, noised, and only what is common shown (guarantees.md §3.7).

Which strings are counted at all is secret: a string that only one record holds has its noise and its threshold like all
others, and what is shown is in the order of the alphabet.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from taciturn.training.phase_terms import Counts
from taciturn.training.plan import Step
from taciturn.training.randomness.gaussian import SecretSource, grid_of
from taciturn.training.state.checkpoint import State
from taciturn.training.updates.release import Context
from taciturn.training.values.counting import closed, opened, weights
from taciturn.training.values.slots import Slots
from taciturn.training.values.table import Table

Floats = NDArray[np.float64]


def release(step: Step, state: State, slots: Slots, drawn: NDArray[np.int64], run: Context) -> None:  # noqa: ARG001  all are
    """Put the table of the step's phase into ``state.tables``. No gradient: the step moves no weight."""
    assert isinstance(step.phase.rule, Counts)
    state.tables[step.phase.name] = noised(slots, step.phase.rule, run.secret, step.number)


def noised(slots: Slots, rule: Counts, secret: SecretSource, step: int) -> Table:
    """All counts, in the rule's ``shares``, with noise of standard deviation σ_h; of values and shapes those above τ."""
    std, by_value, by_shape, by_context, by_tail = rule.release.std, *rule.shares
    weight = weights(slots, rule.record_weight)
    values, shapes = opened(slots, weight)
    _add_noise(secret, step, (values, shapes), (by_value, by_shape), std, 0)
    least = rule.threshold + grid_of(std) / 2  # a count that was rounded up to what is shown was above τ as well
    kept_values = _above(slots.values, by_value * values, least)
    kept_shapes = _above(slots.shapes, by_shape * shapes, least)
    contexts, tails = closed(slots, weight, kept_values, kept_shapes)
    _add_noise(secret, step, (contexts, tails), (by_context, by_tail), std, len(values) + len(shapes))
    return Table(
        tuple(slots.values[i] for i in kept_values),
        tuple(slots.shapes[i] for i in kept_shapes),
        slots.contexts,
        values[kept_values],
        shapes[kept_shapes],
        contexts,
        tails,
        (std / by_value, std / by_shape, std / by_context, std / by_tail),
    )


def _add_noise(
    secret: SecretSource, step: int, counts: tuple[Floats, Floats], shares: tuple[float, float], std: float, start: int
) -> None:
    """In place: the noise of ``share`` times the count, in units of the count, on the grid of all noise here
    (docs/noise.md). ``start`` keeps a second call off the first one's draws."""
    for array, share in zip(counts, shares, strict=True):
        flat = array.reshape(-1) * share
        secret.add_gaussian(step, [torch.from_numpy(flat)], std, starts=[start])
        array[...] = (flat / share).reshape(array.shape)
        start += flat.size


def _above(names: tuple[str, ...], counts: Floats, threshold: float) -> list[int]:
    return sorted(np.flatnonzero(counts > threshold).tolist(), key=names.__getitem__)
