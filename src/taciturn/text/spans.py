"""Spans and detections: where something sensitive sits in a text. Offsets are code points, half-open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

CANARY = "canary"
"""Label of a span that was planted: not one of the corpus's secrets, so it says nothing of how many a policy misses."""

Status = Literal["ok", "truncated", "timeout", "error"]


@dataclass(slots=True, order=True, unsafe_hash=True)  # not frozen: see text/document.py
class Span:
    """``text[start:end]`` of the original text a detector (or an annotator) marked.

    label: what it is ("phone", "name", ...); score: detector confidence in [0, 1]; detector: who said so.
    """

    start: int
    end: int
    label: str = ""
    score: float = 1.0
    detector: str = ""


@dataclass(slots=True, unsafe_hash=True)
class Detection:
    """What one policy found in one text. Any status but ``ok`` makes the record private."""

    spans: tuple[Span, ...] = field(default=())
    status: Status = "ok"


def merge(spans: Iterable[Span]) -> list[tuple[int, int]]:
    """Disjoint, sorted ``(start, end)`` intervals: the unions of overlapping or touching spans.

    >>> merge([Span(3, 6), Span(0, 3), Span(9, 9), Span(8, 10)])
    [(0, 6), (8, 10)]
    """
    merged: list[tuple[int, int]] = []
    for start, end in sorted((s.start, s.end) for s in spans if s.end > s.start):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
