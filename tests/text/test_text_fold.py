"""Folding: patterns written for plain text match exotic spellings, and spans find their way back."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.screening.policies.deadline import deadline
from taciturn.text.fold import fold

ODD = "１٢३߅‐‑‒–—−－\u00a0\u2003\u3000\u200b\u200d\ufeff\u00ad\u0301\u0327ﬁ№ﷺ½Å가a1- "
texts = st.one_of(st.text(st.sampled_from(ODD), max_size=40), st.text(max_size=40))
SSN = re.compile(r"[0-9]{3}-[0-9]{2}-[0-9]{4}")


@given(texts)
def test_offsets_are_in_bounds_and_monotone(text: str) -> None:
    folded = fold(text)
    places = [folded.span(i, i + 1) for i in range(len(folded.text))]
    assert [start for start, _ in places] == sorted(start for start, _ in places)
    assert [end for _, end in places] == sorted(end for _, end in places)
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert all(fold(text[start:end]).text.count(c) for (start, end), c in zip(places, folded.text, strict=True))


@given(texts)
def test_folding_again_changes_nothing(text: str) -> None:
    once = fold(text).text
    assert fold(once).text == once


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_comes_back_as_it_is(text: str) -> None:
    folded = fold(text)
    assert folded.text == text
    assert all(folded.span(i, i + 1) == (i, i + 1) for i in range(len(text)))


@given(texts, texts, st.sampled_from(["123-45-6789", "１２３‐４５–６７８９", "١٢٣−٤٥\u200b-٦٧٨٩", "1\u00ad23‑45—6789"]))
def test_a_number_is_found_wherever_it_stands(before: str, after: str, number: str) -> None:
    text = f"{before}x{number}x{after}"
    folded = fold(text)
    at = len(before) + 1
    found = [folded.span(*match.span()) for match in SSN.finditer(folded.text)]
    assert (at, at + len(number)) in found


@given(st.text(st.characters(categories=("Lu", "Ll", "Lo", "Mn", "No", "Po"), max_codepoint=0x10FF), max_size=30))
def test_letters_are_nfkc_cluster_by_cluster(text: str) -> None:
    """Composing is idempotent, so NFKC of the folded text says whether anything but invisible characters is lost."""
    invisible = re.compile("[\u00ad\u200b-\u200f]")
    assert unicodedata.normalize("NFKC", fold(text).text) == unicodedata.normalize("NFKC", invisible.sub("", text))


def test_each_kind_of_change() -> None:
    assert fold("ﬁx №5").text == "fix No5"
    assert fold("a\u00a0b\u2003c\u3000d").text == "a b c d"
    assert fold("e\u0301").span(0, 1) == (0, 2)
    assert fold("\ufeffa\u200b").span(0, 1) == (1, 2)
    assert fold("½").text == "1\u20442"
    assert fold("½").span(1, 2) == (0, 1)
    with pytest.raises(IndexError):
        fold("a").span(0, 0)
    with pytest.raises(IndexError):
        fold("\u200b").span(0, 1)


@deadline(60)
def test_stacked_marks_take_linear_time() -> None:
    assert len(fold("a" + "\u0301" * 200_000).at) >= 200_000 // 32
