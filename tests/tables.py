"""Tables of values as vectors, so that the tables of two corpora can be taken from each other."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from taciturn.training.phase_terms import Counts
from taciturn.training.values.contexts import FOLLOWS
from taciturn.training.values.counting import closed, opened, weights
from taciturn.training.values.slots import TAILS, Slots

Vector = Mapping[tuple[Any, ...], float]


def names(slots: Slots) -> tuple[set[str], set[str]]:
    """Values and shapes that stand there."""
    return set(slots.values), set(slots.shapes)


def vector(slots: Slots, rule: Counts, values: Collection[str] = (), shapes: Collection[str] = ()) -> dict[Any, float]:
    """All that is noised, before it is, by what is counted: the open tables, and the closed ones where the keys ``values``
    and ``shapes`` were shown."""
    weight = weights(slots, rule.record_weight)
    kept = (
        [i for i, v in enumerate(slots.values) if v in values],
        [i for i, v in enumerate(slots.shapes) if v in shapes],
    )
    by_value, by_shape, by_context, by_tail = rule.shares
    found: dict[Any, float] = {}
    value, shape = opened(slots, weight)
    found |= {("value", name): by_value * count for name, count in zip(slots.values, value, strict=True)}
    found |= {("shape", name): by_shape * count for name, count in zip(slots.shapes, shape, strict=True)}
    context, tail = closed(slots, weight, *kept)
    keys = [*(("value", slots.values[i]) for i in kept[0]), *(("shape", slots.shapes[i]) for i in kept[1]), ("rest",)]
    for at, around in enumerate(slots.contexts.classes):
        found |= {("context", around, key): by_context * context[at, j] for j, key in enumerate(keys)}
    for at, follows in enumerate(FOLLOWS):
        found |= {("tail", follows, end): by_tail * tail[at, j] for j, end in enumerate(TAILS)}
    return found


def minus(one: Vector, other: Vector) -> dict[tuple[Any, ...], float]:
    return {key: one.get(key, 0.0) - other.get(key, 0.0) for key in {**one, **other}}


def norm(v: Vector, tables: Sequence[str] = ("value", "shape", "context", "tail")) -> float:
    return math.sqrt(sum(x * x for key, x in v.items() if key[0] in tables))
