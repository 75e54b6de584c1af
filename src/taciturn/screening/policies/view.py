"""What detectors look at: the text with its masks blanked out, and a folded shadow of it that maps back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from taciturn.text.document import MASK
from taciturn.text.fold import Folded, fold

BLANK = "\x1a"
"""Stands for each code point of a mask: no letter, digit, space or punctuation that a pattern could take for content."""

WORD = re.compile(r"[^\x00-/:-@\[-^`{-\x7f‘’“”–—…•·£€¥°«»\s]+")
"""A word: letters, digits, "_", and every character outside ASCII but common typographic punctuation and signs."""

_SHORT = 2048


@dataclass(slots=True, unsafe_hash=True)
class View:
    """text: the original, same length, every ``<MASK>`` blanked. folded: NFKC shadow for patterns, None when it equals
    ``text``. masks: where the masks start."""

    text: str
    folded: Folded | None
    masks: tuple[int, ...]

    @classmethod
    def of(cls, original: str) -> View:
        return _short(original) if len(original) <= _SHORT else cls._make(original)

    @classmethod
    def _make(cls, original: str) -> View:
        masks: tuple[int, ...] = ()
        text = original
        if MASK in original:
            masks = tuple(m.start() for m in re.finditer(re.escape(MASK), original))
            text = original.replace(MASK, BLANK * len(MASK))
        return cls(text, None if text.isascii() else fold(text), masks)

    @property
    def digits(self) -> int:
        """How many digits the shadow holds: most texts hold few, and then most patterns need not run."""
        return _digits(self.shadow)

    @property
    def shadow(self) -> str:
        """What patterns match on."""
        return self.text if self.folded is None else self.folded.text

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Offsets in the original text of ``shadow[start:end]``."""
        return (start, end) if self.folded is None else self.folded.span(start, end)


@lru_cache(maxsize=1 << 12)  # one pattern after the other asks
def _digits(shadow: str) -> int:
    return sum(map(shadow.count, "0123456789"))


@lru_cache(maxsize=1 << 14)
def _short(original: str) -> View:
    """π, π_c and the checks that follow look at the same texts."""
    return View._make(original)
