"""Offsets of a browser against Python's own UTF-16, and marks against sets of positions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import DataError
from taciturn.reviewing import edits
from taciturn.reviewing.offsets import Offsets
from taciturn.screening.labels import LabelSpan

TEXT = st.text(st.sampled_from("ab .😀é\u0301\u200d𝒳\n"), min_size=1, max_size=30)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_offsets_are_those_of_utf16(text: str) -> None:
    offsets = Offsets.of(text)
    borders = [len(text[:i].encode("utf-16-le")) // 2 for i in range(len(text) + 1)]
    assert [offsets.to_units(i) for i in range(len(text) + 1)] == borders
    for unit in range(borders[-1] + 3):
        if unit in borders:
            assert offsets.to_point(unit) == borders.index(unit)
        else:
            with pytest.raises(DataError, match="border of a character"):
                offsets.to_point(unit)


def positions(spans: tuple[LabelSpan, ...]) -> set[int]:
    return {i for s in spans for i in range(s.start, s.end)}


@given(TEXT, st.lists(st.tuples(st.sampled_from(["add", "remove", "rename"]), st.integers(0, 30), st.integers(0, 30))))
def test_marks_do_what_they_say(text: str, steps: list[tuple[str, int, int]]) -> None:
    spans: tuple[LabelSpan, ...] = ()
    for what, a, b in steps:
        start, end = min(a, b, len(text)), min(max(a, b), len(text))
        before = spans
        if what == "add":
            if not text[start:end].strip():
                with pytest.raises(DataError):
                    edits.add(spans, text, start, end, "name")
                continue
            spans = edits.add(spans, text, start, end, "name")
            letters = {i for i in range(start, end) if not text[i].isspace()}
            assert positions(spans) >= positions(before) | letters
            assert positions(spans) <= positions(before) | set(range(start, end))
        elif what == "remove":
            spans = edits.remove(spans, start, end)
            assert set(spans) <= set(before)
            assert start == end or not positions(spans) & set(range(start, end))
            gone = [s for s in before if s not in spans]
            assert all(s.end >= start and s.start <= end for s in gone)
        else:
            spans = edits.rename(spans, start, end, "phone")
            assert positions(spans) == positions(before)
            if start < end:
                inside = [s for s in spans if set(range(s.start, s.end)) & set(range(start, end))]
                assert all(s.label == "phone" for s in inside)
        assert list(spans) == sorted(spans, key=lambda s: s.start)
        assert sum(s.end - s.start for s in spans) == len(positions(spans))  # none overlaps another
        assert all(text[s.start : s.end].strip() == text[s.start : s.end] for s in spans)


@pytest.mark.parametrize(("start", "end"), [(0, 0), (2, 1), (0, 99), (-1, 2), (3, 4)])
def test_selections_that_mark_nothing_are_refused(start: int, end: int) -> None:
    with pytest.raises(DataError, match="selection"):
        edits.add((), "abc d", start, end, "name")
