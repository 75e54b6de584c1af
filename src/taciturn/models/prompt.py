"""Classification by a prompt: a text in a template, and one word for each label that a language model may answer with.

Schick and Schütze 2021, section 3.1: the template is their pattern, the words are their verbalizer. A masked model fills
its mask token in, a causal one continues what stands before it; only the words of the labels compete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import DataError, UsageError, nearest
from taciturn.models.sequences import bodies, end_id, start_id
from taciturn.text.chat import contents, pair, structured

FIELDS = ("text", "second", "mask")
_FIELD = re.compile(r"\{(\w*)\}")
_STEM = "a"  # what a piece of the template is coded after, as words inside a text often have ids of their own


@dataclass(frozen=True, slots=True)
class Prompt:
    """template: with {text} and {mask}, and {second} for pairs, each once. words: of each label, in the order of classes.

    Raises UsageError for another template, and for fewer than two labels.
    """

    template: str
    words: dict[str, str]

    def __post_init__(self) -> None:
        found = _FIELD.findall(self.template)
        for name in found:
            if name not in FIELDS:
                raise UsageError(f"prompt: unknown field {{{name}}}: {nearest(name, FIELDS)}")
        if not {"text", "mask"} <= set(found) or len(set(found)) < len(found):
            raise UsageError(
                'prompt: expected {text} and {mask} once each, and {second} for pairs, as in "{text} It was {mask}."; found '
                f"{', '.join(f'{{{name}}}' for name in found) or 'none'}"
            )
        if len(self.words) < 2:
            raise UsageError(f"words: expected a word for each of at least two labels, found {len(self.words)}")

    @property
    def names(self) -> tuple[str, ...]:
        """The classes."""
        return tuple(self.words)

    @property
    def pairs(self) -> bool:
        return "{second}" in self.template


@dataclass(frozen=True, slots=True)
class Answers:
    """at: [records], the position whose logits answer. words: the ids of the labels' words, [classes]."""

    at: NDArray[np.int64]
    words: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PromptCoder:
    """A template as ids. parts: ids as they are, or a field and the blanks before it, which belong to what fills it in.

    mask: the model's mask token; None for a causal model, which answers where the parts end.
    """

    tokenizer: Any = field(repr=False)
    parts: tuple[list[int] | tuple[str, str], ...]
    mask: int | None
    words: NDArray[np.int64]

    @classmethod
    def of(cls, tokenizer: Any, prompt: Prompt) -> PromptCoder:
        """A tokenizer with a mask token is a masked model's, another a causal model's.

        Raises UsageError for a word that is not one token in its place or stands for two labels, naming the labels, and
        for fields behind {mask} where the model is causal.
        """
        pieces = _FIELD.split(prompt.template)
        at = pieces.index("mask")
        mask = tokenizer.mask_token_id
        words = _words(tokenizer, prompt.words, pieces[at - 1], at == 1)
        if mask is None:
            if at < len(pieces) - 2:
                raise UsageError("prompt: a causal model reads from left to right, so no field may stand behind {mask}")
            pieces = pieces[: at + 1]
        parts: list[list[int] | tuple[str, str]] = [[start_id(tokenizer)]]
        lead = ""
        for i, piece in enumerate(pieces):
            if i % 2:
                parts.append((piece, lead))
            else:
                stem = piece.rstrip(" ") if i < len(pieces) - 1 else piece
                lead = piece[len(stem) :]
                parts.append(_inside(tokenizer, stem) if i else bodies(tokenizer, [stem])[0])
        if mask is not None:
            parts.append([end_id(tokenizer)])
        return cls(tokenizer, tuple(parts), mask, words)

    @property
    def fixed(self) -> int:
        """How many tokens the prompt has without any text."""
        ids = sum(len(part) for part in self.parts if isinstance(part, list))
        return ids + (self.mask is not None)

    def encode(
        self, texts: Sequence[str], max_length: int | None = None, chunk: int = 10_000
    ) -> Iterator[tuple[NDArray[np.int32], int, bool]]:
        """(ids, where the answer is, whether the text was cut) of each text; what is cut is the text, never the prompt.

        Raises UsageError when the prompt leaves no room for a text.
        """
        if max_length is not None and self.fixed >= max_length:
            raise UsageError(
                f"prompt: {self.fixed} tokens without any text, and max_length is {max_length}: shorten it or raise that"
            )
        room = None if max_length is None else max_length - self.fixed
        leads = dict(part for part in self.parts if isinstance(part, tuple))
        for first in range(0, len(texts), chunk):
            some = [_sides(text) for text in texts[first : first + chunk]]
            filled = {
                name: bodies(self.tokenizer, [leads[name] + sides[i] for sides in some])
                for i, name in enumerate(FIELDS[:2])
                if name in leads
            }
            for row in range(len(some)):
                ids = {name: coded[row] for name, coded in filled.items()}
                kept = shares([len(i) for i in ids.values()], room)
                cut = any(k < len(i) for k, i in zip(kept, ids.values(), strict=True))
                yield *self._filled({n: i[:k] for (n, i), k in zip(ids.items(), kept, strict=True)}), cut

    def _filled(self, ids: dict[str, list[int]]) -> tuple[NDArray[np.int32], int]:
        out: list[int] = []
        at = -1
        for part in self.parts:
            if isinstance(part, list):
                out += part
            elif part[0] != "mask":
                out += ids[part[0]]
            elif self.mask is not None:
                at = len(out)
                out.append(self.mask)
        return np.asarray(out, np.int32), len(out) - 1 if self.mask is None else at


