"""Splitting: lossless, local, never across lines or turns, and with sentences where a reader sees them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import UsageError
from taciturn.screening.policies.deadline import deadline
from taciturn.text.document import MASK, Document, Record, Turn
from taciturn.text.segment import Unit, aligned, masked, split
from taciturn.text.spans import Span

# Everything that some tool takes for a line end or a stop, often enough to meet.
TRICKY = '\n\r\u2028\u2029\x85\x0b\x0c\x1c \t.!?…。।؟)"”aA1é中'
UNITS: tuple[Unit, ...] = ("sentence", "turn", "document")

texts = st.one_of(st.text(st.sampled_from(TRICKY), max_size=60), st.text(max_size=40))


@st.composite
def documents(draw: st.DrawFn) -> Document:
    if draw(st.booleans()):
        text = draw(texts)
        turns: tuple[Turn, ...] = ()
    else:
        lines = [line + "\n" for line in draw(st.lists(texts, min_size=1, max_size=5))]
        text = "".join(lines)
        ends = [0]
        for line in lines:
            ends.append(ends[-1] + len(line))
        turns = tuple(Turn(start, end, "A") for start, end in pairwise(ends))
    places = st.integers(0, len(text))
    spans = draw(st.lists(st.tuples(places, places), max_size=3))
    gold = tuple(Span(min(pair), max(pair), "secret") for pair in spans)
    return Document("d", text, "u", turns, gold, draw(st.sampled_from([None, "because"])))


def sentences(text: str) -> list[str]:
    return [record.text for record in split(Document("d", text), "sentence")]


@given(documents(), st.sampled_from(UNITS))
def test_records_join_back_and_are_not_blank(document: Document, unit: Unit) -> None:
    records = split(document, unit)
    assert "".join(record.text for record in records) == document.text
    assert [record.id for record in records] == [f"d#{i}" for i in range(len(records))]
    for record in records:
        assert document.text[record.start : record.end] == record.text
        assert (record.document_id, record.user, record.private_because) == ("d", "u", document.private_because)
        assert record.body.strip() or not document.text.strip()


@given(documents())
def test_sentences_stay_in_their_line_and_turn(document: Document) -> None:
    for record in split(document, "sentence"):
        assert "\n" not in record.text.strip()
    for unit in ("sentence", "turn"):
        for record in split(document, unit):
            with_text = [
                t for t in document.turns if document.text[max(t.start, record.start) : min(t.end, record.end)].strip()
            ]
            assert len(with_text) <= 1


@given(documents(), st.sampled_from(UNITS))
def test_gold_spans_are_cut_into_the_records_they_touch(document: Document, unit: Unit) -> None:
    covered = set()
    for record in split(document, unit):
        for span in record.gold:
            assert 0 <= span.start < span.end <= len(record.body)
            assert span.label == "secret"
            covered |= set(range(record.start + span.start, record.start + span.end))
    wanted = {i for span in document.gold for i in range(span.start, span.end)}
    assert covered <= wanted
    assert all(document.text[i].isspace() for i in wanted - covered)


@given(st.lists(texts.filter(lambda text: text.strip() != ""), min_size=1, max_size=4))
def test_what_other_lines_hold_changes_nothing(lines: list[str]) -> None:
    ended = [line + "\n" for line in lines]
    alone = [Document("d", line) for line in ended]
    whole = [r.text for r in split(Document("d", "".join(ended)), "sentence")]
    # A blank line may be handed to the record before it, so compare what is left without white space.
    assert [t.strip() for t in whole] == [r.text.strip() for d in alone for r in split(d, "sentence")]


@pytest.mark.parametrize(
    "parts",
    [
        ["Mr. J. R. Smith met Dr. No at 5 p.m. on Jan. 5. ", "They left."],
        ["It is 3.14, see http://a.b/c?d=e. ", "Mail x.y@z.org. ", "Version 2.0.1 is out!"],
        ["He lives in the U.S. Army base. ", "It moved from the U.S. ", "The end."],
        ['"Really?" he asked. ', '"Yes." ', "(She left.) ", "Then it rained."],
        ["Wait... what? ", "No!! ", "And so… ", "Then"],
        ["hello there. ", "how are you? ", "fine"],
        ["In the centre . ", "What now ?  ", "Fine ."],
        ["1. Buy milk. ", "2. Eat. ", "It was 1999. ", "Next"],
        ["See e.g. the fig. 3 or Fig. 4 of Smith et al. 1999 etc. for more. ", "Ok."],
        ["No. 5 is alive. ", "He said no. ", "Then"],
        ["120 Oak St. Apt. 079 East Kim, VT 86896. ", "Thanks."],
        ["我是学生。", "你好！", "「真的？」", "他说。"],
        ["यह है। ", "वह है।"],
        ["هل هذا؟ ", "نعم."],
        ["Τι είναι\u037e ", "Ναι."],
        ["А. С. Пушкин писал. ", "Да."],
        ["One line\n", "Two lines.\r\n", "Three"],
        ["only\rCR and\u2028 separators\x85 here"],
        ["\n \nFirst.\n\n\t\n", "Second.\n\n"],
    ],
)
def test_sentences_as_a_reader_sees_them(parts: list[str]) -> None:
    assert sentences("".join(parts)) == parts


def test_turns_of_dialogues_and_lines_of_other_text() -> None:
    dialogue = Document("d", "Hi.\nA\nB\n\n", turns=(Turn(0, 4), Turn(4, 8), Turn(8, 9)))
    assert [r.text for r in split(dialogue, "turn")] == ["Hi.\n", "A\nB\n\n"]
    assert [r.text for r in split(Document("d", "Hi. Ho.\r\nA\n\nB"), "turn")] == ["Hi. Ho.\r\n", "A\n\n", "B"]
    assert [r.text for r in split(Document("d", "Hi. Ho.\nA"), "document")] == ["Hi. Ho.\nA"]
    with pytest.raises(UsageError, match="did you mean 'sentence'"):
        split(dialogue, "sentences")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t\r\n"])
def test_a_blank_document_is_one_record(text: str) -> None:
    for unit in UNITS:
        assert [(r.text, r.gold) for r in split(Document("d", text, gold=(Span(0, len(text)),)), unit)] == [(text, ())]


@pytest.mark.parametrize(
    ("text", "secret", "expected"),
    [
        ("Hi. I am Ann Lee. Bye.", "Ann Lee", True),
        ("I live at 5 Elm St. Apt. 3 Kim, VT. Bye.", "5 Elm St. Apt. 3 Kim, VT", True),
        ("Call J. Roe. Now.", "J. Roe", True),
        ("She works at Acme Inc. Bob too.", "Acme Inc", False),  # the stop after <MASK> now ends a sentence
        ("Go to 1 Oak. 2 Elm. Bye.", "1 Oak. 2 Elm", False),  # the secret spans two sentences
        ("a\nb", "a\nb", False),
    ],
)
def test_aligned_tells_secrets_whose_masking_moves_a_boundary(text: str, secret: str, expected: bool) -> None:
    at = text.index(secret)
    assert aligned(Document("d", text), "sentence", at, at + len(secret)) is expected


@given(documents(), st.sampled_from(UNITS), st.data())
def test_aligned_means_that_one_record_changes(document: Document, unit: Unit, data: st.DataObject) -> None:
    if not document.text:
        return
    start = data.draw(st.integers(0, len(document.text) - 1))
    end = data.draw(st.integers(start + 1, len(document.text)))
    secret = document.text[start:end]
    answer = aligned(document, unit, start, end)
    if answer:
        changed = masked(document, start, end)
        assert changed is not None
        pairs = list(zip(split(document, unit), split(changed, unit), strict=True))
        different = [(old, new) for old, new in pairs if old.text != new.text]
        assert len(different) <= 1  # none when the secret is "<MASK>"
        assert all(new.text == mask_in(old, start, end) for old, new in different)
    if unit == "document" and not document.turns:
        assert answer
    crosses = any(t.start < end and start < t.end and not (t.start <= start and end <= t.end) for t in document.turns)
    if unit == "turn" and not crosses and "\n" not in secret and everything_visible(document, start, end):
        assert answer


def mask_in(record: Record, start: int, end: int) -> str:
    return record.text[: start - record.start] + MASK + record.text[end - record.start :]


def everything_visible(document: Document, start: int, end: int) -> bool:
    """Whether no blank line or turn is in play: masking white space makes a record where there was none."""
    pieces = [document.text[t.start : t.end] for t in document.turns] or document.text.splitlines()
    return all(piece.strip() for piece in pieces) and bool(document.text[start:end].strip())


@pytest.mark.parametrize("text", [".", '."', "a. ", " ", "\n", "A.", "。」", ".\u2028", "(", "1. "])
@deadline(60)
def test_long_runs_take_linear_time(text: str) -> None:
    repeated = text * (300_000 // len(text))
    assert "".join(sentences(repeated)) == repeated


@pytest.mark.parametrize(
    "text",
    [
        "Er wurde am 3. Mai 1980 in Berlin geboren.",
        "Der 2. Senat des BGH, Az. III ZR 12/20, entschied.",
        "Dr. med. Hans Meyer, geb. am 12. 3. 1970",
        "Herr Prof. Dr. h.c. mult. Meyer kommt aus der Bahnhofstr. Neustadt.",
        "Mieszka przy ul. Długiej 5 w Gdańsku.",
        "Firma Kowalski Sp. z o.o. w Warszawie.",
        "Sygn. akt II K 12/20, art. 6 ust. 1 lit. b RODO, zm. Kowalski",
        "Il habite 12 av. Foch à Paris.",
        "El Sr. García vive en la Avda. América n.º 5, 3.º B.",
        "La sig.ra Rossi, nata il 3.5.1970 a Roma, res. in via Verdi n. 5",
        "Dhr. J. de Vries woont aan de Kerkstr. 5 te Utrecht.",
        "Av. da Liberdade, 12, com o Exmo. Sr. Dr. João Silva",
        "Call 555. 010. 7788 now.",
        "Rufen Sie 030. 1234. 5678 an.",
    ],
)
def test_stops_inside_names_dates_addresses_and_numbers_end_nothing(text: str) -> None:
    assert [r.text for r in split(Document("d", text), "sentence")] == [text]


@pytest.mark.parametrize(
    "text",
    ["Das war der 3. | Er kam.", "Am 24. Dezember. | Danach kam er.", "A table for 4. | Please call me. | John came."],
)
def test_stops_that_end_a_sentence_still_do(text: str) -> None:
    pieces = text.replace(" | ", " |").split("|")
    assert [r.text for r in split(Document("d", "".join(pieces)), "sentence")] == pieces


def test_a_key_is_one_record() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nabc=\n-----END RSA PRIVATE KEY-----\n"
    for unit in ("sentence", "turn"):
        assert [r.text for r in split(Document("d", f"see\n{key}ok\n"), unit)] == ["see\n", key, "ok\n"]
    never = "-----BEGIN A-----\nx\n-----BEGIN B-----\ny\n-----END B-----\n"
    assert [len(r.text.splitlines()) for r in split(Document("d", never), "sentence")] == [1, 1, 3]
    assert len(split(Document("d", "-----BEGIN A-----\n" * 50), "sentence")) == 50


def test_masking_a_key_changes_one_record() -> None:
    text = "see\n-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----\nok\n"
    start, end = text.index("-----BEGIN"), text.index("-----\nok") + 5
    assert aligned(Document("d", text), "sentence", start, end)
