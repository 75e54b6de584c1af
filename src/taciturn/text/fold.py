"""A plain view of a text for patterns to match on, with the way back to exact offsets of the original.

``re`` finds full-width digits, ``google-re2`` does not, and neither finds a number written with U+2011 hyphens or with
zero-width characters inside. Patterns therefore run on the folded text and their spans are mapped back.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import regex

# Nothing that a reader sees: soft hyphens, joiners, controls of direction, variation selectors, fillers, tags.
_INVISIBLE = regex.compile(r"\p{Default_Ignorable_Code_Point}")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
# Neither digits nor marks nor anything a pattern takes for punctuation: what NFKC leaves alone stays as it is.
_LETTERS = re.compile(r"[^\W\d_\u115f\u1160]+")  # fillers of Hangul are letters that nobody sees
_DASHES = frozenset("\u2043\u207b\u208b\u2212")  # beside category Pd
_LONGEST_CLUSTER = 32  # as in Unicode's stream-safe text: no language stacks more marks


@dataclass(frozen=True, slots=True)
class Folded:
    """text: the folded view, made of stretches that begin at ``at`` (increasing). A stretch of width 0 runs along the
    original from ``origin``, character for character; all of another stems from ``original[origin : origin + width]``."""

    text: str
    at: Sequence[int]
    origin: Sequence[int]
    width: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The original span of ``text[start:end]`` (not empty): every character that contributed to it.

        >>> fold("№ １２\u201134").span(3, 8)
        (2, 7)
        """
        if not 0 <= start < end <= len(self.text):
            raise IndexError(f"span {start}:{end} is empty or outside a folded text of {len(self.text)} characters")
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, index: int) -> tuple[int, int]:
        stretch = bisect_right(self.at, index) - 1
        origin, width = self.origin[stretch], self.width[stretch]
        if width:
            return origin, origin + width
        start = origin + index - self.at[stretch]
        return start, start + 1


def fold(text: str) -> Folded:
    """NFKC, dashes as "-", spaces as " ", digits of any script as ASCII digits, invisible characters removed.

    NFKC is applied to each character with its combining marks; jamo are not composed. ASCII text comes back as it is.
    """
    if text.isascii():
        return Folded(text, (0,), (0,), (0,))
    parts: list[str] = []
    at: list[int] = []
    origin: list[int] = []
    width: list[int] = []
    size = done = 0

    def along(start: int, end: int) -> None:
        nonlocal size
        if start < end:
            if not at or width[-1] or origin[-1] + size - at[-1] != start:
                at.append(size)
                origin.append(start)
                width.append(0)
            parts.append(text[start:end])
            size += end - start

    for match in _NOT_ASCII.finditer(text):
        if _LETTERS.fullmatch(match[0]) and unicodedata.is_normalized("NFKC", match[0]):
            along(done, match.end())
            done = match.end()
            continue
        # The ASCII character before belongs to the first cluster: a combining mark may follow it.
        first = max(match.start() - 1, done)
        along(done, first)
        done = match.end()
        for cluster, start, end in _clusters(text, first, done):
            plain = _plain(cluster)
            if plain == cluster and end - start == 1:
                along(start, end)
            elif plain:
                at.append(size)
                origin.append(start)
                width.append(end - start)
                parts.append(plain)
                size += len(plain)
    along(done, len(text))
    return Folded("".join(parts), at, origin, width)


def _clusters(text: str, first: int, last: int) -> list[tuple[str, int, int]]:
    """(characters, start, end) of each visible character with the combining marks that follow it."""
    clusters: list[tuple[str, int, int]] = []
    for at in range(first, last):
        char = text[at]
        if _INVISIBLE.match(char):
            continue
        if clusters and unicodedata.combining(char) and len(clusters[-1][0]) < _LONGEST_CLUSTER:
            cluster, start, _ = clusters[-1]
            clusters[-1] = (cluster + char, start, at + 1)
        else:
            clusters.append((char, at, at + 1))
    return clusters


@lru_cache(maxsize=1 << 14)
def _plain(cluster: str) -> str:
    return "".join(map(_plain_character, unicodedata.normalize("NFKC", cluster)))


def _plain_character(char: str) -> str:
    if char.isascii():
        return char
    category = unicodedata.category(char)
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category == "Pd" or char in _DASHES:
        return "-"
    return " " if category == "Zs" else "" if _INVISIBLE.match(char) else char
