"""Grouping into units, and the property the accounting rests on: a removal only deletes units, exactly k of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from taciturn.errors import DataError, UsageError
from taciturn.training.units.grouping import (
    Caps,
    Dropped,
    by_user,
    by_user_entity,
    capped,
    check,
    kinds,
    mentions,
    row_keys,
    rows_without_user,
)
from taciturn.training.units.row_groups import Units

UNLIMITED = Caps()


@dataclass(frozen=True)
class Row:
    """A row by itself: its text is its identity, and stays when other rows go."""

    text: str
    user: str | None
    entities: frozenset[str]


Kept = Counter[frozenset[tuple[str, float]]]  # units as sets of (text, weight)


def units_of(rows: Sequence[Row], caps: Caps = UNLIMITED, seed: int = 0) -> tuple[Units, Kept]:
    """The whole way from strings to units, as a run goes it, and the same as plain sets."""
    m = mentions([row.user for row in rows], [row.entities for row in rows])
    units, _ = capped(by_user_entity(m), caps, row_keys([row.text for row in rows], seed))
    return units, Counter(
        frozenset(
            (rows[row].text, float(weight))
            for row, weight in zip(units.of(u), units.weights[units.offsets[u] : units.offsets[u + 1]], strict=True)
        )
        for u in range(len(units))
    )


@st.composite
def corpora(draw: st.DrawFn, most: int = 14) -> list[Row]:
    names = st.sampled_from(["u0", "u1", "u2", "u3", None])
    sets = st.frozensets(st.sampled_from(["e0", "e1", "e2", "e3"]), max_size=3)
    drawn = draw(st.lists(st.tuples(names, sets), min_size=2, max_size=most))
    order = draw(st.permutations(range(len(drawn))))
    return [Row(f"row {i}", user, entities) for i, (user, entities) in zip(order, drawn, strict=True)]


@st.composite
def removals(draw: st.DrawFn) -> tuple[list[Row], list[Row], str]:
    """D, D' and what went: one user (a row that names none is one) and one entity (a row without any is one)."""
    rows = draw(corpora())
    owner = draw(st.sampled_from(sorted({row.user or row.text for row in rows})))
    entity = draw(st.sampled_from(sorted({e for row in rows for e in row.entities or {row.text}})))
    left = [row for row in rows if (row.user or row.text) != owner and entity not in (row.entities or {row.text})]
    assume(any(row.user for row in rows) and any(row.user for row in left))
    return rows, left, owner


def test_rows_without_a_user_or_an_entity_stand_alone() -> None:
    users, entities = ["b", None, "a", "b", ""], [["y", "x", "x"], [], ["z"], [], ["x"]]
    m = mentions(users, entities)
    assert rows_without_user(users) == 2
    assert m.users.tolist() == [0, 1, 2, 0, 3]
    assert [m.of(row).tolist() for row in range(5)] == [[0, 1], [3], [2], [4], [0]]
    assert (m.detected, m.total, m.extended.tolist()) == (3, 5, [False, True, False, True, False])


def test_a_corpus_without_users_is_refused() -> None:
    with pytest.raises(DataError, match="--user FIELD"):
        mentions([None, None], [["x"], []])
    with pytest.raises(UsageError, match="one list for each of 1 rows"):
        mentions(["a"], [])


def test_a_user_is_one_unit_with_a_mean_loss() -> None:
    units = by_user(mentions(["a", "b", "a", "a"], [["x"], [], [], ["y"]]))
    assert [units.of(u).tolist() for u in range(len(units))] == [[0, 2, 3], [1]]
    assert units.weights.tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1])
    assert units.mentions is not None


@given(corpora())
@settings(max_examples=200, deadline=None)
def test_units_against_a_dictionary(rows: list[Row]) -> None:
    assume(any(row.user for row in rows))
    units, found = units_of(rows)
    expected: dict[tuple[object, object], list[str]] = {}
    for row in rows:
        expected.setdefault((row.user or row.text, row.entities or row.text), []).append(row.text)
    lists = [frozenset((text, float(np.float32(1 / len(each)))) for text in each) for each in expected.values()]
    assert found == Counter(lists)
    assert sorted(units.rows.tolist()) == list(range(len(rows)))
    n_e, n_s = kinds(units)
    assert units.mentions is not None
    assert units.mentions.extended[units.rows[units.offsets[:-1]]].tolist() == [False] * n_e + [True] * n_s
    assert n_s == sum(not row.entities for row in rows)