def refuse_pairs(prompt: Prompt, texts: Sequence[str]) -> None:
    """Raise DataError, with a count only, where a second text has no place in the template."""
    found = 0 if prompt.pairs else sum(bool(_sides(text)[1]) for text in texts)
    if found:
        raise DataError(
            f"{found} of {len(texts)} records are pairs, and the prompt has no {{second}} for the other text"
        )


def shares(lengths: Sequence[int], room: int | None) -> list[int]:
    """How much of each text is kept in ``room`` tokens: of two the longer is cut first, down to the shorter.

    >>> shares([9, 3], 8), shares([9, 8], 8), shares([9], 8), shares([2, 1], None)
    ([5, 3], [4, 4], [8], [2, 1])
    """
    if room is None or sum(lengths) <= room:
        return list(lengths)
    if len(lengths) == 1:
        return [room]
    a, b = lengths
    short = min(a, b, room // 2)
    return [room - short, short] if a >= b else [short, room - short]


def _sides(text: str) -> tuple[str, str]:
    """The one or two texts of a record; messages are joined by line ends."""
    found = pair(text) if structured(text) else None
    if found is None:
        return "\n".join(contents(text)), ""
    return found[0].content, found[1].content if found[1] else ""


def _words(tokenizer: Any, words: dict[str, str], before: str, first: bool) -> NDArray[np.int64]:
    """The ids of the labels' words behind ``before``; first: whether the mask is the first field of the template."""
    stem = before.rstrip(" ")
    lead = before[len(stem) :]
    stem = stem or ("" if first else _STEM)
    base = bodies(tokenizer, [stem])[0]
    found: dict[int, str] = {}
    for label, word in words.items():
        (ids,) = bodies(tokenizer, [stem + lead + word])
        tail = ids[len(base) :] if ids[: len(base)] == base else bodies(tokenizer, [word])[0]
        if len(tail) != 1:
            raise UsageError(
                f"words: {word!r} for label {label!r} is {len(tail)} tokens behind {before!r}: choose a word that is one"
            )
        if tail[0] == tokenizer.unk_token_id:
            raise UsageError(f"words: {word!r} for label {label!r} is not in the vocabulary: choose another")
        if tail[0] in found:
            raise UsageError(f"words: labels {found[tail[0]]!r} and {label!r} have the same token: {word!r}")
        found[tail[0]] = label
    return np.asarray(list(found), np.int64)


def _inside(tokenizer: Any, piece: str) -> list[int]:
    """The ids of a piece of text as it is coded behind another."""
    base, ids = bodies(tokenizer, [_STEM, _STEM + piece])
    return ids[len(base) :] if ids[: len(base)] == base else bodies(tokenizer, [piece])[0]
