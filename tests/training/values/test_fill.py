"""Skeletons filled from a table: a function of skeletons, table, model and coins, in which the model has its say."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tiny import TOKENIZER, model

from taciturn.mechanisms.values import ValueTable, filler_of, slots_of
from taciturn.models.tokens import encode_all
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.chat import CLOSE, OPEN, join
from taciturn.text.document import MASK, Document
from taciturn.text.readers import Corpus
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import Plain
from taciturn.training.plan import Model, Plan, Target
from taciturn.training.samplers import Shuffle
from taciturn.training.schedules import Optimiser
from taciturn.training.values.contexts import FOLLOWS, Contexts
from taciturn.training.values.fill import Filler
from taciturn.training.values.slots import TAILS
from taciturn.training.values.table import FILLED, Table

ALARM = 1e-7
DAYS = ("Monday", "Tuesday", "Sunday")


def table(values: tuple[str, ...] = DAYS, rest: float = 0.0, tails: tuple[float, ...] = (1.0,)) -> Table:
    counts = np.full(len(values), 100.0)
    ends = np.array([[*tails, *[0.0] * (len(TAILS) - len(tails))]] * len(FOLLOWS))
    return Table(
        values, (), Contexts(((None, None),)), counts, np.zeros(0), np.array([[*counts, rest]]), ends, (0.1,) * 4
    )  # fmt: skip


def filler(texts: list[str]) -> Filler:
    return Filler(texts, lambda _, some: encode_all(TOKENIZER, some), TOKENIZER)


def told(shares: dict[str, float]) -> Any:
    """A model that predicts these bytes whatever it has read."""
    m = model()
    with torch.no_grad():
        m.decoder.weight.zero_()
        m.decoder.bias.fill_(-20.0)
        for letter, share in shares.items():
            m.decoder.bias[encode_all(TOKENIZER, [letter])[0][1]] = float(np.log(share))
    return m


def written(
    texts: list[str], rows: list[int], made: Table, m: Any = None, seed: int = 1, candidates: int = 3
) -> list[str]:
    return filler(texts).written(made, m or model(), np.array(rows), (seed, 2), candidates)


TEXTS = [f"see you on {MASK} or {MASK}, not {MASK}", "nothing hidden", f"({MASK})", f"{MASK} and\n{MASK}"]


def test_only_skeletons_the_table_the_model_and_coins_go_in() -> None:
    assert [field.name for field in fields(Filler)] == ["texts", "encode", "tokenizer", "known", "behind"]
    names = Filler.written.__code__.co_varnames[: Filler.written.__code__.co_argcount]
    assert names == ("self", "table", "model", "rows", "seed", "candidates")
    assert written(TEXTS, [0, 3], table()) == written(TEXTS, [0, 3], Table.from_bytes(table().to_bytes()))
    assert written(TEXTS, [0], table(), seed=1) != written(TEXTS, [0], table(), seed=2)


@settings(max_examples=20)
@given(st.permutations([0, 1, 2, 3]), st.integers(1, 4), st.sampled_from([1, 5]))
def test_what_a_row_becomes_has_nothing_to_do_with_the_rows_beside_it(
    rows: list[int], count: int, candidates: int
) -> None:
    m = model()
    together = written(TEXTS, rows[:count], table(rest=100.0), m, candidates=candidates)
    assert together == [written(TEXTS, [row], table(rest=100.0), m, candidates=candidates)[0] for row in rows[:count]]


def test_all_but_the_masks_is_still_there_and_values_of_the_table_stand_in_them() -> None:
    for text, new in zip(TEXTS, written(TEXTS, [0, 1, 2, 3], table(tails=(1.0, 1.0))), strict=True):
        pattern = re.escape(text).replace(re.escape(MASK), rf"({'|'.join(DAYS)})[.]?")
        assert re.fullmatch(pattern, new)


def test_some_masks_of_every_context_are_filled_once_there_is_a_key() -> None:
    """A model that has only seen a mask before some words expects nothing behind a name."""
    counts = np.array([[900.0, 0.0, 0.0, 5.0], [0.0, 0.0, 0.0, 5000.0]])
    contexts = Contexts((("on", None), (None, None)))
    ends = np.zeros((len(FOLLOWS), len(TAILS)))
    made = Table(DAYS, (), contexts, np.array([900.0, 0.0, 0.0]), np.zeros(0), counts, ends, (0.1,) * 4)
    assert made.drawn.filled[0] > 0.9
    assert made.drawn.filled[1] == FILLED
    assert table((), rest=5000.0).drawn.filled.tolist() == [0.0]


def test_the_share_that_the_table_explains_is_filled() -> None:
    """Binomial, a false alarm in 10⁷."""
    m = told({" ": 1.0})
    texts = [f"on {MASK}"] * 4000
    filled = sum(MASK not in text for text in written(texts, list(range(4000)), table(rest=300.0), m, candidates=1))
    share = table(rest=300.0).drawn.filled[0]
    assert share == pytest.approx(0.5, abs=0.01)
    assert binom.ppf(ALARM, 4000, share) <= filled <= binom.isf(ALARM, 4000, share)


def test_what_the_model_finds_much_likelier_is_chosen_more_often() -> None:
    """Of equal counts, with p(M) forty times p(T) and p(S): by the square root of it. Of one candidate each is a third."""
    m, rows = told({"M": 0.8, "T": 0.02, "S": 0.02, ")": 0.1}), list(range(600))
    chosen = {
        count: Counter(text.strip("()") for text in written([f"({MASK})"] * 600, rows, table(), m, candidates=count))
        for count in (1, 12)
    }
    assert chosen[12]["Monday"] > binom.isf(ALARM, 600, 0.6)
    assert chosen[1]["Monday"] < binom.isf(ALARM, 600, 1 / 3)
    assert min(chosen[12][day] for day in DAYS) > 0, "unlikely, not impossible"


def test_later_masks_of_a_record_see_what_the_earlier_ones_became() -> None:
    """The text before a mask, of which the model judges, has values where it had masks."""
    seen: list[str] = []

    class Heard(Filler):
        def _judged(self, model: Any, before: Any, drawn: Any, behind: Any) -> Any:
            seen.extend(before)
            return super()._judged(model, before, drawn, behind)

    Heard([TEXTS[0]], lambda _, some: encode_all(TOKENIZER, some), TOKENIZER).written(
        table(), model(), np.array([0]), (1,), 3
    )
    assert len(seen) == 3
    assert not any(MASK in text for text in seen)


def test_the_marks_of_a_conversation_survive() -> None:
    text = join([("user", f"on {MASK}?"), ("assistant", f"{MASK}, or {MASK}")])
    (new,) = written([text], [0], table(values=("Monday",)))
    assert new == text.replace(MASK, "Monday")
    assert (new.count(OPEN), new.count(CLOSE)) == (text.count(OPEN), text.count(CLOSE))


# Values that stay

BEHIND = [["Monday,", None, "Friday"], [], [None], ["zq7", "Sunday"]]


def test_a_value_of_the_table_stays_where_it_stands_with_what_follows_it() -> None:
    """Of the last records; what the table does not show, what may not stand, and records before these are filled."""
    made = Filler(["public", *TEXTS], lambda _, some: encode_all(TOKENIZER, some), TOKENIZER, behind=BEHIND)
    names = set()
    for seed in range(20):
        got = made.written(table(), model(), np.arange(5), (seed,), 1)
        assert got[0] == "public"
        first = re.fullmatch(r"see you on Monday, or (\w+), not (\w+)", got[1])
        last = re.fullmatch(r"(\w+) and\nSunday", got[4])
        assert first, got[1]
        assert last, got[4]
        names |= {*first.groups(), *last.groups()}
    assert names == set(DAYS)


@settings(max_examples=60)
@given(st.lists(st.sampled_from([*DAYS, "zq1", "zq2", None]), min_size=3, max_size=3), st.integers(0, 2), st.booleans())
def test_a_value_that_the_table_does_not_show_might_as_well_not_stand(
    there: list[str | None], changed: int, masked: bool
) -> None:
    """Theorem B: a record whose value is not shown and its neighbour, which has none there, are read alike."""
    there[changed] = "zq3"
    other = [None if masked and i == changed else "zq4" if i == changed else value for i, value in enumerate(there)]
    texts = [TEXTS[0], TEXTS[1]]
    both = [
        Filler(texts, lambda _, some: encode_all(TOKENIZER, some), TOKENIZER, behind=[each, []]).written(
            table(rest=100.0), model(), np.arange(2), (5,), 2
        )
        for each in (there, other)
    ]
    assert both[0] == both[1]
    assert not any("zq" in text for text in both[0])


# With a screened corpus

TALK = [
    Document(f"d{i}", f"call (555) 010-77{i:02} on {day}", label=("yes", "no")[i % 2]) for i, day in enumerate(DAYS * 4)
]


def screened(documents: list[Document]) -> ScreenedCorpus:
    return screen(Corpus.from_documents(documents), policy("phone"), policy("conservative"), unit="document")


def of(corpus: ScreenedCorpus, parts: tuple[str, ...] = ("public", "skeletons"), **model_: Any) -> Filler:
    count = sum(len(corpus.texts(part)) for part in parts)  # type: ignore[arg-type]
    phase = Phase("public", parts, count, Shuffle(4), Plain(), 1, Optimiser())  # type: ignore[arg-type]
    plan = Plan("crt", (phase,), 1, Target(), "key", Model("lstm", "bytes", **model_))
    return filler_of(TOKENIZER, plan, phase, corpus, 64)


def test_nothing_of_a_record_but_its_skeleton_is_read() -> None:
    other = [
        Document(d.id, d.text.replace("(555) 010", "(555) 011").replace("Monday", "Friday"), label=d.label)
        for d in TALK
    ]
    here, there = screened(TALK), screened(other)
    assert here.texts("skeletons") == there.texts("skeletons")
    assert here.texts("private") != there.texts("private")
    assert of(here).texts == of(there).texts == here.texts("public") + here.texts("skeletons")
    rows = np.arange(len(TALK))
    both = [of(each).filled(table(), model(), rows, (1,), 3) for each in (here, there)]
    assert np.array_equal(both[0].flat, both[1].flat)
    classes = []
    for corpus in (here, there):
        counted = ValueTable().phase(len(corpus.texts("private")), Target())
        filled = Phase(
            "public", ("skeletons",), len(TALK), Shuffle(4), Plain(), 1, Optimiser(), fill=ValueTable().fill(False)
        )
        plan = Plan("crt", (counted, filled), 1, Target(), "key", Model("lstm", "bytes"))
        classes.append(slots_of(plan, counted, corpus).contexts)
    assert classes[0] == classes[1]


def test_labels_stay_with_their_records() -> None:
    made = of(screened(TALK), task="classify", labels=("no", "yes")).filled(
        table(), model(), np.array([3, 0, 2]), (1,), 3
    )
    assert made.labels is not None
    assert made.labels.tolist() == [0, 1, 1]


def test_what_was_a_mask_and_nothing_else_has_no_label_whatever_stands_in_it() -> None:
    corpus = screened([*TALK, Document("w", "(555) 010-7799", label="yes")])
    alone = of(corpus, ("redacted",)).texts.index(MASK)
    rows = np.array([alone, 0])
    made = of(corpus, ("redacted",), task="classify", labels=("no", "yes")).filled(table(), model(), rows, (1,), 3)
    assert made.labels is not None
    assert made.labels.tolist() == [-1, 1]
    assert np.array_equal(made[0], encode_all(TOKENIZER, [MASK])[0])
    written = of(corpus, ("redacted",)).filled(
        table(), model(), rows, (1,), 3
    )  # without classes a value is a text like any other
    assert len(written[0]) > len(made[0])
