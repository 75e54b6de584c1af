"""What a reviewer does to the marks of one record. Pure: a tuple of spans in, a tuple of spans out, in order."""

from __future__ import annotations

from collections.abc import Sequence

from taciturn.errors import DataError
from taciturn.screening.labels import LabelSpan

Spans = tuple[LabelSpan, ...]


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The selection without the blanks at its ends. Raises DataError if nothing is left or it leaves the text.

    >>> trimmed("ask dana now", 3, 9)
    (4, 8)
    """
    if not 0 <= start < end <= len(text):
        raise DataError(f"selection {start}:{end} is empty or outside a text of {len(text)} characters")
    picked = text[start:end]
    if not picked.strip():
        raise DataError("the selection holds nothing but blanks; select the secret itself")
    return start + len(picked) - len(picked.lstrip()), end - len(picked) + len(picked.rstrip())


def add(spans: Sequence[LabelSpan], text: str, start: int, end: int, kind: str) -> Spans:
    """Mark a selection. Marks it overlaps become one with it, so that a mark never shrinks by adding."""
    start, end = trimmed(text, start, end)
    joined = [s for s in spans if s.start < end and start < s.end]
    start, end = min([start, *(s.start for s in joined)]), max([end, *(s.end for s in joined)])
    return _ordered([*(s for s in spans if s not in joined), LabelSpan(start=start, end=end, label=kind)])


def remove(spans: Sequence[LabelSpan], start: int, end: int) -> Spans:
    """Without the marks that a selection, or a caret (start == end), touches."""
    return _ordered([s for s in spans if not touches(s, start, end)])


def rename(spans: Sequence[LabelSpan], start: int, end: int, kind: str) -> Spans:
    """The marks that a selection or a caret touches, under another kind."""
    return _ordered([s.model_copy(update={"label": kind}) if touches(s, start, end) else s for s in spans])


def touches(span: LabelSpan, start: int, end: int) -> bool:
    """Whether a selection overlaps the span, or a caret stands in it or at its edge."""
    return span.start <= start <= span.end if start == end else span.start < end and start < span.end


def _ordered(spans: Sequence[LabelSpan]) -> Spans:
    return tuple(sorted(spans, key=lambda s: (s.start, s.end, s.label)))
