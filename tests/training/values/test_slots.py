from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.screening.policies.rare_words import common_words
from taciturn.screening.policies.rare_words import names as people
from taciturn.text.chat import CLOSE, OPEN
from taciturn.text.document import MASK
from taciturn.training.values.contexts import Context, Contexts, around
from taciturn.training.values.shapes import made, shape
from taciturn.training.values.slots import LONGEST, MOST, NONE, TAILS, Slots, behind, parted

EVERYWHERE = Contexts(((None, None),))

# What stands behind masks


@pytest.mark.parametrize(
    ("text", "masked", "found"),
    [
        ("two on Monday.", f"{MASK} on {MASK}", ["two", "Monday."]),
        ("a b", "a b", []),
        (f"{MASK} on Monday", f"{MASK} on {MASK}", [None, "Monday"]),
        (f"{MASK}nd on Monday", f"{MASK} on {MASK}", [None, "Monday"]),
        ("on Monday", f"{MASK} on {MASK}", [None, None]),  # nothing stands there: they do not line up
        ("two at Monday", f"{MASK} on {MASK}", [None, None]),
        ("two on Monday, yes", f"two on {MASK}, no", [None]),
        ("at\n9", f"at{MASK}", [None]),
        (f"a{CLOSE}{OPEN}b c", f"a{MASK} c", [None]),
        ("x" * LONGEST, MASK, ["x" * LONGEST]),
        ("x" * (LONGEST + 1), MASK, [None]),
        (MASK, MASK, [None]),
    ],
)
def test_what_stands_behind_the_masks(text: str, masked: str, found: list[str | None]) -> None:
    assert behind(text, masked) == found


plain = st.text("ab ", max_size=4).map(lambda s: f" {s}| ")  # never inside a value
values = st.text("xyz1.é", min_size=1, max_size=6)


@given(st.lists(values, min_size=1, max_size=6), st.data())
def test_texts_built_of_segments_and_values_line_up_again(found: list[str], data: st.DataObject) -> None:
    segments = [data.draw(plain) for _ in found]
    first = data.draw(st.sampled_from(["", "a "]))
    last = data.draw(st.sampled_from(["", " b"]))
    segments[-1] = last
    text = first + "".join(value + segment for value, segment in zip(found, segments, strict=True))
    masked = first + "".join(MASK + segment for segment in segments)
    assert behind(text, masked) == found


@given(st.text("ab <MASK>\n", max_size=20), st.text("ab <MASK>\n", max_size=20), st.integers(0, 3))
def test_there_is_one_answer_a_mask_whatever_stands_there(text: str, masked: str, more: int) -> None:
    masked += f" {MASK}" * more
    found = behind(text, masked)
    assert len(found) == masked.count(MASK)
    assert not any(value is not None and (not value or MASK in value or value not in text) for value in found)


@given(st.text("ab9.,?!;:)' ", min_size=1, max_size=8))
def test_a_value_and_its_tail_are_the_whole(whole: str) -> None:
    value, tail = parted(whole)
    assert value + TAILS[tail] == whole
    assert value


# Shapes


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("17:45", "dd:dd"), ("TR7075", "AAdddd"), ("Acorn Hotel", "X Hotel"), ("Anna Borg,", "X X,"), ("3", "d"),
        ("zyx", None), ("Monday", None), ("zyx 17", None), ("the Zyxel", "the X"), ("$17.50", "$dd.dd"), ("ж9", "ad"),
    ],
)  # fmt: skip
def test_shapes(value: str, found: str | None) -> None:
    assert shape(value) == found


@given(st.text("aAxZ9 :.-$'éß", min_size=1, max_size=12))
def test_a_shape_keeps_no_digit_and_no_rare_word(value: str) -> None:
    form = shape(value)
    if form is None:
        return
    assert not re.search(r"\d", form)
    for word in re.findall(r"[^\W\d_]+", form):
        known = word.lower() in common_words(4.0) and word.lower() not in people()
        assert known or word == "X" or set(word) <= set("dAa"), "what is not common was not in the value, or is no more"


