"""Records whose sensitive tokens are told from the public ones, for training that noises only the former.

The public tokens, and where the sensitive runs lie among them, are a function of the redacted text alone: the redacted text
is coded as it always is, and each `<MASK>` in it gives way to the tokens of what stood there. Two records with the same
redacted text therefore differ in nothing but the contents (and lengths) of their sensitive runs. This holds whichever way
the original is laid along the redacted text, so that an ambiguous one needs no widening; widening would even break it, since
whether a text is ambiguous depends on its secrets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import DataError, UsageError
from taciturn.models.sequences import bodies, mask_id
from taciturn.models.tokens import Tokens, encode_all
from taciturn.text.chat import OPEN, structured
from taciturn.text.document import MASK

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Sensitive:
    """tokens: with ``scored``. flags: over ``tokens.flat``, whether a token stands in the place of a `<MASK>` of the
    redacted text."""

    tokens: Tokens
    flags: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.tokens)

    def sizes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many tokens each of ``rows`` has."""
        return self.tokens.sizes(rows)

    def scored(self, i: int) -> NDArray[np.bool_]:
        """Which tokens of record i are targets."""
        assert self.tokens.scored is not None
        return self.tokens.scored[self.tokens.offsets[i] : self.tokens.offsets[i + 1]]

    def flagged(self, i: int, runs: int) -> NDArray[np.bool_]:
        """The flags of record i, all of them set from its (``runs`` + 1)-th sensitive run on."""
        flags = self.flags[self.tokens.offsets[i] : self.tokens.offsets[i + 1]]
        begins = np.diff(flags.astype(np.int8), prepend=0) == 1
        capped: NDArray[np.bool_] = flags | (np.cumsum(begins) > runs)
        return capped


def encode_sensitive(
    tokenizer: Any,
    originals: Sequence[str],
    redacted: Sequence[str],
    stable: Sequence[Sequence[Interval]] | None = None,
    max_length: int | None = None,
    first: int = 0,
) -> Sensitive:
    """Records as tokens and flags. first: the number of the first record, for messages.

    stable: intervals of each original known to be masked, which settle how it lies along the redacted text. max_length: of
    the redacted text's tokens, which are cut on the right, and of what stands in the place of the masks of one record: so a
    record has less than twice as many, and a secret's length decides nothing about public tokens. Where nothing is left of
    a mask's contents `<MASK>` stands for them, so that every sensitive run has a token.

    Raises UsageError for conversations and pairs, DataError for a redacted text that is not of its original.
    """
    if any(map(structured, redacted)):
        raise UsageError(
            "selective_dpsgd takes records of plain text: these are conversations or pairs of texts; choose dpsgd, crt or "
            "jft, or screen them as text"
        )
    mask = mask_id(tokenizer)
    public = encode_all(tokenizer, redacted, max_length)
    found = [
        align(original, text, () if stable is None else stable[i], first + i)
        for i, (original, text) in enumerate(zip(originals, redacted, strict=True))
    ]
    contents = [original[a:b] for original, marks in zip(originals, found, strict=True) for a, b in marks]
    ids = iter(bodies(tokenizer, [text.replace(OPEN, "\n") for text in contents]) if contents else ())
    flat: list[NDArray[np.int32]] = []
    flags: list[NDArray[np.bool_]] = []
    lengths: list[int] = []
    for i, marks in enumerate(found):
        sequence, hot = _filled(public[i], [next(ids) for _ in marks], mask, max_length)
        flat.append(sequence)
        flags.append(hot)
        lengths.append(len(sequence))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    together = np.concatenate([np.zeros(0, np.int32), *flat])
    scored = together != mask
    scored[offsets[:-1]] = False
    return Sensitive(
        Tokens(together, offsets, public.truncated, scored), np.concatenate([np.zeros(0, np.bool_), *flags])
    )


def align(original: str, redacted: str, stable: Sequence[Interval] = (), record: int = 0) -> tuple[Interval, ...]:
    """What each `<MASK>` of ``redacted`` stands for, as intervals of ``original``, in order: what is left when the
    stretches between masks are found again, each as far left as it can be.

    Where several places fit, one in which no stretch cuts into a ``stable`` interval is taken, if there is one.
    record: number for the message. Raises DataError when none fits.

    >>> align("call Ann or Bob", "call <MASK> or <MASK>")
    ((5, 8), (12, 15))
    """
    stretches = redacted.split(MASK)
    found = _laid(original, stretches, stable)
    if found is None:
        found = _laid(original, stretches, ())
    if found is None:
        raise DataError(
            f"record {record}: its redacted text does not follow from its original by masking; screen the corpus again"
        )
    return found


def _laid(text: str, stretches: Sequence[str], avoid: Sequence[Interval]) -> tuple[Interval, ...] | None:
    """Leftmost placement of the stretches, in order, with something between any two, none cutting into ``avoid``. Taking
    each as far left as it can be leaves most room for the rest, so it finds a placement if there is one."""
    first, *rest = stretches
    if not rest:
        return () if text == first else None
    if not text.startswith(first) or _cuts(0, len(first), avoid):
        return None
    at = len(first)
    out = []
    for stretch in rest[:-1]:
        start = text.find(stretch, at + 1)
        while start >= 0 and _cuts(start, start + len(stretch), avoid):
            start = text.find(stretch, start + 1)
        if start < 0:
            return None
        out.append((at, start))
        at = start + len(stretch)
    start = len(text) - len(rest[-1])
    if start <= at or not text.endswith(rest[-1]) or _cuts(start, len(text), avoid):
        return None
    return (*out, (at, start))


def _cuts(start: int, end: int, avoid: Sequence[Interval]) -> bool:
    """Whether [start, end) overlaps an interval of ``avoid``."""
    return any(a < end and start < b for a, b in avoid)


def _filled(
    public: NDArray[np.int32], contents: Sequence[Sequence[int]], mask: int, most: int | None
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """``public`` with the n-th ``mask`` in it replaced by the n-th contents, at most ``most`` tokens of them in all (beside
    one for every mask)."""
    left = len(public) + sum(map(len, contents)) if most is None else most
    parts, hot, at = [], [], 0
    for place, ids in zip(np.flatnonzero(public == mask), contents, strict=False):  # cut texts have fewer masks
        here = np.asarray(ids[:left] or [mask], np.int32)
        left = max(0, left - len(here))
        parts += [public[at:place], here]
        hot += [np.zeros(place - at, bool), np.ones(len(here), bool)]
        at = int(place) + 1
    return np.concatenate([*parts, public[at:]]), np.concatenate([*hot, np.zeros(len(public) - at, bool)])
