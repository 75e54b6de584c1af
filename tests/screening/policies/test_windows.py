"""Windows find what one pass finds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import UsageError
from taciturn.screening.policies import windows
from taciturn.text.spans import Detection, Span

# Whole words with an '@': a window that cuts one sees a shorter one, or none.
_TOY = re.compile(r"\S*@\S*")


def toy(texts: Sequence[str]) -> list[Detection]:
    return [Detection(tuple(Span(*m.span(), "toy", 0.5, "toy") for m in _TOY.finditer(t))) for t in texts]


SIZES = st.tuples(st.integers(2, 20), st.integers(1, 30)).map(lambda s: (2 * s[0] + s[1], s[0]))


@given(st.text("a@ \n", max_size=400), SIZES)
def test_windows_cover_a_text_and_share_the_overlap(text: str, sizes: tuple[int, int]) -> None:
    window, overlap = sizes
    cuts = windows.cut(text, window, overlap)
    assert cuts[0][0] == 0
    assert cuts[-1][1] == len(text)
    assert all(b - a <= window for a, b in cuts)
    assert all(c < b - overlap + 1 and a < c and b < d for (a, b), (c, d) in pairwise(cuts))


@given(st.data(), SIZES)
def test_spans_shorter_than_the_overlap_are_those_of_one_pass(data: st.DataObject, sizes: tuple[int, int]) -> None:
    window, overlap = sizes
    word = st.text("ab@é", min_size=1, max_size=overlap - 1)
    text = data.draw(st.lists(st.tuples(word, st.sampled_from([" ", "  ", "\n"])).map("".join), max_size=60)).copy()
    whole = "".join(text)
    assert windows.find([whole, "x"], toy, window, overlap) == toy([whole, "x"])


def test_ten_million_characters() -> None:
    """Field case P19: one long document must not stop a run."""
    text = ("lorem ipsum dolor dana@example.com sit amet, " * 222_223)[:10_000_000]
    sizes = []

    def inner(texts: Sequence[str]) -> list[Detection]:
        sizes.extend(map(len, texts))
        return toy(texts)

    assert windows.find([text], inner, 20_000, 1_000) == toy([text])
    assert max(sizes) <= 20_000


def test_a_span_longer_than_the_overlap_is_kept_in_parts() -> None:
    text = "x " * 10 + "@" * 50 + " x" * 10
    (found,) = windows.find([text], toy, 40, 10)
    covered = {i for s in found.spans for i in range(s.start, s.end)}
    assert covered >= {i for i, c in enumerate(text) if c == "@"}


def test_the_worst_status_is_kept() -> None:
    def inner(texts: Sequence[str]) -> list[Detection]:
        return [Detection(status="truncated" if "!" in t else "error" if "?" in t else "ok") for t in texts]

    texts = ["a " * 50, "a " * 50 + "!", "! " + "a " * 50 + "?"]
    assert [d.status for d in windows.find(texts, inner, 30, 10)] == ["ok", "truncated", "error"]


def test_an_overlap_must_fit_the_window() -> None:
    with pytest.raises(UsageError, match="needs windows of more than 20, found 20"):
        windows.cut("text", 20, 10)


@pytest.mark.parametrize(
    ("text", "piece", "found"),
    [
        ("id 110bcd25-a55d-453a-8046-1297901ea002 ok", "8046", "110bcd25-a55d-453a-8046-1297901ea002"),
        ("card 4111.1111.1111.1111 ok", "4111.1111.1111", "4111.1111.1111.1111"),
        ("ref AA1B2**9ABA7 ok", "AA1B2", "AA1B2**9ABA7"),
        ("Anna Berg, 12 years", "Anna Berg", "Anna Berg"),
    ],
)
def test_a_model_that_sees_a_piece_of_a_number_has_all_of_it(text: str, piece: str, found: str) -> None:
    def model(texts: Sequence[str]) -> list[Detection]:
        return [Detection((Span(t.index(piece), t.index(piece) + len(piece), "x", 0.5, "m"),)) for t in texts]

    [detection] = windows.find([text], model, 100, 10)
    assert [text[s.start : s.end] for s in detection.spans] == [found]
