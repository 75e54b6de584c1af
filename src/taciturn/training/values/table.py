"""A released table of common values, and what is drawn from it: all of this is post-processing (guarantees.md §3.7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from taciturn.errors import DataError
from taciturn.training.values.contexts import FOLLOWS, Context, Contexts
from taciturn.training.values.shapes import NOTHING, Known, made, shape
from taciturn.training.values.slots import TAILS, parted

FORMAT = "taciturn-values/1"
CLEAR = 3.0
"""Standard deviations of noise below which a count in one context says nothing."""
SPREAD = 60.0
"""Records that the counts of all contexts together are worth in each."""
FILLED = 0.2
"""Share of the masks of a context that are filled at least, once the table has a key."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Table:
    """Noised counts, in records' weight. values [V], shapes [S], with their counts in all contexts, ``value_counts`` and
    ``shape_counts``; in_context [C, V + S + 1]: of each value and of each shape of other values, the last column of what is
    neither; tails [|FOLLOWS|, |TAILS|]. stds: standard deviation of the noise of these four, in that order."""

    values: tuple[str, ...]
    shapes: tuple[str, ...]
    contexts: Contexts
    value_counts: Floats
    shape_counts: Floats
    in_context: Floats
    tails: Floats
    stds: tuple[float, float, float, float]
    names: frozenset[str] = field(init=False, repr=False, compare=False)
    drawn: Drawn = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozenset(self.values))
        object.__setattr__(self, "drawn", _drawn(self))

    def draw(
        self, context: int, follows: int, count: int, random: np.random.Generator, known: Known = NOTHING
    ) -> list[str]:
        """``count`` values for a mask in a context, each with its tail. known: of what shapes are made."""
        keys = np.searchsorted(self.drawn.keys[context], random.random(count), side="right")
        return [self._named(int(key), random, known) + self.tail(follows, random) for key in keys]

    def tail(self, follows: int, random: np.random.Generator) -> str:
        """The tail of a value, or of a mask that stays, before what follows."""
        return TAILS[int(np.searchsorted(self.drawn.tails[follows], random.random(), side="right"))]

    def _named(self, key: int, random: np.random.Generator, known: Known) -> str:
        return self.values[key] if key < len(self.values) else made(self.shapes[key - len(self.values)], random, known)

    def shows(self, value: str | None) -> bool:
        """Whether it has a value, but for its tail."""
        return value is not None and parted(value)[0] in self.names

    @property
    def coverage(self) -> float:
        """About which share of all masks the table fills."""
        return self.drawn.coverage

    def to_bytes(self) -> bytes:
        """The file of the table: the same table is always the same bytes."""
        fields = {
            "schema": FORMAT,
            "values": list(self.values),
            "shapes": list(self.shapes),
            "contexts": [list(each) for each in self.contexts.classes],
            "value_counts": self.value_counts,
            "shape_counts": self.shape_counts,
            "in_context": self.in_context,
            "tails": self.tails,
            "stds": list(self.stds),
        }
        return orjson.dumps(fields, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_SORT_KEYS)

    @staticmethod
    def from_bytes(content: bytes) -> Table:
        """Inverse of :meth:`to_bytes`. DataError for anything else."""
        try:
            raw = orjson.loads(content)
            if not isinstance(raw, Mapping) or raw.get("schema") != FORMAT:
                raise ValueError("not a table of values")
            return _read(raw)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"table of values: expected what {FORMAT} holds, found another ({error})") from error


def _read(raw: Mapping[str, Any]) -> Table:
    values, shapes = tuple(map(str, raw["values"])), tuple(map(str, raw["shapes"]))
    contexts: tuple[Context, ...] = tuple((left, right) for left, right in raw["contexts"])
    sizes = {
        "value_counts": (len(values),),
        "shape_counts": (len(shapes),),
        "in_context": (len(contexts), len(values) + len(shapes) + 1),
        "tails": (len(FOLLOWS), len(TAILS)),
    }
    arrays = {name: np.asarray(raw[name], np.float64).reshape(size) for name, size in sizes.items()}
    first, second, third, fourth = map(float, raw["stds"])
    return Table(values, shapes, Contexts(contexts), **arrays, stds=(first, second, third, fourth))


@dataclass(frozen=True, slots=True)
class Drawn:
    """Distribution functions: of keys [C, V + S] in each context, of tails [|FOLLOWS|, |TAILS|]. filled: the share of masks
    that a key explains [C]. coverage: of all masks."""

    keys: Floats
    tails: Floats
    filled: Floats
    coverage: float


def _drawn(table: Table) -> Drawn:
    """Counts that stand out in a context, and beside them those of all contexts.

    What a table explains of all masks is what its keys count, beside what is counted for none; a context explains what
    stands out there, and of the rest as much as makes that up. At least the share ``FILLED`` of each context's masks is
    filled: of words that it has only ever seen behind a mask a model expects nothing behind a name.
    """
    covered = dict.fromkeys(table.shapes, 0.0)
    for value, count in zip(table.values, table.value_counts, strict=True):
        if (form := shape(value)) in covered:
            covered[form] += float(count)
    others = np.maximum(table.shape_counts - np.array([covered[form] for form in table.shapes]), 0.0)
    everywhere = np.concatenate([np.maximum(table.value_counts, 0.0), others])
    rest = np.maximum(table.in_context[:, -1], 0.0)
    clear = np.where(table.in_context[:, :-1] > CLEAR * table.stds[2], table.in_context[:, :-1], 0.0)
    total = float(everywhere.sum())
    weights = clear + SPREAD * everywhere / max(total, 1e-12)
    coverage = total / max(total + float(rest.sum()), 1e-12)
    explained = clear.sum(1) / np.maximum(clear.sum(1) + rest, 1e-12)
    size = clear.sum(1) + rest
    average = float((explained * size).sum() / max(float(size.sum()), 1e-12))
    missing = min(max((coverage - average) / max(1 - average, 1e-12), 0.0), 1.0)
    tails = np.where(table.tails > CLEAR * table.stds[3], table.tails, 0.0)
    tails[:, 0] += 1e-9  # none where no count is clear
    some = total > 1e-12
    filled = np.maximum(explained + (1 - explained) * missing, FILLED) if some else np.zeros(len(rest))
    return Drawn(_distribution(weights), _distribution(tails), filled, coverage if some else 0.0)


def _distribution(weights: Floats) -> Floats:
    """Sums from the left, which end at exactly 1, so that no draw in [0, 1) falls behind the last."""
    sums = np.cumsum(weights, 1)
    return sums / np.maximum(sums[:, -1:], 1e-300)