@pytest.mark.parametrize(
    "value", ["17:45", "9:30", "TR7075", "Acorn Hotel", "Anna Borg,", "$17.50", "12345", "A1-b22", "17:45."]
)
def test_what_is_made_of_a_shape_has_it(value: str) -> None:
    form, random = shape(value), np.random.default_rng(1)
    assert form is not None
    drawn = {made(form, random) for _ in range(40)}
    assert len(drawn) > 8
    assert {shape(each) for each in drawn} == {form}
    assert all(int(each[:2]) < 24 and int(each[3]) < 6 for each in drawn if form.startswith("dd:dd"))


# Contexts


@pytest.mark.parametrize(
    ("masked", "found"),
    [
        (f"For {MASK} people on {MASK}", [("for", "people"), ("on", "")]),
        (f"{OPEN}{MASK}, yes{CLOSE}", [("", ",")]),
        (f"a\n{MASK}\nb", [("", "")]),
        (f"({MASK}) {MASK}", [("(", ")"), (")", "")]),
        ("none", []),
        (f"{MASK} {MASK}", [("", ""), ("", "")]),
    ],
)
def test_the_words_around_a_mask(masked: str, found: list[Context]) -> None:
    assert around(masked) == found


words = st.sampled_from(["a", "b", "c", MASK])
skeletons = st.lists(st.lists(words, min_size=1, max_size=6).map(" ".join), max_size=12)


@given(skeletons, st.integers(1, 6))
def test_every_mask_has_one_class_and_all_but_the_last_have_enough(texts: list[str], least: int) -> None:
    contexts = Contexts.of(texts, least)
    counts = Counter(number for text in texts for number in contexts.numbers(text))
    assert sum(counts.values()) == sum(text.count(MASK) for text in texts)
    assert all(counts[i] >= least for i in range(len(contexts) - 1))
    assert contexts.classes[-1] == (None, None)
    assert Contexts.of(texts[::-1], least) == contexts, "the order says nothing"


def test_pairs_come_before_single_words() -> None:
    texts = [f"for {MASK} people"] * 5 + [f"for {MASK} a", f"for {MASK} b", f"x {MASK} people", f"y {MASK} people"]
    contexts = Contexts.of(texts, 2)
    assert contexts.classes == (("for", "people"), ("for", None), (None, "people"), (None, None))
    assert contexts.numbers(f"For {MASK} people for {MASK} c, {MASK} people {MASK}") == [0, 1, 2, 3]


# Slots


def test_what_a_record_has_is_counted_by_number() -> None:
    pairs = [
        ("at 17:45 on Monday.", f"at {MASK} on {MASK}"),
        ("at 17:45 on Monday.", f"at {MASK} on {MASK}"),  # a copy counts once
        ("at 17:45 on Monday.", f"{MASK} 17:45 on Monday."),  # the same text of another skeleton is another pair
        ("no mask", "no mask"),
        ("no skeleton", None),
        (f"at {MASK} on 9?", f"at {MASK} on {MASK}"),
    ]
    found = Slots.of(pairs, EVERYWHERE)
    assert found.counted.tolist() == [True, False, True, False, False, True]
    assert found.masks.tolist() == [2, 1, 2]
    assert found.record.tolist() == [0, 0, 1, 2, 2]
    assert [None if v == NONE else found.values[v] for v in found.value] == ["17:45", "Monday", "at", None, "9"]
    assert [None if s == NONE else found.shapes[s] for s in found.shape] == ["dd:dd", None, None, None, "d"]
    assert [None if t == NONE else TAILS[t] for t in found.tail] == ["", ".", "", "", "?"]
    assert len(found) == 6
    assert found.at(3) is found


@pytest.mark.parametrize("masks", [1, MOST, MOST + 5])
def test_masks_beyond_the_sixteenth_do_not_count(masks: int) -> None:
    found = Slots.of(
        [(" ".join(f"a v{i}" for i in range(masks)), " ".join(f"a {MASK}" for _ in range(masks)))], EVERYWHERE
    )
    assert found.masks.tolist() == [min(masks, MOST)]
    assert len(found.record) == min(masks, MOST)


def test_the_digest_tells_values_apart() -> None:
    def digest(text: str) -> str:
        return Slots.of([(text, f"at {MASK}")], EVERYWHERE).digest

    assert digest("at x") == digest("at x")
    assert len({digest("at x"), digest("at y"), digest("at x."), digest(f"at {MASK}")}) == 4
    assert Slots.of([], EVERYWHERE).digest
