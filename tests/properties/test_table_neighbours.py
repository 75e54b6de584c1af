"""guarantees.md §3.7, Lemma 3: the tables of neighbours that were screened for real are no further apart than Δ."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neighbours import (
    SCOPES,
    context_policies,
    context_policy,
    examples,
    local_policies,
    neighbours,
    policies,
    run,
    words_policy,
)
from tables import minus, names, norm, vector
from taciturn.mechanisms.values import ValueTable, slots_of
from taciturn.screening import Policy, ScreenedCorpus, screen
from taciturn.screening.policies import policy, registry
from taciturn.text.document import MASK
from taciturn.text.readers import Corpus
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import Counts, Plain
from taciturn.training.plan import Plan, Target
from taciturn.training.samplers import Shuffle
from taciturn.training.schedules import Optimiser
from taciturn.training.values.contexts import Contexts
from taciturn.training.values.counting import weights
from taciturn.training.values.slots import Slots

RULE = Counts(2.0, 20.0)
DELTA = RULE.release.distance
KNOWN = replace(RULE, one_sided=True).release.distance
CLOSE = 1 + 1e-12


def counted(screened: ScreenedCorpus, known: bool) -> Slots:
    """What crt counts of a corpus."""
    table = ValueTable()
    release = table.phase(1, Target(delta=1e-5), known=known)
    filled = Phase(
        "public", ("public", "skeletons"), 1, Shuffle(1), Plain(), 1, Optimiser(), fill=table.fill(loss=False)
    )
    return slots_of(Plan("crt", (release, filled), 1, Target(), "key"), release, screened)


def further(ours: ScreenedCorpus, theirs: ScreenedCorpus, seed: int, changed: int = 1, known: bool = False) -> float:
    """How far the tables are apart, whichever keys were shown; AssertionError where they may not differ at all. known:
    counted by what is known to stand behind masks."""
    a, b = counted(ours, known), counted(theirs, known)
    assert a.contexts == b.contexts
    if changed == 1:
        assert abs(len(a.masks) - len(b.masks)) <= 1, "one pair may be another's copy"
    random_ = random.Random(seed)
    every = [sorted(mine | others) for mine, others in zip(names(a), names(b), strict=True)]
    some = [[name for name in all_ if random_.random() < 0.5] for all_ in every]
    return max(norm(minus(vector(a, RULE, *keys), vector(b, RULE, *keys))) for keys in (every, some, ([], [])))


# Made-up policies, whole corpora


@settings(max_examples=80)
@given(neighbours(), policies, policies, st.sampled_from(SCOPES), st.integers())
def test_the_tables_of_neighbours_are_no_further_apart_than_stated(
    pair: tuple[list[str], list[str], int, str], pi: Policy, wide: Policy, scope: str, seed: int
) -> None:
    """With duplicates and literal masks, whatever the corpus's own dedup; the secret is any run of words."""
    texts, masked, at, _ = pair
    ours, theirs = run(texts, pi, wide, scope), run(masked, pi, wide, scope)
    parts = [corpus.table["part"].to_pylist() for corpus in (ours, theirs)]
    skeletons = [corpus.table["skeleton"].to_pylist()[at] for corpus in (ours, theirs)]
    if parts[0] != parts[1] or skeletons[0] != skeletons[1]:
        return  # outside the conditions of §3.1
    assert further(ours, theirs, seed) <= DELTA * CLOSE
    detected = ours.table["redacted"].to_pylist()[at] == theirs.table["redacted"].to_pylist()[at]
    if detected:
        assert further(ours, theirs, seed) == 0, "a detected secret"
    if alike(ours, theirs, at):
        assert further(ours, theirs, seed, known=True) <= KNOWN * CLOSE


def alike(ours: ScreenedCorpus, theirs: ScreenedCorpus, at: int) -> bool:
    """Lemma 3's condition for known slots: the words that a record and its neighbour share are marked in both or in neither.
    As texts are of words between blanks, a skeleton that has those says it where its stretches are laid one way alone."""
    here, there = (corpus.table["skeleton"].to_pylist()[at] for corpus in (ours, theirs))
    return here is not None and here == there and unambiguous(ours.texts("original")[at], here)


def unambiguous(text: str, skeleton: str) -> bool:
    """Whether the skeleton can be laid along its text in one way alone."""
    pattern = re.compile("(.+?)".join(map(re.escape, skeleton.split(MASK))))
    greedy = re.compile("(.+)".join(map(re.escape, skeleton.split(MASK))))
    lazy, wide_ = pattern.fullmatch(text), greedy.fullmatch(text)
    assert lazy, "a skeleton follows from its text by masking"
    assert wide_
    return lazy.groups() == wide_.groups()


