"""A tokenizer that takes nothing a person writes for a special token, and knows where its tokens come from.

The special tokens of a copy of the tokenizer get spellings of their own, with U+001E, which no text that goes through here
may hold; the old spellings mean nothing to it. So special tokens stand where the caller puts them and nowhere else, and
the text between them is tokenised exactly as the tokenizer would.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import UsageError
from taciturn.text.chat import OPEN
from taciturn.text.document import MASK


@dataclass(frozen=True, slots=True)
class Blind:
    """backend: the copy. specials: the special id each new one stands for. guards: the new spelling of each old one."""

    backend: Any = field(repr=False)
    specials: dict[int, int] = field(repr=False)
    guards: dict[str, str] = field(repr=False)

    @classmethod
    def of(cls, tokenizer: Any) -> Blind:
        """Of a tokenizer as it is now; UsageError for one without a tokenizer.json."""
        if not has_backend(tokenizer):
            raise UsageError(
                f"{type(tokenizer).__name__} cannot code conversations or place its tokens: a tokenizer.json is needed"
            )
        specials = tuple(
            (token.content, i, token.lstrip, token.rstrip, token.single_word)
            for i, token in sorted(tokenizer.added_tokens_decoder.items())
            if token.special
        )
        return cls(*_guarded(tokenizer.backend_tokenizer.to_str(), specials))

    @classmethod
    def without_guards(cls, tokenizer: Any) -> Blind:
        """One that has no special tokens at all, for texts that hold U+001E themselves."""
        return cls(*_guarded(tokenizer.backend_tokenizer.to_str(), ()))

    @property
    def mask(self) -> str:
        """What stands for `<MASK>`."""
        return self.guards[MASK]

    @property
    def mask_id(self) -> int:
        return self.specials[int(self.backend.token_to_id(self.mask))]

    def guard(self, piece: str) -> str:
        """``piece`` with its special tokens meant as such."""
        spellings = "|".join(re.escape(s) for s in sorted(self.guards, key=len, reverse=True))
        return re.sub(spellings, lambda match: self.guards[match[0]], piece)

    def encode(self, drawn: Sequence[Drawn]) -> list[Any]:
        """One encoding of the `tokenizers` package each, with ids of the copy."""
        return list(self.backend.encode_batch(["".join(d.parts) for d in drawn], add_special_tokens=False))

    def ids(self, encoding: Any) -> NDArray[np.int32]:
        """The tokenizer's own ids, [T]."""
        return np.fromiter((self.specials.get(i, i) for i in encoding.ids), np.int32)


def has_backend(tokenizer: Any) -> bool:
    """Whether a tokenizer is one of the `tokenizers` package."""
    return getattr(tokenizer, "backend_tokenizer", None) is not None


@dataclass(slots=True)
class Drawn:
    """What is tokenised as one string. parts: its pieces, none empty. origin: the range of the record each came from, an
    empty one for what a template wrote. told: whether it is what the assistant says or ends a turn of the assistant's."""

    parts: list[str] = field(default_factory=list)
    origin: list[tuple[int, int]] = field(default_factory=list)
    told: list[bool] = field(default_factory=list)

    def add(self, part: str, start: int, end: int, told: bool) -> None:
        if part:
            self.parts.append(part)
            self.origin.append((start, end))
            self.told.append(told)

    def add_text(self, text: str, start: int, told: bool, mask: str) -> None:
        """Add a text that begins at ``start`` of the record, ``mask`` for each `<MASK>` in it."""
        for i, part in enumerate(text.split(MASK)):
            if i:
                self.add(mask, start, start + len(MASK), False)
                start += len(MASK)
            self.add(part, start, start + len(part), told)
            start += len(part)

    def told_by(self, encoding: Any) -> NDArray[np.bool_]:
        """Which tokens have a character of the assistant's, [T]."""
        begin, end, edges = self._offsets(encoding)
        told = np.concatenate([[0], np.cumsum(self.told)])
        first = np.searchsorted(edges, begin, "right") - 1
        past = np.searchsorted(edges, end, "left")
        scored: NDArray[np.bool_] = told[np.minimum(past, len(told) - 1)] > told[np.minimum(first, len(told) - 1)]
        return scored

    def places(self, encoding: Any) -> NDArray[np.int64]:
        """The range of the record each token has a character of, [T, 2]."""
        begin, end, edges = self._offsets(encoding)
        out = np.zeros((len(begin), 2), np.int64)
        for k, (start, stop) in enumerate(self.origin):
            low, high = np.maximum(begin, edges[k]), np.minimum(end, edges[k + 1])
            hit = (low < high) & (start < stop)
            if len(self.parts[k]) == stop - start:
                low, high = low + start - edges[k], high + start - edges[k]
            else:  # a mask is one thing
                low, high = np.full_like(low, start), np.full_like(high, stop)
            seen = out[:, 1] > 0
            out[:, 0] = np.where(hit, np.where(seen, np.minimum(out[:, 0], low), low), out[:, 0])
            out[:, 1] = np.where(hit, np.maximum(out[:, 1], high), out[:, 1])
        return out

    def _offsets(self, encoding: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        offsets = np.asarray(encoding.offsets, np.int64).reshape(-1, 2)
        edges = np.fromiter(accumulate(map(len, self.parts), initial=0), np.int64, len(self.parts) + 1)
        return offsets[:, 0], np.maximum(offsets[:, 1], offsets[:, 0] + 1), edges


@lru_cache(maxsize=4)
def _guarded(
    definition: str, specials: tuple[tuple[str, int, bool, bool, bool], ...]
) -> tuple[Any, dict[int, int], dict[str, str]]:
    """A tokenizer that takes only guards for special tokens, the special id of each guard's id, and the guard of each
    special token's spelling."""
    from tokenizers import AddedToken, Tokenizer

    guards = {content: f"{OPEN}{i}{OPEN}" for content, i, *_ in specials}
    backend = Tokenizer.from_str(definition)
    backend.no_padding()
    backend.no_truncation()
    backend.post_processor = None  # it would cut blanks off offsets
    backend.encode_special_tokens = True
    backend.add_tokens(
        [
            AddedToken(guards[content], lstrip=left, rstrip=right, single_word=word, normalized=False, special=False)
            for content, _, left, right, word in specials
        ]
    )
    ids: dict[int, int] = {backend.token_to_id(guards[content]): i for content, i, *_ in specials}  # type: ignore[misc]
    return backend, ids, guards
