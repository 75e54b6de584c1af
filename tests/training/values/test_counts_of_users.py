"""A user counts once for each thing: what one person writes in every mail is no common value."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.text.document import MASK
from taciturn.training.values.contexts import Contexts
from taciturn.training.values.counting import closed, opened, weights
from taciturn.training.values.slots import Slots

ANY = Contexts(((None, None),))
WORDS = ("Zed", "Quill", "Ruby")
SKELETONS = (f"a {MASK}", f"a {MASK} b {MASK}", f"{MASK} c", f"a {MASK} b {MASK} d {MASK}")
M0 = 2.0

Record = tuple[str, tuple[str, ...], str | None]


def text(skeleton: str, words: tuple[str, ...]) -> str:
    first, *rest = skeleton.split(MASK)
    return first + "".join(word + part for word, part in zip(words, rest, strict=False))


word = st.sampled_from((*WORDS, MASK))
record = st.tuples(st.sampled_from(SKELETONS), st.tuples(word, word, word), st.sampled_from((None, "u", "v")))


def slots(records: list[Record]) -> Slots:
    pairs = [(text(skeleton, words), skeleton) for skeleton, words, _ in records]
    return Slots.of(pairs, ANY, [user for *_, user in records])


def by_name(records: list[Record]) -> dict[str, float]:
    """All four tables as one vector, with the values ``WORDS`` known."""
    found = slots(records)
    weight = weights(found, M0)
    values, _ = opened(found, weight)
    known = [found.values.index(each) for each in WORDS if each in found.values]
    contexts, tails = closed(found, weight, known, [])
    vector = {f"value {name}": float(values[found.values.index(name)]) for name in WORDS if name in found.values}
    vector |= {f"in context {found.values[v]}": float(contexts[0, i]) for i, v in enumerate(known)}
    vector |= {"in context, none": float(contexts[0, -1])}
    return vector | {f"tail {i}": float(x) for i, x in enumerate(tails.reshape(-1))}


@settings(deadline=None)
@given(st.lists(record, max_size=8))
def test_counts_are_those_of_a_slow_oracle(records: list[Record]) -> None:
    most: defaultdict[tuple[str, object], float] = defaultdict(float)
    seen = set()
    for i, (skeleton, words, user) in enumerate(records):
        pair = text(skeleton, words), skeleton
        if pair in seen:
            continue
        seen.add(pair)
        masks = skeleton.count(MASK)
        for name in words[:masks]:
            key = name, user if user is not None else ("nobody", i)
            most[key] = max(most[key], min(1.0, np.sqrt(M0 / masks)))
    expected = {name: sum(w for (each, _), w in most.items() if each == name) for name in WORDS}
    found = slots(records)
    values, _ = opened(found, weights(found, M0))
    for name in WORDS:
        got = float(values[found.values.index(name)]) if name in found.values else 0.0
        assert abs(got - expected[name]) < 1e-9


@settings(deadline=None, max_examples=300)
@given(st.lists(record, max_size=6), record, st.tuples(word, word, word), st.integers(0, 6))
def test_one_record_moves_each_table_by_root_two_m0(
    others: list[Record], one: Record, words: tuple[str, ...], place: int
) -> None:
    """Whoever's it is, and whoever then holds the pair that it leaves or meets."""
    skeleton, _, user = one
    before = by_name([*others[:place], one, *others[place:]])
    after = by_name([*others[:place], (skeleton, words, user), *others[place:]])
    for table in ("value", "in context", "tail"):
        keys = {key for key in (*before, *after) if key.startswith(table)}
        moved = sum((before.get(key, 0.0) - after.get(key, 0.0)) ** 2 for key in keys)
        assert moved <= 2 * M0 + 1e-9


def test_a_signature_in_every_mail_of_one_user_counts_as_one() -> None:
    mails: list[Record] = [(f"mail {i}, {MASK}", ("Zed", "", ""), "zed") for i in range(50)]
    found = slots(mails)
    assert opened(found, weights(found, M0))[0].tolist() == [1.0]
    nobody = slots([(skeleton, words, None) for skeleton, words, _ in mails])
    assert opened(nobody, weights(nobody, M0))[0].tolist() == [50.0]


def test_what_follows_a_mask_is_counted_too_as_it_is_part_of_what_the_skeleton_masks() -> None:
    """Else no noiseless step ever had a full stop behind a number that the policy finds as a target."""
    found = Slots.of([(f"call {MASK}.", f"call {MASK}"), ("call Zed?", f"call {MASK}"), ("say", f"call {MASK}")], ANY)
    _, tails = closed(found, weights(found, M0), [], [])
    assert tails[0].tolist() == [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0]  # at the end of a text
    assert found.values == ("Zed",)
