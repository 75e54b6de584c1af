"""Entity ids: one id for the same value however it is written, one entity a mention, no order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.screening.entities import entities, normal
from taciturn.text.spans import Span

TEXT = "Dana Vale-Ott lives at 12 Hill Road, call 020 7946 0958"


def test_ids_are_sorted_distinct_and_labelled() -> None:
    spans = [Span(42, 55, "phone"), Span(0, 13, "name"), Span(23, 35, "address"), Span(0, 13, "name", 0.4, "other")]
    assert entities(TEXT, spans) == ("address:12 hill road", "name:dana vale-ott", "phone:02079460958")


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([Span(0, 4, "name"), Span(0, 13, "name")], ("name:dana vale-ott",)),  # the longest
        ([Span(0, 9, "name"), Span(5, 13, "name")], ("name:dana vale",)),  # longer than "vale-ott"
        ([Span(0, 4, "b"), Span(0, 4, "a")], ("a:dana",)),  # equal: the first label
        ([Span(0, 4, "a"), Span(4, 9, "a")], ("a:dana", "a:vale")),  # touching is not overlapping
        ([Span(5, 5, "a"), Span(13, 14, "a")], ()),  # nothing in it
        ([Span(0, 4, "", 1.0, "who")], ("who:dana",)),
    ],
)
def test_overlaps(spans: list[Span], expected: tuple[str, ...]) -> None:
    assert entities(TEXT, spans) == expected


SPANS = st.lists(
    st.tuples(st.integers(0, len(TEXT)), st.integers(0, 12), st.sampled_from(["a", "b", "phone"])).map(
        lambda t: Span(t[0], min(t[0] + t[1], len(TEXT)), t[2])
    ),
    max_size=12,
)


@given(SPANS, st.randoms(use_true_random=False))
def test_order_does_not_matter(spans: list[Span], random_: random.Random) -> None:
    shuffled = spans[:]
    random_.shuffle(shuffled)
    assert entities(TEXT, spans) == entities(TEXT, shuffled)


@given(SPANS)
def test_chosen_spans_are_those_of_a_slow_reading_of_the_rule(spans: list[Span]) -> None:
    chosen: list[Span] = []
    for span in sorted(spans, key=lambda s: (-(s.end - s.start), s.start, s.label)):
        if span.end > span.start and all(span.end <= c.start or c.end <= span.start for c in chosen):
            chosen.append(span)
    values = {f"{s.label}:{normal(TEXT[s.start : s.end], s.label)}" for s in chosen}
    assert set(entities(TEXT, spans)) == {v for v in values if not v.endswith(":")}


WORD = st.text(st.sampled_from("abcXYZéÅßŁ09"), min_size=1, max_size=6)
DASHES = st.sampled_from("-\u2010\u2011\u2013\u2014\u2212")
BLANKS = st.text(st.sampled_from(" \t\n\u00a0\u2009"), min_size=1, max_size=3)


@given(st.lists(WORD, min_size=1, max_size=4), st.data())
def test_writing_does_not_matter(words: list[str], data: st.DataObject) -> None:
    def written() -> str:
        joined = words[0]
        for number, word in enumerate(words[1:]):
            joined += (data.draw(DASHES) if number % 2 else data.draw(BLANKS)) + word
        case = data.draw(st.sampled_from([str.upper, str.lower, str.swapcase, str.title, str]))
        edge = data.draw(st.sampled_from(["", " ", ",", "\u200b", ".) "]))
        return case(joined) + edge

    one, other = written(), written()
    assert normal(one, "name") == normal(other, "name")
    assert normal(one, "phone_number") == normal(other, "phone_number")


@given(st.text(st.sampled_from("0123456789"), min_size=4, max_size=12), st.lists(st.integers(1, 11), max_size=4))
def test_grouping_of_digits_does_not_matter_to_numbers(digits: str, cuts: list[int]) -> None:
    grouped = "".join(c + ("-" if i in cuts else "") for i, c in enumerate(digits))
    for label in ("phone", "PHONE_NUMBER", "credit-card", "US_SSN", "account_id"):
        assert normal(grouped, label) == digits
    assert normal("3.50", "money") != normal("350", "money")


@given(st.text(max_size=20), st.sampled_from(["name", "iban"]))
def test_normal_is_idempotent(value: str, label: str) -> None:
    assert normal(normal(value, label), label) == normal(value, label)
