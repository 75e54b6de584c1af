"""How much of what stands behind masks: a record's weights in four tables, added up (docs/guarantees.md §3.7, Lemma 3).

A record with n slots adds min(1, √(m₀/n)) once to each thing that it has, so a vector of norm at most √m₀ in each table; n
is a function of its skeleton, and so is the class of a slot. Of the records of one user the largest weight counts: what one
person writes in every mail is no common value. The tables of values and shapes have keys that nobody knows
beforehand; those of contexts and tails have all pairs of a class and a key that is known by then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from taciturn.training.values.contexts import FOLLOWS
from taciturn.training.values.slots import NONE, TAILS, Slots

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def weights(slots: Slots, record_weight: float) -> Floats:
    """min(1, √(m₀/n)) of each counted record [R]; of its own values it is no function, so that none of them moves others."""
    return np.minimum(1.0, np.sqrt(record_weight / np.maximum(slots.masks, 1)))


def opened(slots: Slots, weight: Floats) -> tuple[Floats, Floats]:
    """Of each value and of each shape the weight of the records that have it."""
    return (
        _counted(slots, slots.value, len(slots.values), weight),
        _counted(slots, slots.shape, len(slots.shapes), weight),
    )


def closed(slots: Slots, weight: Floats, values: Sequence[int], shapes: Sequence[int]) -> tuple[Floats, Floats]:
    """With the keys ``values`` and ``shapes`` known: of each class and key the weight of the records that have the key in
    the class, a slot with a value counting for that, else for its shape, else for the last [C, V + S + 1]; and
    of what comes behind any slot and its tail [|FOLLOWS|, |TAILS|]."""
    size, width = len(slots.contexts), len(values) + len(shapes) + 1
    # a mask without a value has no key: that one is masked takes away and adds nothing
    key = np.where(slots.value == NONE, NONE, slots.context * width + _keys(slots, values, shapes))
    tail = np.where(slots.tail == NONE, NONE, slots.follows * len(TAILS) + slots.tail)
    return (
        _counted(slots, key, size * width, weight).reshape(size, width),
        _counted(slots, tail, len(FOLLOWS) * len(TAILS), weight).reshape(len(FOLLOWS), len(TAILS)),
    )


def _counted(slots: Slots, key: Ints, keys: int, weight: Floats) -> Floats:
    """Of each key, the largest weight of a record that has it, of each user, added up [keys]."""
    there = key != NONE
    record = slots.record[there]
    pairs, first = slots.owner[record] * keys + key[there], np.argsort(-weight[record], kind="stable")
    once, at = np.unique(pairs[first], return_index=True)  # the first of equal ones is the heaviest
    return np.bincount(once % max(keys, 1), weight[record[first[at]]], minlength=keys).astype(np.float64)


def _keys(slots: Slots, values: Sequence[int], shapes: Sequence[int]) -> Ints:
    """Of each slot its value's place among the keys, else its shape's, else the last [S]."""
    places = np.full(len(slots.values) + 1, NONE)
    places[list(values)] = np.arange(len(values))
    forms = np.full(len(slots.shapes) + 1, len(values) + len(shapes))
    forms[list(shapes)] = len(values) + np.arange(len(shapes))
    found = places[slots.value]  # NONE is the last entry
    return np.where(found == NONE, forms[slots.shape], found)