@given(removals())
@settings(max_examples=400, deadline=None)
def test_a_removal_deletes_units_and_nothing_else(pair: tuple[list[Row], list[Row], str]) -> None:
    """Issue: "removing a user and an entity only deletes units, exactly k of them"; no unit is cut or moved."""
    rows, left, _ = pair
    (before, units), (_, after) = units_of(rows), units_of(left)
    gone = {row.text for row in rows} - {row.text for row in left}
    hit = [unit for unit in units if {text for text, _ in unit} & gone]
    assert all({text for text, _ in unit} <= gone for unit in hit)
    assert after - units == Counter()
    assert units - after == Counter(hit)
    assert len(hit) == len(before) - sum(after.values())


@given(removals(), st.integers(1, 3), st.sampled_from([None, 1, 2]), st.integers(0, 5))
@settings(max_examples=400, deadline=None)
def test_a_selecting_cap_deletes_k_and_inserts_at_most_k(
    pair: tuple[list[Row], list[Row], str], most: int, rows_per_unit: int | None, seed: int
) -> None:
    """k: the kept units that the removal takes. What enters belongs to users who stay, one for one."""
    rows, left, owner = pair
    caps = Caps(units_per_user=most, rows_per_unit=rows_per_unit, selects=True)
    (_, units), (_, after) = units_of(rows, caps, seed), units_of(left, caps, seed)
    user = {row.text: row.user or row.text for row in rows}
    gone = set(user) - {row.text for row in left}
    hit = [unit for unit in units if {text for text, _ in unit} & gone]
    assert units - after == Counter(hit)  # exactly the k removed ones leave
    room = Counter(user[next(iter(unit))[0]] for unit in hit)
    entered = Counter(user[next(iter(unit))[0]] for unit in after - units)
    assert sum(entered.values()) <= len(hit)
    assert entered[owner] == 0
    assert entered <= room


@given(corpora(), st.integers(1, 3), st.integers(1, 2), st.integers(0, 5))
@settings(max_examples=200, deadline=None)
def test_what_a_cap_keeps_and_says_it_dropped(rows: list[Row], most: int, per_unit: int, seed: int) -> None:
    assume(any(row.user for row in rows))
    m = mentions([row.user for row in rows], [row.entities for row in rows])
    whole, keys = by_user_entity(m), row_keys([row.text for row in rows], seed)
    kept, dropped = capped(whole, Caps(most, None, per_unit, selects=True), keys)
    expected: list[list[int]] = []
    for user in range(int(m.users.max()) + 1):
        own = [whole.of(u).tolist() for u in range(len(whole)) if m.users[whole.of(u)[0]] == user]
        for unit in sorted(own, key=lambda unit: (keys[unit[0]], unit[0]))[:most]:
            expected.append(sorted(sorted(unit, key=lambda row: (keys[row], row))[:per_unit]))
    found = [kept.of(u).tolist() for u in range(len(kept))]
    assert sorted(found) == sorted(expected)
    sums = np.add.reduceat(kept.weights, kept.offsets[:-1])
    np.testing.assert_allclose(sums, 1, rtol=1e-6)
    lost = set(range(len(rows))) - {row for unit in found for row in unit}
    assert dropped == Dropped(len(whole) - len(kept), len(lost), len({int(m.users[row]) for row in lost}))
    firsts = [kept.mentions.extended[unit[0]] for unit in found] if kept.mentions else []
    assert firsts == sorted(firsts)  # detected before extended, still


