"""Records as token sequences in one flat array; what a sequence is: ``taciturn.models.sequences``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.models.chat import LossOn
from taciturn.models.masking import Masking
from taciturn.models.prompt import Answers
from taciturn.models.sequences import sequences, targets
from taciturn.text.chat import structured


@dataclass(frozen=True, slots=True)
class Tokens:
    """Many token sequences in one flat array: sequence i is ``flat[offsets[i]:offsets[i + 1]]``.

    scored: which of ``flat`` are targets, None where :func:`targets` says so for every sequence. labels: [records], the
    class of each, −1 for none. masking: how tokens are hidden, for masked language modelling. truncated: how many were cut.
    segments: of ``flat``, which text of a pair a token belongs to, 0 or 1; None where there are no pairs. answers: where
    records put in a prompt are answered, and by which words.
    sensitive: which of ``flat`` stand in the place of a `<MASK>` (:mod:`taciturn.models.sensitive`).
    """

    flat: NDArray[np.int32]
    offsets: NDArray[np.int64]
    truncated: int = 0
    scored: NDArray[np.bool_] | None = None
    labels: NDArray[np.int64] | None = None
    masking: Masking | None = None
    segments: NDArray[np.int8] | None = None
    answers: Answers | None = None
    sensitive: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> NDArray[np.int32]:
        return self.flat[self.offsets[i] : self.offsets[i + 1]]

    def targets(self, i: int, mask: int) -> NDArray[np.bool_]:
        """Which positions of sequence i are scored."""
        if self.scored is None:
            return targets(self[i], mask)
        return self.scored[self.offsets[i] : self.offsets[i + 1]]

    def aimless(self, mask: int) -> NDArray[np.bool_]:
        """[records], which have nothing to predict, in whatever step: no class, or no token that can be scored."""
        if self.labels is not None:
            return self.labels < 0
        return np.concatenate([np.zeros(0, np.bool_), *(piece._aimless(mask) for piece in self.pieces())])

    def _aimless(self, mask: int) -> NDArray[np.bool_]:
        scored = implied_targets(self.flat, self.offsets, mask) if self.scored is None else self.scored
        if self.masking is not None:
            scored = scored & ~np.isin(self.flat, self.masking.special)
        found = np.concatenate([[0], np.cumsum(scored)])
        none: NDArray[np.bool_] = found[self.offsets[1:]] == found[self.offsets[:-1]]
        return none

    def pieces(self, most: int = 1 << 22) -> Iterator[Tokens]:
        """These tokens as runs of records, of ``most`` tokens or a single record each; views, of arrays on disk too."""
        start = 0
        while start < len(self):
            stop = int(np.searchsorted(self.offsets, self.offsets[start] + most, side="right")) - 1
            stop = max(stop, start + 1)
            yield self._between(start, stop)
            start = stop

    def _between(self, start: int, stop: int) -> Tokens:
        a, b = self.offsets[start], self.offsets[stop]
        cut: dict[str, Any] = {
            name: None if (x := getattr(self, name)) is None else x[a:b] for name in ("scored", "segments", "sensitive")
        }
        labels = None if self.labels is None else self.labels[start:stop]
        answers = None if self.answers is None else replace(self.answers, at=self.answers.at[start:stop])
        offsets = self.offsets[start : stop + 1] - a
        return replace(self, flat=self.flat[a:b], offsets=offsets, labels=labels, answers=answers, **cut)

    def at(self, step: int) -> Tokens:
        """These tokens in a step of training: other ones are hidden each time."""
        return self if self.masking is None else replace(self, masking=replace(self.masking, step=step))

    def sizes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many tokens each of ``rows`` has."""
        return self.offsets[rows + 1] - self.offsets[rows]

    @property
    def longest(self) -> int:
        """Tokens of the longest record."""
        return max((int(piece.lengths.max()) for piece in self.pieces()), default=0)

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)


def implied_targets(flat: NDArray[np.int32], offsets: NDArray[np.int64], mask: int) -> NDArray[np.bool_]:
    """Which tokens of sequences in one array :func:`targets` scores."""
    scored: NDArray[np.bool_] = flat != mask
    scored[offsets[:-1][np.diff(offsets) > 0]] = False
    return scored


def encode(tokenizer: Any, text: str, max_length: int | None = None) -> NDArray[np.int32]:
    """One record as ids; see :func:`encode_all`."""
    return encode_all(tokenizer, [text], max_length)[0]


def encode_all(
    tokenizer: Any,
    texts: Sequence[str],
    max_length: int | None = None,
    chunk: int = 10_000,
    loss_on: LossOn = "all",
) -> Tokens:
    """Records as ids, cut on the right at ``max_length`` (the count of those cut is kept; nothing is ever joined).

    A text is ``[start] + ids + [end]``; text never turns into a special token, whatever it spells, only `<MASK>` does. A
    record that is only `<MASK>` has no end token, so nothing in it can be a target. Conversations go through
    :class:`taciturn.models.chat.ChatCoder`, where ``loss_on`` counts; pairs get the tokenizer's special tokens for pairs.
    """
    parts: list[NDArray[np.int32]] = []
    marks: list[NDArray[np.bool_]] = []
    sides: list[NDArray[np.int8]] = []
    truncated = 0
    mixed = any(map(structured, texts))
    for ids, scored, segments in sequences(tokenizer, texts, chunk, loss_on, mixed):
        if max_length is not None and len(ids) > max_length:
            ids = ids[:max_length]
            truncated += 1
        parts.append(ids)
        if scored is not None:
            marks.append(scored[: len(ids)])
            sides.append(np.zeros(len(ids), np.int8) if segments is None else segments[: len(ids)])
    tokens = joined(parts, truncated)
    if not mixed:
        return tokens
    every = np.concatenate(sides)
    return replace(tokens, scored=np.concatenate(marks), segments=every if every.any() else None)


def joined(parts: Sequence[NDArray[np.int32]], truncated: int = 0) -> Tokens:
    """Sequences as one flat array."""
    flat = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(ids) for ids in parts])]).astype(np.int64)
    return Tokens(flat, offsets, truncated)


def packed(tokens: Tokens, rows: NDArray[np.int64], size: int, mask: int) -> Tokens:
    """The sequences ``rows`` laid end to end and cut into blocks of ``size`` tokens; the first of a block is not scored.

    A block holds parts of several records, so no clip bounds what one of them adds, and no guarantee covers it.
    """
    flat = np.concatenate([tokens[int(row)] for row in rows])
    scored = np.concatenate([tokens.targets(int(row), mask) for row in rows])
    scored[::size] = False
    offsets = np.append(np.arange(0, len(flat), size), len(flat)).astype(np.int64)
    return Tokens(flat, offsets, 0, scored)
