"""Numbers are masked whole or not at all, whatever stands between their digits and however they are said."""

from __future__ import annotations

import re
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taciturn.screening import policy
from taciturn.screening.policies import Regex, View, number_runs, number_words, patterns
from taciturn.screening.policies.conservative import LEVELS
from taciturn.screening.policies.number_runs import grown, runs
from taciturn.screening.redact import redact, survives
from taciturn.text.document import MASK
from taciturn.text.spans import merge
from timing import in_proportion

PII = policy("pii")


def masked(text: str, *names: str) -> str:
    return redact([text], policy(*names) if names else PII)[0].text


WHOLE = [
    "4111.1111.1111.1111",
    "4111,1111,1111,1111",
    "4111/1111/1111/1111",
    "4111 1111\n1111 1111",
    "4111-1111-\n1111-1111",
    "4111 **** **** 1111 22",
    "0 7 8 0 5 1 1 2 1",
    "0, 7, 8, 0, 5, 1, 1, 2, 1",
    "0-7-8-0-5-1-1-2-1",
    "2 95 10 99 126 111 93",
    "2 95 10 99 126 111 94",
    "1 84 12 76 451 089 46",
    "078.05.1121",
    "078/05/1121",
    "0171/2345678",
    "030 / 123456",
    "O78-O5-1121",
    "4111 llll 1111 1111",
    "4lll 1111 11l1 1111",
    "(0)20 (7946) 0958 11",
    "four one one, double two, oh",
    "four one one one, double one, oh two three four five six seven eight nine",
    "four-one-one-two-two-oh",
    "null sieben acht null fünf eins eins zwei eins",
    "null sechs einundzwanzig dreiunddreissig",
    "zéro six douze trente-quatre cinquante-six",
    "cero siete ocho cero cinco uno",
    "zero sette otto zero ventuno",
    "nul zes eenentwintig drie vier",
    "zero siedem osiem zero pięć jeden",
    "zero siedem osiem zero piec jeden",
    "zero meia oito zero cinco um",
    "vingt et un douze trente trois",
]


@pytest.mark.parametrize("number", WHOLE)
@pytest.mark.parametrize("frame", ["{}", "it was {} indeed", "line\n({})\nline", "is {}."])
def test_a_number_is_masked_whole(number: str, frame: str) -> None:
    inside = MASK if "(" not in number else None
    text = masked(frame.format(number))
    assert not re.search(r"\d", text)
    assert inside is None or text == frame.format(MASK)


LEFT_ALONE = [
    "it costs 1,234,567.89 or 1.234.567,89 or 12 345 678",
    "revenue 12,345 13,456 14,567 15,678",
    "0.123456789 and 3.141592653589793",
    "in 1998, 1999, 2000, 2001 and 1939-1945, 2001/02 2002/03",
    "on 2021-03-04 12:30:45, 04.03.1987 - 05.04.1990, 20210304-123045",
    "won 6-4, 3-6, 7-5, 6-2, 6-1 and 21-14 35-28 14-7",
    "pages 123-145, 200-210, 310-312",
    "steps 1, 2, 3, 4, 5, 6, 7, 8, 9, 10",
    "12, 15, 20, 25, 30, 35",
    "1\n2\n15\n18\n20\n25\n30",
    "id 110bcd25-a55d-453a-8046-1297901ea002",
    "one or two, one two, the one",
    "twenty one of forty two",
    "version 4.4.2.10 and 1.22.1.3",
    "World War II 1939 III",
]


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_what_has_another_reading_stays(text: str) -> None:
    assert masked(text) == text


HALVES = [
    ("confirmation number AA1B2**9ABA7 ok", "confirmation number {} ok"),
    ("reference AB12CD34-567-890", "reference {}"),
    ("call 980.322.8737.12 now", "call {} now"),
    ("acct: 1234-5678/90*12", "acct: {}"),
    ("pin is 4821/7", "pin is {}"),
    ("phone 450 0840,77", "phone {}"),
]


@pytest.mark.parametrize(("text", "right"), HALVES)
def test_a_match_beside_more_of_its_number_grows(text: str, right: str) -> None:
    assert masked(text) == right.format(MASK)


@pytest.mark.parametrize("level", LEVELS)
def test_three_number_words_are_marked_at_every_level_and_one_is_not(level: str) -> None:
    for text in ("four one one", "four one one, double two, oh", "oh, five. six", "Four One One", "zwei eins drei"):
        assert masked(text, level) == MASK
    for text in ("one", "one or two", "no one", "one two"):
        assert masked(text, level) == text


