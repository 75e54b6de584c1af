"""Texts longer than a model takes, screened in overlapping windows.

A span shorter than the overlap is seen whole by some window, so a detector that judges a span by the span alone finds in
windows what it finds in one pass. One that reads context (a language model) sees at most a window of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from taciturn.errors import UsageError
from taciturn.screening.policies.base import CLEAN, union
from taciturn.screening.policies.number_runs import grown
from taciturn.text.spans import Detection, Span

Find = Callable[[Sequence[str]], list[Detection]]
"""Texts in, one detection a text out, spans in offsets of that text."""

Window = tuple[int, int]


def cut(text: str, window: int, overlap: int) -> list[Window]:
    """The windows (start, end) of a text, in code points: at most ``window`` long, neighbours sharing at least ``overlap``.

    A border is moved up to half an overlap to the left, to white space if there is any. Raises UsageError unless
    0 < 2·overlap < window.

    >>> cut("one two three four", 12, 4)
    [(0, 12), (8, 18)]
    """
    if not 0 < 2 * overlap < window:
        raise UsageError(f"windows: an overlap of {overlap} needs windows of more than {2 * overlap}, found {window}")
    windows, start = [], 0
    while len(text) - start > window:
        end = _at_space(text, start + window, overlap // 2)
        windows.append((start, end))
        start = _at_space(text, end - overlap, overlap // 2)
    return [*windows, (start, len(text))]


def _at_space(text: str, border: int, reach: int) -> int:
    """The last place within ``reach`` before ``border`` that follows white space, else ``border``."""
    for place in range(border, border - reach - 1, -1):
        if text[place - 1].isspace():
            return place
    return border


def find(texts: Sequence[str], inner: Find, window: int, overlap: int) -> list[Detection]:
    """``inner`` on each text, in windows where it is longer than ``window`` (code points); the worst status is kept.

    A span that touches an inner border of its window is dropped when a neighbour has it away from its own borders: there it
    is found with what continues it, or rejected for it. Texts of up to ``window`` are given to ``inner`` as they are. A
    span that has a part of a number takes in all of it (number_runs.py).
    """
    return [_whole(text, d) for text, d in zip(texts, _find(texts, inner, window, overlap), strict=True)]


def _find(texts: Sequence[str], inner: Find, window: int, overlap: int) -> list[Detection]:
    if all(len(text) <= window for text in texts):
        return inner(texts)
    cuts = [cut(text, window, overlap) for text in texts]
    found = inner([text[a:b] for text, windows in zip(texts, cuts, strict=True) for a, b in windows])
    borders = pairwise(accumulate(map(len, cuts), initial=0))
    return [_joined(windows, found[a:b]) for windows, (a, b) in zip(cuts, borders, strict=True)]


def _whole(text: str, detection: Detection) -> Detection:
    places = [
        grown(text, span.start, span.end) if span.start < span.end else (span.start, span.end)
        for span in detection.spans
    ]
    if all(place == (span.start, span.end) for place, span in zip(places, detection.spans, strict=True)):
        return detection
    moved = (replace(span, start=a, end=b) for span, (a, b) in zip(detection.spans, places, strict=True))
    return replace(detection, spans=tuple(dict.fromkeys(moved)))


def _joined(windows: Sequence[Window], found: Sequence[Detection]) -> Detection:
    if len(windows) == 1:
        return found[0]
    kept = [Detection(tuple(_kept(windows, number, d.spans)), d.status) for number, d in enumerate(found)]
    whole = union(kept)
    return Detection(tuple(dict.fromkeys(whole.spans)), whole.status) if whole is not CLEAN else CLEAN


def _kept(windows: Sequence[Window], number: int, spans: Sequence[Span]) -> Iterator[Span]:
    """The spans of one window, in offsets of the text."""
    first, last = windows[number]
    end = windows[-1][1]
    neighbours = [windows[n] for n in (number - 1, number + 1) if 0 <= n < len(windows)]
    for span in spans:
        a, b = span.start + first, span.end + first
        cut_off = (a == first and first > 0) or (b == last and last < end)
        if not (cut_off and any((x < a or x == 0) and (b < y or y == end) for x, y in neighbours)):
            yield Span(a, b, span.label, span.score, span.detector)
