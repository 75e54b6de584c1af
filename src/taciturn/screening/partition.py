"""Which part a record belongs to (guarantees.md §2.3)."""

from __future__ import annotations

from typing import Literal

from taciturn.text.document import MASK

RecordPart = Literal["public", "private"]


def part(redacted: str, *, marked: bool, failed: bool, private_because: str | None) -> RecordPart:
    """Private if π or π_c marks any token of the original text (``marked``), if the redacted text holds a ``<MASK>`` (ours
    or the input's own), if a detector did not finish (``failed``), or if the input said so."""
    private = marked or failed or private_because is not None or MASK in redacted
    return "private" if private else "public"
