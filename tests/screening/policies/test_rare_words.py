"""The conservative policy: what it marks, what it is known to leave, and what the real corpora measure."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import UsageError
from taciturn.screening import Words, measure, policy, screen
from taciturn.screening.policies.rare_words import _EXCUSED, _MODAL, _STEMS, WORD, common_words, named, names
from taciturn.screening.policies.view import View
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


_LETTERS = st.sampled_from("abcABC I0_'’-.,é…東\n\u00a0\u3000\x1a")
_WORDS = st.sampled_from(
    ["May I", "Will it", "Will", "the", "The", "OK", "Ok", "Slevin", "slevin", "laPena", "couldn", "ah", "a"]
)


def _slowly(text: str, words: Words) -> list[tuple[int, int]]:
    """Word by word, as the docstring of Words has it."""
    common = common_words(words.rare_below)
    marks = []
    for match in WORD.finditer(text):
        word, lower = match[0], match[0].lower()
        if not (word.isascii() and word.isalpha()):
            marked = True
        elif lower != word:
            marked = word != "OK" and not (word == lower.capitalize() and lower in _EXCUSED)
        else:
            marked = lower not in common and lower not in _STEMS
        if marked and not _MODAL.match(text, match.start()):
            marks.append(match.span())
    return marks


@given(st.lists(st.one_of(_WORDS, st.text(_LETTERS, max_size=6)), max_size=8).map(" ".join))
def test_the_same_marks_as_word_by_word(text: str) -> None:
    spans = Words().find([View.of(text)])[0].spans
    assert [(s.start, s.end) for s in spans] == _slowly(text, Words())


def test_equal_spans_whatever_the_batch(shared: Path) -> None:
    with gzip.open(shared / "data/wikitext2/wiki.test.raw.txt.gz", "rt", encoding="utf-8") as file:
        views = [View.of(line) for line, _ in zip(file, range(300), strict=False)]
    together = Words().find(views)
    assert together == [Words().find([view])[0] for view in views]
    assert [[(s.start, s.end) for s in d.spans] for d in together] == [_slowly(v.text, Words()) for v in views]


def test_names_of_people_in_lower_case() -> None:
    plain, wide = Words(), Words(names=True)
    for word in ("joyce", "crystal", "vanessa", "james", "maria"):
        assert wide.marks(word)
    for word in ("will", "may", "the", "street", "young"):
        assert not wide.marks(word)
    assert not plain.marks("joyce")
    assert policy(plain).identity != policy(Words(names=True)).identity


def test_the_list_of_names_is_lower_case_words() -> None:
    assert len(names()) > 2000
    assert all(name.isascii() and name.isalpha() and name.islower() for name in names())
    assert not names() & {"the", "you", "order", "account", "thanks", "may", "will"}


def test_the_family_words() -> None:
    assert policy("words:4").identity == policy(Words(4.0)).identity
    with pytest.raises(UsageError, match="from 3 to 8"):
        policy("words:rare")
    with pytest.raises(UsageError, match="did you mean 'names'"):
        named("4", {"name": True})


def test_the_definition_is_the_one_that_earlier_corpora_name() -> None:
    """Speed must not change the identity: corpora screened before would not resume."""
    assert Words().definition()["lists"] == "10a7da7f9462976b3597d6f4c557ee20"


def test_pickling() -> None:
    words = Words(3.5, names=True)
    assert pickle.loads(pickle.dumps(words)) == words
    assert len(pickle.dumps(words)) < 200


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
    ("file", "pi", "limit", "public", "gamma", "both", "refused"),
    [
        # public .037, .58, .44; names and cities are for π_c, not for the regexes of π; refused 20, 105, 19
        ("pii_gold/presidio_synth_v2.jsonl.gz", "pii", 1500, (0.03, 0.05), 0.88, 0.1, (12, 30)),
        ("customersim/test.jsonl.gz", "customersim", 300, (0.5, 0.65), 0.03, 0.015, (95, 115)),
        ("multiwoz/mwz22_dev.jsonl.gz", "multiwoz", 300, (0.4, 0.5), 0.2, 0.13, (13, 26)),
    ],
)
def test_measured_figures(
    shared: Path,
    file: str,
    pi: str,
    limit: int,
    public: tuple[float, float],
    gamma: float,
    both: float,
    refused: tuple[int, int],
) -> None:
    documents = load(shared / "data" / file, limit)
    screened = screen(Corpus.from_documents(documents), policy(pi), policy("conservative"), unit="turn")
    recall = measure(screened)
    assert public[0] < screened.counts.public / screened.counts.read < public[1]
    assert recall.miss_rate < gamma
    assert recall.miss_rate_both < both
    assert refused[0] < screened.counts.skeletons_refused < refused[1]
    assert screened.counts.spans_undetected_after_check == 0


def test_few_records_of_the_entity_dense_set_leak(shared: Path) -> None:
    documents = [d for d in load(shared / "data/pii_gold/presidio_synth_v2.jsonl.gz", 1500) if d.gold]
    found = policy("conservative").find([d.text for d in documents])
    assert len(documents) == 1387
    assert sum(not d.spans for d in found) <= 5
