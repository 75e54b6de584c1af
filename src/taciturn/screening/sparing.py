"""π_c that leaves public values unmarked, whole spans only (guarantees.md §3.1, "Public values").

A *span* is all that π and π_c mark with nothing but blanks and punctuation between, literal masks included, out to the
blanks around it. It is spared if it lies in a run of whole tokens that is, as a whole, one of the values or kinds, and if
every span which that run touches lies in it, holds no ``<MASK>`` and touches no mark of π. So no word of a longer span is
ever spared, and masking any word of a span leaves the rest of it marked, because it then holds a mask.

A run lies between two masks or it does not, so where π and π_c are *apart* (skeletons.py) or word by word, so is what is
left of π_c.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import orjson

from taciturn.errors import UsageError
from taciturn.screening.policies.base import CLEAN, Finder, Policy
from taciturn.screening.policies.public import Public, key
from taciturn.screening.redact import BRIDGED, Interval, maximal
from taciturn.text.document import MASK
from taciturn.text.spans import Detection, Span

TOKEN = re.compile(r"[^\s\x1e\x1f]+")
_MASK = re.compile(re.escape(MASK))
_BORDER = re.compile(r"[\x1e\x1f]")


@dataclass(frozen=True)
class Sparing:
    """What ``conservative`` marks, but public values that ``pi`` does not touch.

    Raises UsageError for a π_c that marks everything: its one span is the record.
    """

    pi: Finder
    conservative: Finder
    public: Public
    plain_name: str

    @classmethod
    def of(cls, pi: Policy, conservative: Policy, public: Public | None) -> Policy | Sparing:
        """``conservative`` itself where nothing is public."""
        if public is None or not (public.values or public.kinds):
            return conservative
        if conservative.covers_all:
            raise UsageError(
                f"public values: the conservative policy '{conservative.name}' marks every record whole, so there is no "
                "span to leave unmarked; choose another -c, or give no public values and kinds"
            )
        return cls(pi, conservative, public, conservative.name)

    @classmethod
    def pair(cls, pi: Policy, conservative: Policy, public: Public | None) -> tuple[Policy, Policy | Sparing]:
        """π, and π_c as ``of`` makes it."""
        return pi, cls.of(pi, conservative, public)

    @property
    def name(self) -> str:
        return f"{self.plain_name} {self.public.said}"

    @property
    def covers_all(self) -> bool:
        return False

    @cached_property
    def identity(self) -> str:
        return identity(self.pi.identity, self.conservative.identity, self.public)

    @property
    def version(self) -> str:
        """The first eight digits of the identity, for tables."""
        return self.identity[:8]

    def over(self, pi: Finder, conservative: Finder) -> Sparing:
        """The same with other finders of the same spans (remembered ones)."""
        return replace(self, pi=pi, conservative=conservative)

    def find(self, texts: Sequence[str]) -> list[Detection]:
        """What stays marked. Where a detector did not finish nothing is spared."""
        answers = list(self.conservative.find(texts))
        places = [i for i, found in enumerate(answers) if found.spans and found.status == "ok"]
        for i, sure in zip(places, self.pi.find([texts[i] for i in places]), strict=True):
            if sure.status == "ok":
                answers[i] = self._kept(texts[i], answers[i], sure)
        return answers

    def words(self, texts: Sequence[str]) -> list[Detection]:
        """What is found word by word, of tokens that may stand in no public value: they are marked wherever they stand. Any
        other token may be spared in one stretch and not in the next, so skeletons.py has to look."""
        found = self.conservative.words(texts)
        return [self._never_spared(text, each) for text, each in zip(texts, found, strict=True)]

    def local(self, texts: Sequence[str]) -> list[bool]:
        """Masks take the place of whole words of spans, so spans stay where they are: those that lose a word hold a mask
        and stay marked, the others are what they were."""
        return [a and b for a, b in zip(self.pi.local(texts), self.conservative.local(texts), strict=True)]

    def apart(self, texts: Sequence[str]) -> list[bool]:
        return [a and b for a, b in zip(self.pi.apart(texts), self.conservative.apart(texts), strict=True)]

    def _kept(self, text: str, found: Detection, sure: Detection) -> Detection:
        runs = _Spans.of(text, found.spans, sure.spans, self.public).spared(self.public)
        if not runs:
            return found
        spans = tuple(s for s in found.spans if not any(a < s.end and s.start < b for a, b in runs))
        return Detection(spans) if spans else CLEAN

    def _never_spared(self, text: str, found: Detection) -> Detection:
        if not found.spans:
            return found
        tokens = [token.span() for token in TOKEN.finditer(text) if not self.public.may_hold(key(token.group()))]
        spans = (replace(s, start=max(a, s.start), end=min(b, s.end)) for s in found.spans for a, b in tokens)
        return Detection(tuple(s for s in spans if s.start < s.end), found.status)


def identity(pi: str, conservative: str, public: Public) -> str:
    """Of a π_c that spares, from the identities it is made of."""
    parts = ["sparing", pi, conservative, dict(public.definition())]
    return hashlib.blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class _Spans:
    """tokens: of the text; words: their keys. spans: (first token, last token, whether it may be spared), in order."""

    text: str
    tokens: tuple[Interval, ...]
    words: tuple[str, ...]
    spans: tuple[tuple[int, int, bool], ...]

    @classmethod
    def of(cls, text: str, found: Sequence[Span], sure: Sequence[Span], public: Public) -> _Spans:
        bad = [*sure, *(Span(*mask.span()) for mask in _MASK.finditer(text))]
        tokens = tuple(token.span() for token in TOKEN.finditer(text))
        words = tuple(key(text[a:b]) for a, b in tokens)
        starts = [start for start, _ in tokens]
        marked = [*found, *bad]
        whole = [Span(*tokens[i]) for span in marked for i in _touching(tokens, starts, span.start, span.end)]
        spans = []
        for start, end in maximal(text, [*marked, *whole], BRIDGED):
            if its := _touching(tokens, starts, start, end):
                clean = not any(b.start < end and start < b.end for b in bad)
                spans.append((its[0], its[-1], clean and all(map(public.may_hold, words[its[0] : its[-1] + 1]))))
        return cls(text, tokens, words, tuple(spans))

    def spared(self, public: Public) -> list[Interval]:
        """Runs of tokens that are a public value as a whole and all of whose spans may be spared; every such span is in one
        of them."""
        if not any(may for _, _, may in self.spans):
            return []
        found: dict[Interval, None] = {}
        for first, last, may in self.spans:
            for low in range(max(0, last - public.longest + 1), first + 1) if may else ():
                for high in public.ends(low, last, self.words):
                    run = self.tokens[low][0], self.tokens[high][1]
                    text = self.text[slice(*run)]
                    if not _BORDER.search(text) and public.has(key(text)) and self._whole(low, high):
                        found[run] = None
        return list(found)

    def _whole(self, low: int, high: int) -> bool:
        """Whether every span that the run of tokens touches lies in it and may be spared."""
        return all(
            low <= first and last <= high and may for first, last, may in self.spans if first <= high and low <= last
        )


def _touching(tokens: Sequence[Interval], starts: Sequence[int], start: int, end: int) -> range:
    """Numbers of the tokens that ``start:end`` overlaps.

    >>> _touching([(0, 2), (3, 5)], [0, 3], 2, 4), _touching([(0, 2), (3, 5)], [0, 3], 2, 3)
    (range(1, 2), range(1, 1))
    """
    first = max(bisect_right(starts, start) - 1, 0)
    if first < len(tokens) and tokens[first][1] <= start:
        first += 1
    return range(first, max(first, bisect_right(starts, end - 1)))
