"""Where a corpus stands: exact counts against enumeration of every pair, and against removals carried out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from taciturn.errors import UsageError
from taciturn.training.units.deletions import (
    DeletionQuantiles,
    covered,
    deletion_bounds,
    deletion_quantiles,
    deletions,
    holders,
)
from taciturn.training.units.grouping import Caps, by_user, by_user_entity, capped, mentions
from taciturn.training.units.row_groups import Mentions, Units
from timing import seconds

rows_of = st.lists(
    st.tuples(
        st.sampled_from(["u0", "u1", "u2", None]), st.frozensets(st.sampled_from(["e0", "e1", "e2"]), max_size=3)
    ),
    min_size=1,
    max_size=12,
)
caps_of = st.sampled_from([Caps(), Caps(1, selects=True), Caps(2, None, 1, selects=True)])


def built(rows: list[tuple[str | None, frozenset[str]]], caps: Caps) -> tuple[Mentions, Units]:
    m = mentions([user for user, _ in rows], [entities for _, entities in rows])
    return m, capped(by_user_entity(m), caps, np.arange(len(m)))[0]


def sets(m: Mentions, units: Units) -> list[tuple[int, set[int]]]:
    """User and entities of each unit, from all its rows."""
    return [
        (int(m.users[units.of(u)[0]]), {e for r in units.of(u) for e in m.of(int(r)).tolist()})
        for u in range(len(units))
    ]


@given(rows_of, caps_of)
@settings(max_examples=300, deadline=None)
def test_every_pair_is_counted_exactly(rows: list[tuple[str | None, frozenset[str]]], caps: Caps) -> None:
    """k by enumeration: the units that are of the user or about the entity."""
    assume(any(user for user, _ in rows))
    m, units = built(rows, caps)
    known = sets(m, units)
    ks = sorted(
        sum(user == u or entity in about for u, about in known)
        for user, entity in product(range(int(m.users.max()) + 1), range(m.total))
    )
    found = deletions(units)
    assert found.tolist() == np.bincount(ks).tolist()
    at = [ks[-(-percent * len(ks) // 100) - 1] for percent in (50, 95)]
    assert deletion_quantiles(units) == DeletionQuantiles(at[0], at[1], ks[-1], len(ks))
    for k in range(len(found) + 1):
        assert covered(found, k) == pytest.approx(np.mean(np.array(ks) <= k))


@given(rows_of, caps_of)
@settings(max_examples=200, deadline=None)
def test_reach_against_enumeration(rows: list[tuple[str | None, frozenset[str]]], caps: Caps) -> None:
    assume(any(user for user, _ in rows))
    m, units = built(rows, caps)
    known, users, entities = sets(m, units), range(int(m.users.max()) + 1), range(m.total)
    found = deletion_bounds(units)
    assert found.units_per_user == max(sum(u == user for u, _ in known) for user in users)
    assert found.users_per_entity == max(len({u for u, about in known if e in about}) for e in entities)
    both = [sum(u == user and e in about for u, about in known) for user, e in product(users, entities)]
    assert found.units_per_user_entity == max(both)
    of_rows = [len({int(m.users[r]) for r in range(len(m)) if e in m.of(r)}) for e in entities]
    assert holders(m) == max(of_rows) == deletion_bounds(by_user_entity(m)).users_per_entity


def test_a_worked_example() -> None:
    """ann has 3 units, Oslo has 3 (one of them ann's): the pair deletes 5. The extended row is an entity with 1 unit."""
    users = ["ann", "ann", "ann", "bob", "eve"]
    units = by_user_entity(mentions(users, [["Oslo"], ["Lima"], [], ["Oslo"], ["Oslo", "Lima"]]))
    # users × (Lima, Oslo, the extended row): ann 3+2−1, 3+3−1, 3+1−1; bob 1+2, 1+3−1, 1+1; eve 1+2−1, 1+3−1, 1+1
    assert deletions(units).tolist() == [0, 0, 3, 4, 1, 1]
    assert deletion_quantiles(units) == DeletionQuantiles(median=3, p95=5, largest=5, pairs=9)
    assert (
        deletion_bounds(units).units_per_user,
        deletion_bounds(units).users_per_entity,
        deletion_bounds(units).units_per_user_entity,
    ) == (3, 3, 1)


def test_units_that_a_removal_would_change_have_no_k() -> None:
    with pytest.raises(UsageError, match="several sets"):
        deletion_quantiles(by_user(mentions(["a", "a"], [["x"], ["y"]])))
    with pytest.raises(UsageError, match="several sets"):
        deletion_quantiles(by_user(mentions(["a", "a"], [["x", "y"], ["x"]])))
    with pytest.raises(UsageError, match="without mentions"):
        deletion_quantiles(Units(np.arange(1), np.array([0, 1]), np.ones(1, np.float32)))


def test_ten_thousand_users_and_a_hundred_thousand_entities() -> None:
    """Heavy tails and a billion pairs: a fraction of a second of processor time, with room for a busy machine."""
    rng = np.random.Generator(np.random.PCG64(0))
    rows, n_users, n_entities = 200_000, 10_000, 100_000
    users = np.minimum(rng.zipf(1.4, rows) - 1, n_users - 1)
    users[:n_users] = np.arange(n_users)
    entities = np.sort(np.minimum(rng.zipf(1.2, (rows, 2)) - 1, n_entities // 2 - 1) * 2 + np.arange(2), axis=1)
    entities[:n_entities] = np.arange(n_entities)[:, None]
    keep = np.ones((rows, 2), np.bool_)
    keep[:, 1] = entities[:, 0] != entities[:, 1]
    offsets = np.concatenate([[0], np.cumsum(keep.sum(1))])
    units = by_user_entity(Mentions(users, entities[keep], offsets, n_entities, n_entities))
    found = deletion_quantiles(units)
    assert seconds(lambda: deletion_quantiles(units)) < 10
    assert found.pairs == n_users * n_entities
    assert found.median <= found.p95 < found.largest
