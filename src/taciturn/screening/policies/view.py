"""What detectors look at: the text with its masks blanked out, and a folded shadow of it that maps back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from taciturn.text.document import MASK
from taciturn.text.fold import Folded, fold

# One control character a code point: no letter, digit, space or punctuation that a pattern could take for content.
_BLANK = "\x1a" * len(MASK)
_SHORT = 4096
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class View:
    """text: the original, same length, every ``<MASK>`` blanked. folded: NFKC shadow for patterns, None when it equals
    ``text``. masks: where the masks start. digits: how many the shadow holds (most texts hold few, and then most patterns
    need not run)."""

    text: str
    folded: Folded | None
    masks: tuple[int, ...]
    digits: int

    @classmethod
    def of(cls, original: str) -> View:
        return _short(original) if len(original) <= _SHORT else cls._make(original)

    @classmethod
    def _make(cls, original: str) -> View:
        masks: tuple[int, ...] = ()
        text = original
        if MASK in original:
            masks = tuple(m.start() for m in re.finditer(re.escape(MASK), original))
            text = original.replace(MASK, _BLANK)
        folded = None if text.isascii() else fold(text)
        shadow = text if folded is None else folded.text
        return cls(text, folded, masks, len(_DIGIT.findall(shadow)))

    @property
    def shadow(self) -> str:
        """What patterns match on."""
        return self.text if self.folded is None else self.folded.text

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Offsets in the original text of ``shadow[start:end]``."""
        return (start, end) if self.folded is None else self.folded.span(start, end)


@lru_cache(maxsize=1 << 13)
def _short(original: str) -> View:
    """π, π_c and the checks that follow look at the same texts."""
    return View._make(original)
