"""What stands in a record where its skeleton has a mask, as numbers that a release can count.

A record is a pair: its text with what is to be learned, and the same text with masks. Everything here is a function of one
pair, but for the numbers of strings, which are private and stay in memory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import DataError
from taciturn.models.sensitive import align
from taciturn.text.chat import CLOSE, OPEN
from taciturn.text.document import MASK
from taciturn.training.values.contexts import Contexts, behind_each
from taciturn.training.values.shapes import shape

Ints = NDArray[np.int64]
LONGEST = 64
"""Characters of a value; what is longer has none."""
MOST = 16
"""Masks of a record that are counted, from the first on."""
TAILS = ("", ".", ",", "?", "!", ";", ":")
"""What may follow a value within a mask, which takes in what is attached to a word."""
NONE = -1
_TAIL = re.compile(r"[^\w]*\Z")
_NOT_INSIDE = (MASK, OPEN, CLOSE, "\n", "\r")


def behind(text: str, masked: str) -> list[str | None]:
    """What stands in ``text`` for each mask of ``masked``, from the left, as short as can be; None where that is partly
    masked itself, longer than ``LONGEST``, or more than one line. All None where the two do not line up.

    >>> behind("two people on Monday.", "<MASK> people on <MASK>")
    ['two', 'Monday.']
    >>> behind("two people on <MASK>.", "<MASK> people on <MASK>"), behind("none", "<MASK> people")
    (['two', None], [None])
    """
    return [_value(each) for each in _between(text, masked)]


def _between(text: str, masked: str) -> list[str]:
    """What stands for each mask, as it stands there; "" for each where the two do not line up."""
    try:
        return [text[start:end] for start, end in align(text, masked)]
    except DataError:
        return [""] * masked.count(MASK)


def _value(found: str) -> str | None:
    return None if not found or len(found) > LONGEST or any(x in found for x in _NOT_INSIDE) else found


def parted(value: str) -> tuple[str, int]:
    """A value without its tail, and the number of that in ``TAILS``; the whole with none where the tail is another.

    >>> parted("Monday."), parted("(555) 01-77)"), parted("<MASK>,")
    (('Monday', 1), ('(555) 01-77)', 0), ('<MASK>', 2))
    """
    found = _TAIL.search(value, len(value.rpartition(MASK)[0] + MASK) if MASK in value else 0)
    tail = found[0] if found else ""
    if tail not in TAILS or tail == value:
        return value, 0
    return value[: len(value) - len(tail)], TAILS.index(tail)


@dataclass(frozen=True, slots=True)
class Slots:
    """The masks of the records of a phase. counted: of each record, whether it is: of equal pairs one is [N]. masks: of
    each counted record, how many of its masks count, at most ``MOST``; owner: the number of its user, one of its own where
    it has none [R].

    Of each such mask [S]: record (its number among the counted), context (in ``contexts``), value and shape (numbers of
    strings in ``values`` and ``shapes``, NONE without one), tail (in ``TAILS``, also of what is masked itself), follows (in
    ``FOLLOWS``). known: whether what stands there was given, and not found by laying texts beside each other.
    """

    contexts: Contexts
    counted: NDArray[np.bool_]
    masks: Ints
    owner: Ints
    record: Ints
    context: Ints
    value: Ints
    shape: Ints
    tail: Ints
    follows: Ints
    values: tuple[str, ...]
    shapes: tuple[str, ...]
    known: bool = False

    @staticmethod
    def of(
        pairs: Iterable[tuple[str, str | None]],
        contexts: Contexts,
        users: Iterable[str | None] | None = None,
        known: Iterable[Sequence[str | None]] | None = None,
    ) -> Slots:
        """Of (text, the same with masks) each; None for a record without a skeleton, which counts nowhere. users: whose
        record each is, None for nobody's. known: what stands behind the masks of each, where that need not be found by
        laying the two beside each other; a record of which nothing is known counts nowhere."""
        seen: set[tuple[str, str, tuple[str | None, ...]]] = set()
        counted, masks, owners = list[bool](), list[int](), list[int]()
        names = dict[str | tuple[int], int]()
        rows: list[tuple[int, ...]] = []
        values, shapes = dict[str, int](), dict[str, int]()
        nobody: Iterable[str | None] = repeat(None)
        unknown: Iterable[Sequence[str | None] | None] = repeat(None)
        for (text, masked), user, there in zip(pairs, users or nobody, known or unknown, strict=False):
            pair = (text, masked or "", tuple(there or ()))
            counts = MASK in pair[1] and (there is None or len(there) > 0) and pair not in seen
            counted.append(counts)
            if not counts:
                continue
            seen.add(pair)
            owners.append(names.setdefault((len(masks),) if user is None else user, len(names)))
            laid = _between(*pair[:2])[:MOST]
            around = zip(contexts.numbers(pair[1]), behind_each(pair[1]), strict=True)
            for whole, held, (context, follows) in zip(laid, laid if there is None else there, around, strict=False):
                core, tail = parted(held or whole)
                if not held or (value := _value(core)) is None:
                    rows.append((len(masks), context, NONE, NONE, tail if whole else NONE, follows))
                    continue
                form = shape(value)
                number = NONE if form is None else shapes.setdefault(form, len(shapes))
                rows.append((len(masks), context, values.setdefault(value, len(values)), number, tail, follows))
            masks.append(len(laid))
        columns = np.array(rows, np.int64).reshape(-1, 6)
        return Slots(
            contexts,
            np.array(counted, bool),
            np.array(masks, np.int64),
            np.array(owners, np.int64),
            columns[:, 0],
            columns[:, 1],
            columns[:, 2],
            columns[:, 3],
            columns[:, 4],
            columns[:, 5],
            tuple(values),
            tuple(shapes),
            known is not None,
        )

    def __len__(self) -> int:
        return len(self.counted)

    def at(self, step: int) -> Slots:  # noqa: ARG002  as Tokens.at
        return self

    @property
    def digest(self) -> str:
        """Of everything, so that all processes of a run can see that they have the same."""
        parts = (
            self.counted,
            self.masks,
            self.owner,
            self.record,
            self.context,
            self.value,
            self.shape,
            self.tail,
            self.follows,
        )
        found = hashlib.blake2b(b"".join(p.tobytes() for p in parts), digest_size=16)
        found.update(repr(self.contexts.classes).encode())
        found.update("\x1e".join((*self.values, "", *self.shapes)).encode("utf-8", "surrogatepass"))
        return found.hexdigest()