@settings(max_examples=60)
@given(neighbours(), st.one_of(local_policies, context_policies), st.integers(2, 5), st.integers())
def test_all_copies_of_a_record_change_as_one(
    pair: tuple[list[str], list[str], int, str], wide: Policy, copies: int, seed: int
) -> None:
    texts, masked, at, _ = pair
    pi = words_policy([])
    ours = run([*texts, *[texts[at]] * copies], pi, wide, "none")
    theirs = run([*masked, *[masked[at]] * copies], pi, wide, "none")
    if any(texts[at] == text for i, text in enumerate(texts) if i != at):
        return
    if ours.table["part"].to_pylist() == theirs.table["part"].to_pylist() and (
        ours.table["skeleton"].to_pylist() == theirs.table["skeleton"].to_pylist()
    ):
        assert further(ours, theirs, seed) <= DELTA * CLOSE


def test_a_group_is_no_further_apart_than_so_many() -> None:
    rng = random.Random(1)
    pi, wide = words_policy([]), words_policy(["x", "y"])
    for _ in range(20):
        texts = [" ".join(rng.choice("abxy") for _ in range(5)) for _ in range(8)]
        masked = [text.replace("x", MASK) if i < 4 else text for i, text in enumerate(texts)]
        changed = sum(a != b for a, b in zip(texts, masked, strict=True))
        ours, theirs = run(texts, pi, wide), run(masked, pi, wide)
        if ours.texts("skeletons") == theirs.texts("skeletons"):
            assert further(ours, theirs, 0, changed) <= changed * DELTA * CLOSE


# The registry's policies, their own examples

NEEDS_NO_MODEL = registry.names()
FRAMES = (
    "please note {} for two people on Monday.",
    "{}",
    "is it {}, or 17:45 with Anna Borg?",
    f"{MASK} {{}} at 9, {{}}",
)


@cache
def wide(level: str) -> Policy:
    return policy(level)


def maskings(text: str, skeleton: str, rng: random.Random) -> str:
    """``text`` with a run of words masked that stand where the skeleton has masks."""
    words, left = text.split(" "), set(skeleton.split(" "))
    marked = [i for i, word in enumerate(words) if word and word != MASK and word not in left]
    if not marked:
        return text
    start = end = rng.choice(marked)
    while end + 1 in marked and rng.random() < 0.5:
        end += 1
    return " ".join([*words[:start], MASK, *words[end + 1 :]])


def rows(screened: ScreenedCorpus, chosen: Sequence[int]) -> ScreenedCorpus:
    """The corpus of some of its records: screening is record-local, and tables look at no dedup of the corpus."""
    assert screened.held is not None
    return replace(screened, held={name: table.take(list(chosen)) for name, table in screened.held.items()})


@pytest.mark.parametrize("level", ["conservative", "conservative:paranoid", "conservative:names"])
def test_the_tables_of_neighbours_under_every_policy_of_the_registry(level: str) -> None:
    """π: each policy that needs no model, shared out over the levels of π_c; records: its own examples in sentences."""
    place = ["conservative", "conservative:paranoid", "conservative:names"].index(level)
    compared = moved = 0
    for name in NEEDS_NO_MODEL[place::3]:
        rng = random.Random(name)
        found = examples(name)
        texts = [frame.replace("{}", rng.choice(found)) for frame in FRAMES]
        first = screen(Corpus.from_texts(texts), policy(name), wide(level), unit="document")
        skeletons = first.table["skeleton"].to_pylist()
        masked = [(i, maskings(texts[i], s, rng)) for i, s in enumerate(skeletons) if s for _ in range(3)]
        both = screen(
            Corpus.from_texts([*texts, *(text for _, text in masked)]), policy(name), wide(level), unit="document"
        )
        part, skeleton = both.table["part"].to_pylist(), both.table["skeleton"].to_pylist()
        for j, (i, _) in enumerate(masked, len(texts)):
            if (part[i], skeleton[i]) != (part[j], skeleton[j]):
                continue
            others = [rng.randrange(len(part)) for _ in range(6)]  # with copies of either
            pair = rows(both, [*others, i]), rows(both, [*others, j])
            apart, known = further(*pair, j), further(*pair, j, known=True)
            assert apart <= DELTA * CLOSE, name
            assert known <= KNOWN * CLOSE, name
            compared, moved = compared + 1, moved + (apart > 0) + (known > 0)
    assert compared > 150
    assert moved > 80


# What is reached, and what would be too much


def slots(*pairs: tuple[str, str], least: int = 1) -> Slots:
    return Slots.of(pairs, Contexts.of([masked for _, masked in pairs], least))


