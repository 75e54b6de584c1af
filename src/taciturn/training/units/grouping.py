"""Rows of a corpus grouped into the units of user-level DP and of UeDP, and caps on them. Numpy only; pure functions.

Removing user u' and entity e' (UeDP, Definition 2) takes out every row of u' and every row about e'. The rows of a
(user, entity set) unit share both, so a unit goes whole or stays untouched: a removal only deletes units
(docs/guarantees.md, UeDP). A cap that chooses among units gives that up, see :class:`Caps`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import count

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import DataError, UsageError
from taciturn.training.units.row_groups import Ints, Mentions, Units, grouped

Keys = NDArray[np.uint64] | Ints


def mentions(users: Sequence[str | None], entities: Sequence[Iterable[str]]) -> Mentions:
    """Who wrote each row, and the entities detected in it; both have one item a row.

    Users are numbered by first appearance, detected entities in sorted order. A row without a user is a user of its own
    (:func:`unnamed` counts them), a row without an entity an entity of its own (UeDP V.B, extended entities).

    Raises:
        DataError: no row has a user.

    >>> m = mentions(["ann", "bob", "ann"], [["Oslo", "Lima"], [], ["Lima"]])
    >>> m.users.tolist(), [m.of(row).tolist() for row in range(3)], m.detected, m.total
    ([0, 1, 0], [[0, 1], [2], [0]], 2, 3)
    """
    if len(users) != len(entities):
        raise UsageError(f"entities: expected one list for each of {len(users)} rows, found {len(entities)}")
    if rows_without_user(users) == len(users):
        raise DataError(
            f"users: none of the {len(users)} records names its user, and privacy of a user needs to know whose each record "
            "is; screen again with --user FIELD, the field that says it"
        )
    sets = [set(each) for each in entities]
    numbers = {name: i for i, name in enumerate(sorted(set().union(*sets)))}
    known: dict[str | int, int] = {}
    owner = [known.setdefault(user or row, len(known)) for row, user in enumerate(users)]
    extended = count(len(numbers))
    about = [sorted(numbers[name] for name in each) if each else [next(extended)] for each in sets]
    flat = np.array([number for each in about for number in each], np.int64)
    detected, total = len(numbers), len(numbers) + sum(not each for each in sets)
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in about])]).astype(np.int64)
    return Mentions(np.array(owner, np.int64), flat, offsets, detected, total)


def rows_without_user(users: Sequence[str | None]) -> int:
    """How many rows say no user: each is protected as if a person had written nothing else."""
    return sum(not user for user in users)


def by_user(m: Mentions) -> Units:
    """One unit a user (McMahan et al. 2018); its loss is the mean over the user's rows."""
    return _of_mean_loss(m.users, m)


def by_user_entity(m: Mentions) -> Units:
    """One unit a (user, entity set of the row), its loss the mean over its rows; an extended row is a unit alone.

    Units of detected entities come first, then the extended ones (:func:`kinds` counts both), each in the order of their
    first rows.

    >>> units = by_user_entity(mentions(["ann", "bob", "ann", "ann"], [["Lima"], [], ["Oslo"], ["Lima"]]))
    >>> [units.of(u).tolist() for u in range(len(units))], kinds(units)
    ([[0, 3], [2], [1]], (2, 1))
    """
    known: dict[tuple[int, bytes], int] = {}
    unit = np.empty(len(m), np.int64)
    for row in np.argsort(m.extended, kind="stable").tolist():
        unit[row] = known.setdefault((int(m.users[row]), m.of(row).tobytes()), len(known))
    return _of_mean_loss(unit, m)


def kinds(units: Units) -> tuple[int, int]:
    """How many units are about detected entities, and how many about extended ones."""
    extended = int(mentions_of(units).extended[first_rows(units)].sum())
    return len(units) - extended, extended


def _of_mean_loss(unit: Ints, m: Mentions) -> Units:
    """Units from the number of each row's unit, every row weighted 1 / rows of its unit."""
    rows = np.bincount(unit)
    return replace(grouped(unit, len(rows), (1 / rows[unit]).astype(np.float32)), mentions=m)


