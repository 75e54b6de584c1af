"""What one coin draws and one clip bounds, when it is not a single record: rows of the data, grouped. Numpy only.

A user, a user's sentences about one set of entities, or a record beside its skeleton: each is a unit, and its loss is
Σ weight · loss of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Mentions:
    """Who wrote each row and which entities it is about. Detected entities are numbered from 0, extended ones from
    ``detected`` on: a row in which nothing is detected is an entity of its own (UeDP, section V.B).

    users: [rows], numbers from 0. entities, offsets: row r is about entities[offsets[r] : offsets[r + 1]], ascending and
    never empty. detected: how many detected entities there are. total: how many of both kinds. weights: [total], w_e and
    w_s of UeDP's Algorithm 1; None for ones.
    """

    users: Ints
    entities: Ints
    offsets: Ints
    detected: int
    total: int
    weights: Floats | None = None

    def __len__(self) -> int:
        return len(self.users)

    def of(self, row: int) -> Ints:
        """The entities of a row."""
        return self.entities[self.offsets[row] : self.offsets[row + 1]]

    @property
    def extended(self) -> NDArray[np.bool_]:
        """[rows]: whether nothing is detected in the row."""
        return self.entities[self.offsets[:-1]] >= self.detected


@dataclass(frozen=True, slots=True)
class Units:
    """Unit u has the rows rows[offsets[u] : offsets[u + 1]], each with a weight in its loss; a unit may have no row.

    rows, weights: [n]. offsets: [U + 1]. mentions: of the rows of the data; None where nobody asks. worth: [U], what a
    unit's clipped gradient is multiplied by, at most 1 (w_u of UeDP's Algorithm 1); None for ones.
    """

    rows: Ints
    offsets: Ints
    weights: Floats
    mentions: Mentions | None = None
    worth: Floats | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of(self, unit: int) -> Ints:
        """The rows of a unit."""
        return self.rows[self.offsets[unit] : self.offsets[unit + 1]]

    @property
    def counts(self) -> Ints:
        """How many rows each unit has, [U]."""
        return np.diff(self.offsets)

    def take(self, units: Ints) -> Units:
        """These units alone, numbered anew."""
        counts = self.counts[units]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        at = np.arange(offsets[-1]) + np.repeat(self.offsets[units] - offsets[:-1], counts)
        worth = None if self.worth is None else self.worth[units]
        return Units(self.rows[at], offsets, self.weights[at], self.mentions, worth)

    def sizes(self, tokens: Ints) -> Ints:
        """Tokens of each unit, [U], from those of each of its ``rows``."""
        total = np.concatenate([[0], np.cumsum(tokens)])
        found: Ints = np.diff(total[self.offsets])
        return found


def grouped(owner: Ints, units: int, weights: Floats | None = None) -> Units:
    """Units from the number of each row's unit, [rows] (−1: in none); rows keep their order within a unit."""
    rows = np.flatnonzero(owner >= 0)
    rows = rows[np.argsort(owner[rows], kind="stable")]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner[rows], minlength=units))]).astype(np.int64)
    each = np.ones(len(rows), np.float32) if weights is None else weights[rows]
    return Units(rows.astype(np.int64), offsets, each)


def of_lists(lists: Sequence[Sequence[tuple[int, float]]]) -> Units:
    """Units from their (row, weight) pairs, one list a unit.

    >>> of_lists([[(0, 1.0), (2, -1.0)], []]).offsets.tolist()
    [0, 2, 2]
    """
    flat = [pair for each in lists for pair in each]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)
    rows, weights = np.array([r for r, _ in flat], np.int64), np.array([w for _, w in flat], np.float32)
    return Units(rows, offsets, weights)
