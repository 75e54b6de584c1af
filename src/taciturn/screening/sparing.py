"""π_c that leaves public values unmarked, whole spans only (guarantees.md §3.1, "Public values").

A *span* is all that π and π_c mark with nothing but blanks and punctuation between, literal masks included, out to the
blanks around it. It is spared if it lies in a run of whole tokens that is, as a whole, one of the values or kinds, and if
every span which that run touches lies in it, holds no ``<MASK>`` and touches no mark of π. So no word of a longer span is
ever spared, and masking any word of a span leaves the rest of it marked, because it then holds a mask.

A run lies between two masks or it does not, so where π and π_c are *apart* (maskings.py) or word by word, so is what is
left of π_c.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

import orjson

from taciturn.errors import UsageError
from taciturn.screening.policies.base import CLEAN, Policy
from taciturn.screening.policies.finder import Finder
from taciturn.screening.policies.public import Public, key
from taciturn.screening.redact import BRIDGED, Interval, maximal
from taciturn.text.document import MASK
from taciturn.text.spans import Detection, Span

_TOKEN = re.compile(r"[^\s\x1e\x1f]+")
_MASK = re.compile(re.escape(MASK))
_BORDER = re.compile(r"[\x1e\x1f]")


@dataclass(frozen=True)
class Sparing:
    """What ``conservative`` marks, but public values that ``pi`` does not touch; made by ``of``."""

    pi: Finder
    conservative: Finder
    public: Public
    plain_name: str

    @classmethod
    def of(cls, pi: Policy, conservative: Policy, public: Public | None) -> Policy | Sparing:
        """``conservative`` itself where nothing is public. Raises UsageError for one that marks everything: its one span is
        the record."""
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
        return sparing_identity(self.pi.identity, self.conservative.identity, self.public)

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
            if sure.status == "ok" and (runs := _spared(texts[i], answers[i].spans, sure.spans, self.public)):
                spans = tuple(s for s in answers[i].spans if not any(a < s.end and s.start < b for a, b in runs))
                answers[i] = Detection(spans) if spans else CLEAN
        return answers

    def words(self, texts: Sequence[str]) -> list[Detection]:
        """What is found word by word and stays marked in every stretch of a text (maskings.py): tokens in no public run, or
        only in runs that a marked word stands next to, in the stretch itself or as the mask where it was cut. Any other
        token may be spared in one stretch and not in the next, so maskings.py has to look at all of them."""
        found = self.conservative.words(texts)
        return [_never_spared(text, each, self.public) for text, each in zip(texts, found, strict=True)]

    def patterns(self, texts: Sequence[str]) -> list[Detection]:
        """All: a word that is spared in a text may be marked in a stretch of it."""
        return self.find(texts)

    def local(self, texts: Sequence[str]) -> list[bool]:
        """Masks take the place of whole words of spans, so spans stay where they are: those that lose a word hold a mask
        and stay marked, the others are what they were."""
        return [a and b for a, b in zip(self.pi.local(texts), self.conservative.local(texts), strict=True)]

    def apart(self, texts: Sequence[str]) -> list[bool]:
        return [a and b for a, b in zip(self.pi.apart(texts), self.conservative.apart(texts), strict=True)]


def sparing_identity(pi: str, conservative: str, public: Public) -> str:
    """From the identities of both policies: what is spared depends on what π marks."""
    parts = ["sparing", pi, conservative, dict(public.definition())]
    return hashlib.blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class _Cut:
    """A text in tokens, what stands between blanks. words: their keys."""

    text: str
    tokens: tuple[Interval, ...]
    starts: tuple[int, ...]
    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> _Cut:
        tokens = tuple(token.span() for token in _TOKEN.finditer(text))
        return cls(text, tokens, tuple(start for start, _ in tokens), tuple(key(text[a:b]) for a, b in tokens))

    def touching(self, start: int, end: int) -> range:
        """Numbers of the tokens that ``start:end`` overlaps.

        >>> _Cut.of("ab cd").touching(2, 4), _Cut.of("ab cd").touching(2, 3)
        (range(1, 2), range(1, 1))
        """
        first = max(bisect_right(self.starts, start) - 1, 0)
        if first < len(self.tokens) and self.tokens[first][1] <= start:
            first += 1
        return range(first, max(first, bisect_right(self.starts, end - 1)))

    def runs(self, chosen: Iterable[int], public: Public) -> Iterator[tuple[int, int]]:
        """Runs (first token, last token) with one of the ``chosen`` tokens in them that are a public value as a whole."""
        held = [i for i in chosen if public.may_hold(self.words[i])]
        for low in sorted({low for i in held for low in range(max(0, i - public.longest + 1), i + 1)}):
            for high in public.ends(low, self.words):
                text = self.text[self.tokens[low][0] : self.tokens[high][1]]
                if not _BORDER.search(text) and public.has(key(text)):
                    yield low, high

    def beside(self, low: int, high: int, marked: Set[int]) -> bool:
        """Whether a marked token outside a run has nothing but blanks and punctuation between it and a marked one in it."""
        inside = [i for i in range(low, high + 1) if i in marked]
        before = max((i for i in marked if i < low), default=None)
        after = min((i for i in marked if i > high), default=None)
        joined = inside and before is not None and self._joined(before, inside[0])
        return bool(joined or (inside and after is not None and self._joined(inside[-1], after)))

    def _joined(self, left: int, right: int) -> bool:
        return BRIDGED.fullmatch(self.text, self.tokens[left][1], self.tokens[right][0]) is not None


def _spared(text: str, found: Sequence[Span], sure: Sequence[Span], public: Public) -> list[Interval]:
    """Runs of tokens that are a public value as a whole and all of whose spans may be spared. found: of π_c; sure: of π."""
    cut = _Cut.of(text)
    bad = [*sure, *(Span(*mask.span()) for mask in _MASK.finditer(text))]
    marked = [*found, *bad]
    whole = [Span(*cut.tokens[i]) for span in marked for i in cut.touching(span.start, span.end)]
    spans: list[tuple[range, bool]] = []
    for start, end in maximal(text, [*marked, *whole], BRIDGED):
        its = cut.touching(start, end)
        clean = not any(b.start < end and start < b.end for b in bad)
        spans.append((its, clean and all(public.may_hold(cut.words[i]) for i in its)))

    def free(low: int, high: int) -> bool:
        """Whether every span that the run touches lies in it and may be spared."""
        touched = [(its, may) for its, may in spans if its and its[0] <= high and low <= its[-1]]
        return all(low <= its[0] and its[-1] <= high and may for its, may in touched)

    runs = cut.runs({its[0] for its, may in spans if its and may}, public)
    return [(cut.tokens[low][0], cut.tokens[high][1]) for low, high in runs if free(low, high)]


def _never_spared(text: str, found: Detection, public: Public) -> Detection:
    """What was found word by word, on tokens that are in no run which could be spared in a stretch of the text."""
    if not found.spans:
        return found
    cut = _Cut.of(text)
    marked = {i for span in found.spans for i in cut.touching(span.start, span.end)}
    open_ = {
        i for low, high in cut.runs(marked, public) if not cut.beside(low, high, marked) for i in range(low, high + 1)
    }
    tokens = [cut.tokens[i] for i in sorted(marked - open_)]
    spans = (replace(s, start=max(a, s.start), end=min(b, s.end)) for s in found.spans for a, b in tokens)
    return Detection(tuple(s for s in spans if s.start < s.end), found.status)