def test_no_cap_changes_nothing_and_the_first_can_be_kept() -> None:
    units = by_user_entity(mentions(["a"] * 4, [["x"], [], ["x"], ["y"]]))
    same, dropped = capped(units, UNLIMITED, np.arange(4))
    assert dropped == Dropped(0, 0, 0)
    assert (same.rows.tolist(), same.weights.tolist()) == (units.rows.tolist(), units.weights.tolist())
    kept, dropped = capped(units, Caps(2, None, 1, selects=True), np.arange(4))
    assert [kept.of(u).tolist() for u in range(len(kept))] == [[0], [1]]
    assert (kept.weights.tolist(), dropped) == ([1.0, 1.0], Dropped(1, 2, 1))


def test_keys_choose_among_a_user_s_units_evenly() -> None:
    """2,000 users keep one of four units each: the four counts are even (χ², 3 degrees; false alarm 1e-6: 30.7)."""
    users = [f"u{i // 4}" for i in range(8000)]
    units = by_user_entity(mentions(users, [[f"e{i % 4}"] for i in range(8000)]))
    kept, _ = capped(units, Caps(1, None, None, selects=True), row_keys([f"text {i}" for i in range(8000)], seed=3))
    counts = np.bincount(kept.rows % 4, minlength=4)
    assert counts.sum() == 2000
    assert ((counts - 500) ** 2 / 500).sum() < 30.7


def test_a_broken_contract_names_the_limit_and_no_one() -> None:
    users = ["Ann", "Ann", "Ann", "Bob", "Eve"]
    units = by_user_entity(mentions(users, [["Oslo"], ["Lima"], [], ["Oslo"], ["Oslo"]]))
    check(units, Caps(units_per_user=3, units_per_entity=3))
    with pytest.raises(DataError, match=r"units_per_user: .* 2 units .* 1 of 3 users .* largest has 3") as user:
        check(units, Caps(units_per_user=2))
    with pytest.raises(DataError, match=r"units_per_entity: .* 1 of 3 entities .* largest has 3") as entity:
        capped(units, Caps(units_per_user=1, units_per_entity=2, selects=True), np.arange(5))
    for name in ("Ann", "Bob", "Eve", "Oslo", "Lima"):
        assert name not in str(user.value) + str(entity.value)


@pytest.mark.parametrize(
    "bad", [{"units_per_user": 0}, {"rows_per_unit": -1}, {"units_per_entity": True}, {"selects": True}]
)
def test_caps_that_mean_nothing_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        Caps(**bad)  # type: ignore[arg-type]


def test_units_that_know_nobody_are_refused() -> None:
    bare = Units(np.arange(2), np.array([0, 1, 2]), np.ones(2, np.float32))
    with pytest.raises(UsageError, match="without mentions"):
        check(bare, UNLIMITED)


def greedy(units: Sequence[tuple[str, frozenset[str]]], per_user: int, per_entity: int) -> list[int]:
    """The cap that is not offered: units in a fixed order, each taken if its user and its entities have room."""
    room: Counter[str] = Counter()
    kept = []
    for i, (user, entities) in enumerate(units):
        if room[user] < per_user and all(room[e] < per_entity for e in entities):
            room.update([user, *entities])
            kept.append(i)
    return kept


@pytest.mark.parametrize("entities_per_unit", [2, 1])
def test_a_cap_per_entity_that_selects_has_no_bound(entities_per_unit: int) -> None:
    """Why Caps has none: a removal of k = 1 kept unit exchanges all the others, in a chain.

    Over entities, where a unit is about two and each user has one unit; or, one entity a unit, over users and entities.
    """
    n = 40
    if entities_per_unit == 2:
        units, gone = [(f"u{i}", frozenset({f"e{i}", f"e{i + 1}"})) for i in range(n)], "u0"
    else:
        units, gone = [(f"u{i // 2}", frozenset({f"e{(i + 1) // 2}"})) for i in range(n)], "z"
        units.append(("z", frozenset({"e0"})))  # never kept
    left = [unit for unit in units if unit[0] != gone and "e0" not in unit[1]]
    before, after = ({chosen[i] for i in greedy(chosen, 1, 1)} for chosen in (units, left))
    assert len(before - set(left)) == 1
    assert before == set(units[0:n:2])
    assert after == set(units[1:n:2])
