"""Scores against a slow oracle made of sets, and figures counted by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.screening import Policy, policy
from taciturn.screening.measuring.evaluate import Score, evaluate
from taciturn.screening.policies import View
from taciturn.text.document import Record
from taciturn.text.spans import Detection, Span

ALPHABET = "ab1_ .,-é\n"


@dataclass(frozen=True)
class Told:
    """Marks what it is told to, text by text."""

    marks: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
    name: str = "told"

    def definition(self) -> Mapping[str, object]:
        return {"kind": "told"}

    def find(self, views: Sequence[View]) -> list[Detection]:
        known = dict(self.marks)
        return [Detection(tuple(Span(a, b, "x") for a, b in known[view.text])) for view in views]

    def local(self, view: View) -> bool:  # noqa: ARG002
        return False


@dataclass(frozen=True)
class Broken:
    """Never finishes."""

    name: str = "broken"

    def definition(self) -> Mapping[str, object]:
        return {"kind": "broken"}

    def find(self, views: Sequence[View]) -> list[Detection]:
        raise RuntimeError(views[0].text)

    def local(self, view: View) -> bool:  # noqa: ARG002
        return False


def record(text: str, gold: Sequence[tuple[int, int]] = (), number: int = 0, label: str = "name") -> Record:
    return Record(f"r{number}", "d", 0, len(text), text, gold=tuple(Span(a, b, label) for a, b in gold))


@st.composite
def cases(draw: st.DrawFn) -> list[tuple[str, list[tuple[int, int]], list[tuple[int, int]]]]:
    texts = draw(st.lists(st.text(ALPHABET, min_size=1, max_size=24), min_size=1, max_size=6, unique=True))

    def spans(text: str) -> list[tuple[int, int]]:
        pairs = st.tuples(st.integers(0, len(text) - 1), st.integers(1, 8))
        return [(a, min(a + n, len(text))) for a, n in draw(st.lists(pairs, max_size=4))]

    return [(text, spans(text), spans(text)) for text in texts if text.rstrip("\n") == text]


@given(cases())
def test_against_sets(made: list[tuple[str, list[tuple[int, int]], list[tuple[int, int]]]]) -> None:
    told = Policy((Told(tuple((text, tuple(marks)) for text, _, marks in made)),), "told")
    score = evaluate((record(text, gold, i) for i, (text, gold, _) in enumerate(made)), [told])[0]
    tokens = marked = annotated = found = both = public = held = clean = exposed = 0
    for text, gold, marks in made:
        hidden = {i for a, b in marks for i in range(a, b)}
        secret = {i for a, b in gold for i in range(a, b)}
        visible = set()
        for a, b in gold:
            words = {i for i in range(a, b) if re.match(r"\w", text[i])}
            visible |= words or {i for i in range(a, b) if not text[i].isspace()}
        for match in re.finditer(r"\w+|[^\w\s]", text):
            here = set(range(*match.span()))
            tokens += 1
            marked += bool(here & hidden)
            annotated += bool(here & secret)
            found += bool(here & secret) and here <= hidden
            both += bool(here & secret) and bool(here & hidden)
        public += not marks
        held += bool(visible)
        clean += bool(visible) and visible <= hidden
        exposed += bool(visible) and not marks
    counted = (score.tokens, score.marked, score.gold, score.gold_found, score.gold_marked)
    assert counted == (tokens, marked, annotated, found, both)
    assert (score.public, score.records_gold, score.records_clean, score.records_exposed) == (
        public,
        held,
        clean,
        exposed,
    )


def scores(*records: Record, wide: Policy | None = None) -> Score:
    return evaluate(records, [policy("phone")], wide)[0]


def test_by_hand() -> None:
    text = "call (555) 010-7788 or ask for dana"  # call ( 555 ) 010 - 7788 or ask for dana
    score = scores(record(text, [(5, 19)]), record(text, [(31, 35)], 1, "nick"), record("hello there", (), 2))
    assert (score.tokens, score.marked, score.gold, score.gold_found) == (24, 12, 7, 6)
    assert score.token_recall == pytest.approx(6 / 7)
    assert score.precision == pytest.approx(6 / 12)
    assert score.redacted == pytest.approx(12 / 24)
    assert (score.records_gold, score.records_clean, score.records_exposed) == (2, 1, 0)
    assert score.public_share == pytest.approx(1 / 3)
    assert {name: (label.tokens, label.spans, label.spans_found) for name, label in score.labels.items()} == {
        "name": (6, 1, 1),
        "nick": (1, 1, 0),
    }


def test_a_conservative_policy_moves_records_and_redacts_nothing() -> None:
    made = record("my name is Rhonda Young", [(11, 23)])
    alone, both = scores(made), scores(made, wide=policy("conservative"))
    assert (alone.records_exposed, both.records_exposed) == (1, 0)
    assert (alone.public, both.public) == (1, 0)
    assert alone.marked == both.marked == 0


def test_a_detector_that_fails_makes_the_record_private_and_is_counted() -> None:
    score = evaluate([record("hello there", [(0, 5)])], [Policy((Broken(),), "broken")])[0]
    assert (score.failures, score.public, score.records_exposed, score.gold_found) == (1, 0, 0, 0)


def test_nothing_to_score() -> None:
    score = scores()
    assert (score.token_recall, score.record_recall, score.precision, score.redacted, score.public_share) == (
        1,
        1,
        1,
        0,
        0,
    )


def test_streams() -> None:
    """Records are taken as they come: a million would not be held."""
    taken = 0

    def endless():  # type: ignore[no-untyped-def]
        nonlocal taken
        for i in range(3000):
            taken += 1
            yield record(f"call (555) 010-{i:04d}", [(5, 19)], i)

    assert evaluate(endless(), [policy("phone")])[0].gold_found == 3000 * 6
    assert taken == 3000


def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [record(f"call (555) 010-{i:04d} dana", [(5, 19), (20, 24)], i) for i in range(40)]
    whole = evaluate(made, [policy("phone"), policy("conservative")])
    monkeypatch.setattr("taciturn.screening.measuring.evaluate._BATCH", 3)
    assert evaluate(made, [policy("phone"), policy("conservative")]) == whole
