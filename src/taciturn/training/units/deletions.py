"""Where a corpus stands on a UeDP guarantee's curve: how many units each user–entity removal deletes. Numpy only.

The guarantee is a curve ε_k in the number k of deleted units (docs/guarantees.md, UeDP; ``privacy.units``). These are
exact counts over every pair (u', e') of the corpus, extended entities included. They are facts about the private text,
so a certificate that prints them tells them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.errors import UsageError
from taciturn.training.units.grouping import first_rows, incidence, mentions_of
from taciturn.training.units.row_groups import Ints, Mentions, Units


@dataclass(frozen=True, slots=True)
class DeletionQuantiles:
    """k over all user–entity pairs: half of them delete at most ``median`` units, 95 % at most ``p95``, each one at most
    ``largest``. pairs: how many there are.
    """

    median: int
    p95: int
    largest: int
    pairs: int


def deletions(units: Units) -> Ints:
    """[largest k + 1]: how many pairs (user, entity) delete exactly k units, users × entities pairs in all.

    k(u, e) = units of u + units about e − units of u about e. Histograms of the first two are convolved over their distinct
    values (n units have at most √2n of them); then each pair that occurs together is moved from its place to the right one.

    Raises:
        UsageError: the rows of a unit differ in user or entities; a removal would then change units, not delete them.
    """
    m, first = mentions_of(units), first_rows(units)
    unit, entity = incidence(units)
    if len(unit) != int(np.diff(m.offsets)[first].sum()) or _mixed(units, m, first):
        raise UsageError(
            "units: expected rows about the same entities in each, found a unit about several sets of them"
        )
    of_user = np.bincount(m.users[first], minlength=int(m.users.max(initial=-1)) + 1)
    about = np.bincount(entity, minlength=m.total)
    found = np.zeros(int(of_user.max(initial=0) + about.max(initial=0)) + 1, np.int64)
    (a, times_a), (b, times_b) = (np.unique(each, return_counts=True) for each in (of_user, about))
    np.add.at(found, a[:, None] + b, times_a[:, None] * times_b)
    pairs, both = np.unique(m.users[first[unit]] * m.total + entity, return_counts=True)
    apart = of_user[pairs // max(m.total, 1)] + about[pairs % max(m.total, 1)]
    np.add.at(found, apart, -1)
    np.add.at(found, apart - both, 1)
    return found[: int(np.flatnonzero(found).max(initial=0)) + 1]


def deletion_quantiles(units: Units) -> DeletionQuantiles:
    """Median, 95 % and largest k of a corpus's units, after any cap."""
    found = deletions(units)
    upto = np.cumsum(found)
    median, p95 = (int(np.searchsorted(100 * upto, percent * upto[-1])) for percent in (50, 95))
    return DeletionQuantiles(median, p95, len(found) - 1, int(upto[-1]))


def covered(found: Ints, k: int) -> float:
    """Share of the pairs of :func:`deletions` that delete at most k units: those to whom ε_k is said."""
    return float(found[: k + 1].sum() / found.sum()) if found.sum() else 1.0


@dataclass(frozen=True, slots=True)
class Reach:
    """The largest counts that two-level coins are charged for, with the names of ``privacy.units.TwoLevel``.

    users_per_entity: the removed user may not hold the entity, so all its holders count.
    """

    units_per_user: int
    users_per_entity: int
    units_per_user_entity: int


def deletion_bounds(units: Units) -> Reach:
    """M, K and L of a corpus's units, after any cap."""
    m, first = mentions_of(units), first_rows(units)
    unit, entity = incidence(units)
    pairs, both = np.unique(m.users[first[unit]] * m.total + entity, return_counts=True)
    most_units = int(np.bincount(m.users[first]).max(initial=0))
    most_users = int(np.bincount(pairs % max(m.total, 1)).max(initial=0))
    return Reach(most_units, most_users, int(both.max(initial=0)))


def holders(m: Mentions) -> int:
    """The most users who hold one entity: K of ``privacy.published``, as the removed user may be none of them."""
    users = np.repeat(m.users, np.diff(m.offsets))
    pairs = np.unique(users * m.total + m.entities)
    return int(np.bincount(pairs % max(m.total, 1)).max(initial=0))


def _mixed(units: Units, m: Mentions, first: Ints) -> bool:
    """Whether a row is about fewer or more entities than the first of its unit."""
    lengths = np.diff(m.offsets)
    return bool((lengths[units.rows] != np.repeat(lengths[first], units.counts)).any())