@dataclass(frozen=True, slots=True)
class Caps:
    """How large a corpus may be where a removal is felt; None is no limit.

    units_per_user, units_per_entity: contracts. A corpus that breaks one is refused, so a removal still only deletes.
    selects: ``units_per_user`` drops the units beyond it instead. A removal then makes room: k deletions and up to k
    insertions, to be accounted for so (``privacy.units``, ``selects=True``).
    rows_per_unit: rows beyond it are dropped. Always free: which rows of a unit stay depends on that unit alone.

    ``units_per_entity`` never selects. A unit is about several entities, so a unit that takes a freed place may close the
    place of a third one, which opens that of a fourth: with one unit an entity, units about {1}, {1,2}, {2,3}, {3,4}, ...
    keep the 1st, 3rd, 5th, ...; without the first, the 2nd, 4th, ... So one removed unit changes all of them. The same chain
    runs over users and entities by turns as soon as both select. Places in a ranking of all units, dropped ones too, have
    no chains, but there the dropped units that a removal takes make room as well, and k does not count them.
    """

    units_per_user: int | None = None
    units_per_entity: int | None = None
    rows_per_unit: int | None = None
    selects: bool = False

    def __post_init__(self) -> None:
        for name in ("units_per_user", "units_per_entity", "rows_per_unit"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise UsageError(f"{name}: expected a whole number ≥ 1, or nothing for no limit, found {value!r}")
        if self.selects and self.units_per_user is None:
            raise UsageError("selects: expected units_per_user beside it, the limit that drops units, found none")


@dataclass(frozen=True, slots=True)
class Dropped:
    """What caps took out. rows: in dropped units and in shortened ones. users: who lost any row."""

    units: int
    rows: int
    users: int


def check(units: Units, caps: Caps) -> None:
    """Refuse a corpus that breaks a contract of ``caps``.

    Raises:
        DataError: names the limit, how many users or entities exceed it, and by how much; never which.
    """
    m = mentions_of(units)
    if not caps.selects:
        advice = "raise the limit, or let it select, which the guarantee then counts as insertions too"
        _within("units_per_user", caps.units_per_user, m.users[first_rows(units)], "users", advice)
    advice = "raise the limit or leave it out (this limit cannot select: one removal would change many units)"
    _within("units_per_entity", caps.units_per_entity, incidence(units)[1], "entities", advice)


def _within(name: str, limit: int | None, holders: Ints, what: str, advice: str) -> None:
    counts = np.bincount(holders)
    if limit is not None and (over := int((counts > limit).sum())):
        raise DataError(
            f"{name}: expected at most {limit} units for each, found {over} of {int((counts > 0).sum())} {what} with more "
            f"(the largest has {int(counts.max())}); {advice}"
        )


def row_keys(names: Iterable[str | bytes], seed: int) -> NDArray[np.uint64]:
    """[rows]: pseudo-random priorities for :func:`capped`, from what each row is by itself, such as its text.

    A name must not shift when other rows go: a running number does, and so does a record id that ends in one.

    >>> len(set(row_keys(["a", "b", "a"], seed=0).tolist()))
    2
    """
    key = b"%d" % seed
    raw = (name.encode("utf-8", "surrogatepass") if isinstance(name, str) else name for name in names)
    return np.frombuffer(b"".join(blake2b(each, digest_size=8, key=key).digest() for each in raw), np.dtype("<u8"))


def capped(units: Units, caps: Caps, keys: Keys) -> tuple[Units, Dropped]:
    """Check the contracts of ``caps``, then drop what it drops: the units and rows of higher keys.

    Args:
        keys: [rows of the data], see :func:`row_keys`; ``np.arange`` keeps what comes first. Units are ordered by the key of
            their first row, then by that row's place, an order that no removal changes among those that stay. So each
            user keeps the first M units of a fixed order, users do not touch each other, and a removed unit makes room
            for one other of its user at most.

    Raises:
        DataError: see :func:`check`.
    """
    check(units, caps)
    users, first = mentions_of(units).users, first_rows(units)
    keep = np.ones(len(units), np.bool_)
    if caps.selects and caps.units_per_user is not None:
        keep = _rank(users[first], keys[first], first) < caps.units_per_user
    kept = _shortened(units.take(np.flatnonzero(keep)), caps.rows_per_unit, keys)
    lost = np.setdiff1d(units.rows, kept.rows)
    return kept, Dropped(len(units) - len(kept), len(lost), len(np.unique(users[lost])))


def _shortened(units: Units, most: int | None, keys: Keys) -> Units:
    """At most ``most`` rows in each unit; the weights of those that stay grow, so that a unit's sum is what it was."""
    if most is None:
        return units
    unit = np.repeat(np.arange(len(units)), units.counts)
    stay = _rank(unit, keys[units.rows], units.rows) < most
    whole, left = (np.bincount(unit[rows], units.weights[rows], len(units)) for rows in (slice(None), stay))
    weights = (units.weights[stay] * (whole / left)[unit[stay]]).astype(np.float32)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(unit[stay], minlength=len(units)))]).astype(np.int64)
    return replace(units, rows=units.rows[stay], offsets=offsets, weights=weights)


def _rank(group: Ints, keys: Keys, then: Ints) -> Ints:
    """Place of each item within its group, from 0, by key and, for equal keys, by ``then``."""
    order = np.lexsort((then, keys, group))
    sizes = np.bincount(group)
    found = np.empty(len(group), np.int64)
    found[order] = np.arange(len(group)) - (np.cumsum(sizes) - sizes)[group[order]]
    return found


def first_rows(units: Units) -> Ints:
    """[units]: the first row of each.

    Raises:
        UsageError: a unit has no row, or its rows are of several users.
    """
    if len(units) and not units.counts.all():
        raise UsageError("units: expected at least one row in each, found a unit without any")
    first = units.rows[units.offsets[:-1]]
    users = mentions_of(units).users
    if (users[units.rows] != np.repeat(users[first], units.counts)).any():
        raise UsageError("units: expected the rows of one user in each, found a unit of several users")
    return first


def incidence(units: Units) -> tuple[Ints, Ints]:
    """Distinct pairs (unit, entity that a row of it is about), as two arrays, by unit."""
    m = mentions_of(units)
    unit = np.repeat(np.arange(len(units)), units.counts)
    lengths = np.diff(m.offsets)[units.rows]
    start = np.repeat(m.offsets[units.rows] - (np.cumsum(lengths) - lengths), lengths)
    entity = m.entities[start + np.arange(int(lengths.sum()))]
    pairs = np.unique(np.repeat(unit, lengths) * m.total + entity)
    return pairs // max(m.total, 1), pairs % max(m.total, 1)


def mentions_of(units: Units) -> Mentions:
    """Raises UsageError for units that do not know their users and entities."""
    if units.mentions is None:
        raise UsageError("units: expected units that know their users and entities, found units without mentions")
    return units.mentions
