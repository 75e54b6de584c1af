"""A plain view of a text for patterns to match on, with the way back to exact offsets of the original.

``re`` finds full-width digits, ``google-re2`` does not, and neither finds a number written with U+2011 hyphens or with
zero-width characters inside. Patterns therefore run on the folded text and their spans are mapped back.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

# Soft hyphen, zero-width space and (non-)joiners, word joiner, byte order mark, bidirectional controls, variation
# selectors, Mongolian vowel separator: nothing a reader sees.
_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufe00-\ufe0f\ufeff]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_DASHES = frozenset("\u2043\u207b\u208b\u2212")  # beside category Pd
_LONGEST_CLUSTER = 32  # as in Unicode's stream-safe text: no language stacks more marks


@dataclass(frozen=True, slots=True)
class Folded:
    """text: the folded view. ``text[i]`` came from ``original[starts[i]:ends[i]]``; both never decrease."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The original span of ``text[start:end]`` (not empty): every character that contributed to it.

        >>> fold("№ １２\u201134").span(3, 8)
        (2, 7)
        """
        if not 0 <= start < end <= len(self.text):
            raise IndexError(f"span {start}:{end} is empty or outside a folded text of {len(self.text)} characters")
        return self.starts[start], self.ends[end - 1]


def fold(text: str) -> Folded:
    """NFKC, dashes as "-", spaces as " ", digits of any script as ASCII digits, invisible characters removed.

    NFKC is applied to each character with its combining marks; jamo are not composed. ASCII text comes back as it is.
    """
    if text.isascii():
        return Folded(text, range(len(text)), range(1, len(text) + 1))
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for match in _NOT_ASCII.finditer(text):
        # The ASCII character before belongs to the first cluster: a combining mark may follow it.
        first = max(match.start() - 1, at)
        parts.append(text[at:first])
        starts += range(at, first)
        ends += range(at + 1, first + 1)
        at = match.end()
        for cluster, start, end in _clusters(text, first, at):
            plain = _plain(cluster)
            parts.append(plain)
            starts += [start] * len(plain)
            ends += [end] * len(plain)
    parts.append(text[at:])
    starts += range(at, len(text))
    ends += range(at + 1, len(text) + 1)
    return Folded("".join(parts), starts, ends)


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
