"""The conservative policy: what it marks, what it is known to leave, and what the real corpora measure."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from taciturn.errors import UsageError
from taciturn.screening import Words, measure, policy, screen
from taciturn.screening.redact import BRIDGED, redact
from taciturn.text.document import Document, Turn
from taciturn.text.readers import Corpus
from taciturn.text.spans import Span


def marked(text: str) -> list[str]:
    intervals = redact([text], policy("conservative"), BRIDGED)[0].marks
    return [text[start:end] for start, end in intervals]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, how can I help you?", []),
        ("May I have your full name?", []),
        ("Will that be all?", []),
        ("I couldn't find it, I'm sorry.", []),
        ("Will Smith called", ["Will Smith"]),
        ("Sure, Leatrice Hawkins.", ["Leatrice Hawkins"]),
        ("it is 968-172-8164.", ["968-172-8164"]),
        ("my login is cminh_730", ["cminh_730"]),
        ("write to dana@example", ["dana@example"]),
        ("from Zachary, WI 42884.", ["Zachary, WI 42884"]),
        ("café or 東京", ["café", "東京"]),
        ("laPena", ["laPena"]),
        ("sometimes people call me višeslav", ["višeslav"]),
        ("the quokka", ["quokka"]),
    ],
)
def test_what_it_marks(text: str, expected: list[str]) -> None:
    assert marked(text) == expected


@pytest.mark.parametrize(
    "text", ["we are proud saudis", "i'm originally from switzerland", "my name is joyce", "the address is park street"]
)
def test_known_leaks(text: str) -> None:
    """Lower-case names that are common English words: a policy without a name recogniser leaves them public."""
    assert marked(text) == []


def test_a_lower_case_name_leaks_in_part() -> None:
    assert marked("crystal slevin") == ["slevin"]


def test_a_mark_does_not_depend_on_place() -> None:
    """No word's mark changes when marked words around it are masked: what makes skeletons equal for neighbours."""
    text = "Ok. Rhonda Young lives here. She called Dr. No. Thanks"
    for start, end in redact([text], policy("conservative"), BRIDGED)[0].marks:
        other = text[:start] + "<MASK>" + text[end:]
        texts = [m.text for m in redact([text, other], policy("conservative"), BRIDGED)]
        assert texts[0] == texts[1]


def test_rarity_is_a_dial() -> None:
    assert not Words().marks("clifton")
    assert Words(rare_below=4.0).marks("clifton")
    assert policy(Words()).identity != policy(Words(rare_below=4.0)).identity
    with pytest.raises(UsageError, match="rare_below"):
        Words(rare_below=2.0)


def load(path: Path, limit: int) -> list[Document]:
    documents = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number == limit:
                break
            row = json.loads(line)
            text, turns, gold = "", [], []
            for turn in row.get("turns", [row]):
                start = len(text)
                gold += [Span(start + s["start"], start + s["end"]) for s in turn["spans"] if s.get("secret", True)]
                text += turn["text"].replace("\n", " ") + "\n"
                turns.append(Turn(start, len(text)))
            documents.append(Document(str(number), text, None, tuple(turns), tuple(gold)))
    return documents


@pytest.mark.parametrize(
    ("file", "pi", "limit", "public", "gamma", "both"),
    [
        # measured: .037 / .862 / .080 (names and cities are for π_c, not for the regexes of π)
        ("pii_gold/presidio_synth_v2.jsonl.gz", "pii", 1500, (0.03, 0.05), 0.88, 0.09),
        ("customersim/test.jsonl.gz", "customersim", 300, (0.5, 0.65), 0.03, 0.01),
        ("multiwoz/mwz22_dev.jsonl.gz", "multiwoz", 300, (0.4, 0.5), 0.2, 0.1),
    ],
)
def test_measured_figures(
    shared: Path, file: str, pi: str, limit: int, public: tuple[float, float], gamma: float, both: float
) -> None:
    documents = load(shared / "data" / file, limit)
    screened = screen(Corpus.from_documents(documents), policy(pi), policy("conservative"), unit="turn")
    recall = measure(screened)
    assert public[0] < screened.counts.public / screened.counts.read < public[1]
    assert recall.miss_rate < gamma
    assert recall.miss_rate_both < both
    assert screened.counts.skeletons_refused == 0
    assert screened.counts.spans_undetected_after_check == 0


def test_few_records_of_the_entity_dense_set_leak(shared: Path) -> None:
    documents = [d for d in load(shared / "data/pii_gold/presidio_synth_v2.jsonl.gz", 1500) if d.gold]
    found = policy("conservative").find([d.text for d in documents])
    assert len(documents) == 1387
    assert sum(not d.spans for d in found) <= 5