@pytest.mark.parametrize("known", [False, True])
def test_a_policy_that_takes_one_value_and_gives_another_reaches_the_distance_of_known_slots(known: bool) -> None:
    """π marks y where it comes before x: masking x takes x away and gives y."""
    pi, wide_ = context_policy(["(y) or x"]), words_policy(["x", "y"])
    ours, theirs = run(["y or x"], pi, wide_), run([f"y or {MASK}"], pi, wide_)
    assert ours.texts("skeletons") == theirs.texts("skeletons") == [f"{MASK} or {MASK}"]
    assert [corpus.texts("redacted") for corpus in (ours, theirs)] == [[f"{MASK} or x"], [f"y or {MASK}"]]
    contexts = Contexts.of(ours.texts("skeletons"), 1)

    def of(corpus: ScreenedCorpus) -> Slots:
        pairs = zip(corpus.texts("redacted"), corpus.texts("skeletons"), strict=True)
        return Slots.of(pairs, contexts, None, corpus.behind() if known else None)

    a, b = of(ours), of(theirs)
    keys = ["x", "y"]
    apart = minus(vector(a, RULE, keys), vector(b, RULE, keys))
    for table, share in (("value", RULE.shares[0]), ("context", RULE.shares[2])):
        assert norm(apart, [table]) == pytest.approx(share * KNOWN)


@pytest.mark.parametrize("masks", [1, 2, 5, 16, 20])
def test_records_of_one_skeleton_that_share_nothing_reach_it_in_every_table(masks: int) -> None:
    masked = " ".join(f"{w} {MASK}" for w in "abcdefghijklmnopqrst"[:masks])

    digits = ("1", "22", "333", "4444", "55555")

    def filled(word: str, end: str) -> str:
        values = [f"{word} {other} {each}{end}" for other in ("the", "of", "and", "to") for each in digits]
        return " ".join(f"{w} {value}" for w, value in zip("abcdefghijklmnopqrst"[:masks], values, strict=False))

    contexts = Contexts.of([masked], 1)
    a, b = (Slots.of([(filled(*what), masked)], contexts) for what in (("not", "."), ("all", "?")))
    keys = [mine | others for mine, others in zip(names(a), names(b), strict=True)]
    apart = minus(vector(a, RULE, *keys), vector(b, RULE, *keys))
    for table, share in zip(("value", "shape", "context"), RULE.shares, strict=False):
        assert norm(apart, [table]) == pytest.approx(share * DELTA * (math.sqrt(0.5) if masks == 1 else 1.0))
    if masks == 2:  # one before a letter and one at the end: of tails there are few kinds
        assert 0.97 * DELTA < norm(apart) <= DELTA


def test_weights_of_a_records_own_values_would_be_too_much() -> None:
    """π finds all but one value once x is masked: a record that weighs by the values it has would then count that one in
    full, where it counted a third before."""
    letters = "abcdefghijklmnop"
    masked = " ".join(f"{w} {MASK}" for w in letters)
    text = " ".join(f"{w} zy{w}x" for w in letters)
    contexts = Contexts.of([masked], 1)
    here = Slots.of([(text, masked)], contexts)
    there = Slots.of([(f"{masked.removesuffix(MASK)}zypx", masked)], contexts)
    most = RULE.shares[0] * KNOWN
    assert norm(minus(vector(here, RULE), vector(there, RULE)), ["value"]) <= most
    by_values = [replace(each, masks=np.array([(each.value >= 0).sum()])) for each in (here, there)]
    assert [weights(each, 2.0)[0] for each in by_values] == pytest.approx([math.sqrt(2 / 16), 1.0])
    assert norm(minus(vector(by_values[0], RULE), vector(by_values[1], RULE)), ["value"]) > 1.05 * most


@given(
    st.lists(
        st.tuples(st.sampled_from(["zyx", "the 9.", "17:45", MASK, "Anna Borg"]), st.booleans()),
        min_size=1,
        max_size=20,
    )
)
def test_a_records_weight_and_norm_follow_from_its_skeleton(values: list[tuple[str, bool]]) -> None:
    masked = " ".join(f"a {MASK}" if same else f"b {MASK}" for _, same in values)
    text = " ".join(f"a {value}" if same else f"b {value}" for value, same in values)
    found = slots((text, masked))
    n = min(len(values), 16)
    assert weights(found, 2.0).tolist() == [min(1.0, math.sqrt(2 / n))]
    length = vector(found, RULE, *names(found))
    for table, share in zip(("value", "shape", "context", "tail"), RULE.shares, strict=True):
        assert norm(length, [table]) <= share * math.sqrt(RULE.record_weight) * CLOSE
    assert all(count >= 0 for count in length.values())