DIGITS = st.text("3456789", min_size=1, max_size=1)
JOINTS = st.sampled_from([" ", "  ", "-", ".", "/", ",", "*", "_", " - ", ") (", " ** "])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text("3456789", min_size=4, max_size=4), min_size=4, max_size=4), JOINTS)
def test_a_card_is_masked_whole_with_any_joint(groups: list[str], joint: str) -> None:
    assert masked(f"card {joint.join(groups)} ok") == f"card {MASK} ok"


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(number_words.sizes())), min_size=3, max_size=8),
    st.sampled_from([" ", ", ", "-", "\n"]),
)
@example(["um", "dois", "très"[:4]], " ")
def test_every_row_of_number_words_is_found(words: list[str], gap: str) -> None:
    words = [word for word in words if word in number_words.sizes()]
    if len(words) > 2:
        assert masked(gap.join(words).upper() if "ß" not in "".join(words) else gap.join(words), "number-words") == MASK


PIECES = (  # noqa: SIM905
    "1 22 333 4444 55555 078 O5 l1 980.322.8737 one two three oh A1 b2c DE89 x - . / , * ( ) 4111-1111 pin phone is ssn"
    " account number ref 12:30 2021-03-04 $"
).split()
TEXTS = st.lists(
    st.sampled_from([*PIECES, "\n", " ", " ", ", ", MASK]),
    max_size=14,
)


@settings(max_examples=600, deadline=None)
@given(TEXTS, st.sampled_from(["", " "]))
def test_no_mark_covers_a_part_of_a_run(pieces: list[str], between: str) -> None:
    """Dates, links and addresses of mail keep their own borders; no other pattern of pii cuts a run of its first or last
    group."""
    text = between.join(pieces)
    for detector in map(patterns.detector, patterns.PII):
        if not detector.whole:
            continue
        (found,) = detector.find([View.of(text)])
        for span in found.spans:
            assert grown(text.replace(MASK, "\x1a" * len(MASK)), span.start, span.end) == (span.start, span.end)


@settings(max_examples=600, deadline=None)
@given(TEXTS, st.sampled_from(["", " "]), st.data())
def test_growing_reaches_the_ends_of_the_runs_it_touches(pieces: list[str], between: str, data: st.DataObject) -> None:
    """The quick look beside a match sees whatever the full reading joins."""
    text = between.join(pieces).replace(MASK, "\x1a")
    if not text:
        return
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    low, high = start, end
    for run in runs(text):
        if run.start <= start < run.end and text[start].isalnum():
            low = min(low, run.start)
        if run.start < end <= run.end and text[end - 1].isalnum():
            high = max(high, run.end)
    assert grown(text, start, end) == (low, high)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.sampled_from(["", " "]))
@example(["one", "2021-03-04", "account", "2021-03-04", "1"], " ")
def test_masking_a_marked_number_leaves_the_result_as_it_was(pieces: list[str], between: str) -> None:
    text = between.join(pieces)
    runs_only = policy("number-run", "number-said", "number-words", "phone-cued", "pin", "account", "card")
    (found,) = redact([text], runs_only)
    assert all(all(kept) for kept in survives([(text, found.marks)], runs_only))


def test_runs_never_reach_over_a_mask_or_a_clock() -> None:
    (found,) = policy("number-run").find([f"4111 1111 {MASK} 1111 1111"])
    assert found.spans == ()
    assert [text for run in runs("at 12:30 4111") if (text := "at 12:30 4111"[run.start : run.end])] == ["4111"]


@pytest.mark.parametrize(
    "unit",
    ["1 ", "1\n", "1, ", "one ", "oh-", "O", "1*", "(1", "1 * * ", "a1", "a-1", "seventeen", "1:2", "- ", "\n", "1-\n"],
)
def test_a_long_row_takes_linear_time(unit: str) -> None:
    def read(text: str) -> object:
        number_runs._long.cache_clear()
        number_runs._starts.cache_clear()
        return [grown(text, at, at + 1) for at in range(0, len(text), 97)]

    one, eight = ((unit * n)[:n] for n in (10_000, 80_000))
    assert in_proportion(partial(read, one), partial(read, eight), 16, 0.2)


def test_a_detector_with_many_matches_in_one_run_takes_linear_time() -> None:

    each = Regex("two", r"\d\d", must_find=("12",), whole=True)
    short, long = (View.of("12-" * n) for n in (4_000, 32_000))
    assert in_proportion(partial(each.find, [short]), partial(each.find, [long]), 16, 0.2)
    (found,) = each.find([long])
    assert merge(found.spans) == [(0, 32_000 * 3 - 1)]
    assert len(found.spans) == 1
