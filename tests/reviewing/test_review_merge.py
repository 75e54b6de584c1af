"""Agreement against a slow oracle, what a merge makes of each case, and that it never flatters the bound."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import MismatchError, UsageError
from taciturn.reviewing.agreement import between, pairs
from taciturn.reviewing.bound import Reached
from taciturn.reviewing.merging import merge
from taciturn.screening import policy
from taciturn.screening.corpus.screened import load
from taciturn.screening.labels import LabelSpan, Line, digest
from taciturn.screening.measuring.evaluate import TOKEN
from taciturn.screening.measuring.sample import By, draw


def line(
    id: str, text: str, spans: list[tuple[int, int]], status: str = "done", kind: str = "name", **more: Any
) -> Line:
    made = tuple(LabelSpan(start=a, end=b, label=kind) for a, b in spans)
    return Line(
        id=id, text=text, spans=made, label_status=status, part="public", stratum_records=9, records=9, weight=1, seed=1,
        text_digest=digest(text), **more,
    )  # fmt: skip


SPANS = st.lists(
    st.tuples(st.integers(0, 11), st.integers(1, 6)).map(lambda x: (x[0], min(12, x[0] + x[1]))),
    max_size=3,
    unique=True,
)
STATUS = st.sampled_from(["done", "done", "done", "skip", "todo"])
RECORDS = st.lists(st.tuples(st.text("ab, .", min_size=12, max_size=12), SPANS, STATUS, SPANS, STATUS), max_size=6)


def usable(text: str, spans: list[tuple[int, int]]) -> bool:
    return all(text[a:b].strip() for a, b in spans)


@given(RECORDS)
def test_agreement_is_the_oracles(records: list[Any]) -> None:
    records = [r for r in records if usable(r[0], r[1]) and usable(r[0], r[3])]
    one = [line(f"r{i}", r[0], r[1], r[2]) for i, r in enumerate(records)]
    two = [line(f"r{i}", r[0], r[3], r[4]) for i, r in enumerate(records)]
    found = between(("ana", "bo"), zip(one, two, strict=True))

    votes: list[tuple[bool, bool]] = []
    same = marks = alike = looked = 0
    for a, b in zip(one, two, strict=True):
        if a.label_status == "todo" or b.label_status == "todo":
            continue
        looked += 1
        if a.label_status == "skip" or b.label_status == "skip":
            continue
        for token in TOKEN.finditer(a.text):
            votes.append(
                tuple(any(s.start < token.end() and token.start() < s.end for s in x.spans) for x in (a, b))  # type: ignore[arg-type]
            )
        first, second = ([(s.start, s.end) for s in x.spans] for x in (a, b))
        same += sum(x in second for x in first)
        marks += len(first) + len(second)
        letters = [
            {(i, "letter") for s in x.spans for i in range(s.start, s.end) if x.text[i].isalnum()}
            | {
                (i, "sign")
                for s in x.spans
                for i in range(s.start, s.end)
                if not any(c.isalnum() for c in x.text[s.start : s.end])
            }
            for x in (a, b)
        ]
        alike += {i for i, _ in letters[0]} == {i for i, _ in letters[1]}
    assert (found.records, found.agreed, found.tokens) == (looked, alike, len(votes))
    assert found.f1 == (float(Fraction(2 * same, marks)) if marks else None)
    if not votes:
        assert found.kappa is None
        return
    n = len(votes)
    observed = Fraction(sum(x == y for x, y in votes), n)
    chance = sum(
        Fraction(sum(x == v for x, _ in votes), n) * Fraction(sum(y == v for _, y in votes), n) for v in (True, False)
    )
    if chance == 1:
        assert found.kappa is None
    else:
        assert found.kappa == pytest.approx(float((observed - chance) / (1 - chance)))


TEXT, PHONE = "ask Dana Vale.", "(555) 010-7788"


@pytest.mark.parametrize(
    ("first", "second", "why", "status", "spans"),
    [
        (("done", [(4, 13)]), ("done", [(4, 13)]), None, "done", [(4, 13)]),
        (("done", [(4, 13)]), ("done", [(4, 14)]), None, "done", [(4, 14)]),  # with the full stop
        (("done", [(4, 13)]), ("done", [(4, 8), (9, 13)]), None, "done", [(4, 13)]),  # word by word
        (("done", []), ("done", []), None, "done", []),
        (("done", [(4, 13)]), ("done", []), "secret or not", "skip", [(4, 13)]),
        (("done", [(4, 13)]), ("done", [(9, 13)]), "extent", "skip", [(4, 13)]),
        (("done", [(4, 8)]), ("done", [(9, 13)]), "extent", "skip", [(4, 8), (9, 13)]),
        (("skip", []), ("done", [(4, 13)]), "unsure", "skip", [(4, 13)]),
        (("skip", []), ("skip", []), "unsure", "skip", []),
        (("todo", [(4, 13)]), ("done", []), None, "done", []),  # a draft is no label
        (("todo", [(4, 13)]), ("skip", []), None, "skip", []),
        (("todo", [(4, 13)]), ("todo", []), None, "todo", []),
    ],
)
def test_a_record_merged(first: Any, second: Any, why: str | None, status: str, spans: list[Any]) -> None:
    files = {"ana": [line("r", TEXT, first[1], first[0])], "bo": [line("r", TEXT, second[1], second[0])]}
    for people in (files, {"ana": files["bo"], "bo": files["ana"]}):
        merged = merge(people)
        [made] = merged.lines
        assert (made.label_status, [(s.start, s.end) for s in made.spans]) == (status, spans)
        assert [d.why for d in merged.disagreements] == ([why] if why else [])
        assert merged.once == ([first[0], second[0]].count("todo") == 1)


def test_other_kinds_are_listed_and_hold() -> None:
    merged = merge({"ana": [line("r", TEXT, [(4, 13)])], "bo": [line("r", TEXT, [(4, 13)], kind="phone")]})
    assert (merged.lines[0].label_status, merged.lines[0].spans[0].label) == ("done", "secret")
    assert [(d.id, d.why) for d in merged.disagreements] == [("r", "kind")]


def test_corrections_keep_every_mark() -> None:
    salt = "0" * 32
    one = [line("r", TEXT, [(4, 8)], salt=salt), line("s", TEXT, [(4, 8)], salt=salt)]
    two = [line("s", TEXT, [(9, 13)], "skip", salt=salt), line("r", TEXT, [(9, 13)], salt=salt)]
    merged = merge({"ana": one, "bo": two})  # in another order
    assert [(m.id, m.label_status) for m in merged.lines] == [("r", "done"), ("s", "done")]
    assert [[(s.start, s.end) for s in m.spans] for m in merged.lines] == [[(4, 8), (9, 13)], [(4, 8)]]
    assert merged.lines[0].salt == salt


def test_three_people_and_foreign_samples() -> None:
    files = {name: [line("r", TEXT, [(4, 13)])] for name in ("ana", "bo", "cy")}
    assert [a.people for a in pairs(files)] == [("ana", "bo"), ("ana", "cy"), ("bo", "cy")]
    assert merge(files | {"cy": [line("r", TEXT, [])]}).lines[0].label_status == "skip"
    with pytest.raises(MismatchError, match="different samples"):
        merge({"ana": files["ana"], "bo": [line("q", TEXT, [])]})
    with pytest.raises(MismatchError, match="different samples"):
        merge({"ana": files["ana"], "bo": [files["bo"][0].model_copy(update={"seed": 2})]})
    with pytest.raises(UsageError, match="two people"):
        merge({"ana": files["ana"]})


@pytest.mark.parametrize("wide", ["conservative", "all-private"])
@pytest.mark.parametrize("by", ["simple", "cue"])
def test_no_decision_gives_a_wider_bound_than_the_merge(corpus: Path, by: By, wide: str) -> None:
    """Whoever of the two is right about each record they differ on, and if neither is: the merged bound holds."""
    screened = load(corpus)
    sample = draw(screened, 10, by, seed=1)
    reached = Reached.over(sample, screened, policy("phone", "email"), policy(wide), 0.95)
    narrower = 0
    for seed in range(12 if by == "simple" else 3):
        coins = random.Random(seed)

        def marks(line: Line, coins: random.Random = coins) -> tuple[LabelSpan, ...]:
            words = [m.span() for m in TOKEN.finditer(line.text) if m.group().isalnum()]
            if (at := line.text.find(PHONE)) >= 0:  # found by π
                words = [(at, at + len(PHONE))] * 5
            return tuple(LabelSpan(start=a, end=b) for a, b in sorted(set(coins.sample(words, coins.randrange(3)))))

        one = [line.model_copy(update={"spans": marks(line), "label_status": "done"}) for line in sample]
        two = [
            line.model_copy(
                update=coins.choice([{}, {}, {"spans": marks(line)}, {"label_status": "skip"}]),
            )
            for line in one
        ]
        files = {"ana": one, "bo": two}
        merged = merge(files).lines
        bound = reached(merged)
        if bound["delta2"] is None:
            continue
        for _ in range(6):
            truth = [
                line
                if line.label_status == "done"
                else line.model_copy(
                    update={
                        "label_status": "done",
                        "spans": coins.choice([(), one[i].spans, two[i].spans, line.spans, marks(line)]),
                    }
                )
                for i, line in enumerate(merged)
            ]
            other = reached(truth)
            for name in ("gamma", "delta2"):
                if other[name] is not None:
                    assert other[name] <= bound[name] + 1e-9
                    narrower += other[name] < bound[name]
    assert narrower  # it was no test of equal numbers
