"""What a step reads. Public batches follow the data seed; private ones the secret source."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import DataError
from taciturn.training.phase import Phase
from taciturn.training.plan import Step
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.samplers import Poisson, PoissonKinds, Shuffle, UserEntity
from taciturn.training.units.row_groups import Ints, Mentions, Units


def draw(step: Step, data_seed: int, secret: SecretSource) -> Ints:
    """The coins that fell, or the rows of a shuffled batch, as numbers; ascending where they are coins. Empty only for
    coins (or an empty part).

    Of a UserEntity sampler coins are numbered in the order of its counts: users, then detected, then extended entities.
    """
    phase = step.phase
    match phase.sampler:
        case Shuffle(size):
            return shuffled(phase.records, size, step.in_phase, data_seed)
        case Poisson(rate):
            return secret.coins(step.number, phase.records, rate)
        case PoissonKinds() | UserEntity() as kinds:
            return secret.coins(step.number, kinds.counts, kinds.rates)
    raise TypeError(f"{type(phase.sampler).__name__} is no sampler")  # Phase lets none in


def shuffled(records: int, size: int, step: int, seed: int) -> Ints:
    """The rows of batch number ``step``: every row once an epoch, in another order each."""
    epoch, i = divmod(step, -(-records // size))
    return _order(records, seed, epoch)[i * size : (i + 1) * size].astype(np.int64)


@lru_cache(maxsize=1)
def _order(records: int, seed: int, epoch: int) -> NDArray[np.integer[Any]]:
    """A permutation, kept for the steps of its epoch: of 10⁸ records it takes half a minute and 400 MB. In small integers it
    is the one that ``permutation`` draws."""
    order: NDArray[np.integer[Any]] = np.arange(records, dtype=np.int32 if records < 2**31 else np.int64)
    np.random.Generator(np.random.PCG64([seed, epoch])).shuffle(order)
    return order


def chosen(phase: Phase, coins: Ints, units: Units | None) -> Ints | Units:
    """The records that ``coins`` let in, or the units with their rows."""
    if units is None:
        return coins
    if not isinstance(phase.sampler, UserEntity):
        return units.take(coins)
    mentions = units.mentions
    if mentions is None:
        raise DataError(f"phase {phase.name!r} draws users and entities, but its records do not say whose they are")
    users = phase.sampler.counts[0]
    fell = np.zeros(sum(phase.sampler.counts), bool)
    fell[coins] = True
    drawn = fell[users:]
    if phase.unit == "user":
        return _gated(units.take(coins[coins < users]), drawn, mentions)
    first = units.rows[units.offsets[:-1]]
    whole = np.minimum.reduceat(drawn[mentions.entities], mentions.offsets[:-1])  # all entities of a row drawn
    return units.take(np.flatnonzero(fell[mentions.users[first]] & whole[first]))


def _gated(users: Units, drawn: NDArray[np.bool_], mentions: Mentions) -> Units:
    """Of each user's rows those with an entity that was drawn; the weight of a row is Σ w_e over these (UeDP, Algorithm 1,
    lines 24–26), w_e being ``mentions.weights``."""
    worth = np.where(drawn, 1.0 if mentions.weights is None else mentions.weights, 0.0)[mentions.entities]
    of_row = np.add.reduceat(worth, mentions.offsets[:-1]).astype(np.float32)[users.rows]
    keep = of_row > 0
    owner = np.repeat(np.arange(len(users)), np.diff(users.offsets))[keep]
    offsets = np.array([0, *accumulate(np.bincount(owner, minlength=len(users)).tolist())], np.int64)
    return Units(users.rows[keep], offsets, (users.weights * of_row)[keep], mentions, users.worth)
