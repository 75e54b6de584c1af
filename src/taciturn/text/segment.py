"""Documents into records (sentence, turn, document), without a fitted model and without looking at another document.

Joining the records of a document gives its text back. Lines end at LF or CRLF only; white space between two records
belongs to the first. Sentence boundaries are rules over the text around a stop, so a document always splits the same
way, whatever else the corpus holds: a guarantee per record needs that.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, get_args

from taciturn.errors import UsageError, nearest
from taciturn.text.abbreviations import BEFORE_NUMBER, NEVER_LAST, SELDOM_LAST, STARTERS
from taciturn.text.chat import structured
from taciturn.text.document import MASK, Document, Record, Turn, body
from taciturn.text.spans import Span

Unit = Literal["sentence", "turn", "document"]
_UNITS = get_args(Unit)

# Stops that need no blank behind them: CJK, Devanagari, Arabic, Urdu, Ethiopic, Khmer, Myanmar, Armenian.
_WIDE = "。！？｡।॥؟۔።፧។៕။։"
_OPENERS = "\"'“‘„«‹¿¡([{「『（【《〈＂＇–—•*-"
# Possessive, so that a megabyte of dots stays linear. U+037E is the Greek question mark.
# Groups: the marks, what closes behind them, the blanks, and (not consumed) the beginning of the next word.
_STOP = re.compile(
    rf"([.!?…‼⁇⁈⁉\u037e{_WIDE}]++)([\"'”’»›)\]}}」』）】》〉＂＇]*+)(\s*+)(?=[{re.escape(_OPENERS)}\s]*+(\w{{0,12}}))"
)
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]{1,2}")
_LOOK_BACK = 24
_BEGIN, _END, _LONGEST_KEY = "-----BEGIN ", "-----END ", 1 << 15
_PAUSES = frozenset(".…")


def split(document: Document, unit: Unit) -> list[Record]:
    """The records of a document, in order; their ids are "<document id>#<index from 0>".

    sentence: never crosses a line end or a turn, but what stands from "-----BEGIN …" to "-----END …" is one record. turn: of
    a dialogue, else each line. A piece of white space alone joins the record before it (the first one: the record after).
    Gold spans that cross records are cut into each. A conversation or a pair is one record: UsageError for any other unit.

    >>> [r.text for r in split(Document("d", "Dr. No paid $3.50. Why?\\nOK."), "sentence")]
    ['Dr. No paid $3.50. ', 'Why?\\n', 'OK.']
    """
    text = document.text
    ends = _join_blank(text, _ends(document, unit))
    gold = _cut(document, ends) if document.gold else {}
    name, user, because, label = document.id, document.user, document.private_because, document.label
    records = []
    start = 0
    for i, end in enumerate(ends):
        spans = tuple(gold[i]) if i in gold else ()
        records.append(Record(f"{name}#{i}", name, start, end, text[start:end], user, spans, because, label))
        start = end
    return records


def masked(document: Document, start: int, end: int) -> Document | None:
    """The document with ``text[start:end]`` replaced by ``<MASK>``; None if that span crosses a turn border.

    Gold spans are dropped: they would point into the secret that is gone.
    """
    if any(start < turn.end < end or start < turn.start < end for turn in document.turns):
        return None
    shift = len(MASK) - (end - start)
    turns = tuple(
        Turn(t.start + shift * (t.start >= end), t.end + shift * (t.end >= end), t.speaker) for t in document.turns
    )
    return replace(document, text=document.text[:start] + MASK + document.text[end:], turns=turns, gold=())


def aligned(document: Document, unit: Unit, start: int, end: int) -> bool:
    """Whether masking ``text[start:end]`` changes one record and no other.

    Boundaries are read off the raw text, so a secret that holds or touches a stop or line end ("St. Mary", "Acme Inc.")
    may move one when it is masked. A guarantee per record then covers every record that changes, not one: this tells
    such secrets apart.
    """
    changed = masked(document, start, end)
    if changed is None:
        return False
    before, after = split(document, unit), split(changed, unit)
    if len(before) != len(after):
        return False
    touched = [i for i, record in enumerate(before) if record.start < end and start < record.end]
    if len(touched) != 1:
        return False
    (at,) = touched
    return all(b.text == a.text for i, (b, a) in enumerate(zip(before, after, strict=True)) if i != at)


def _ends(document: Document, unit: Unit) -> list[int]:
    """Increasing ends of non-empty pieces; the last is the end of the text."""
    text, length = document.text, len(document.text)
    if unit == "document":
        return [length]
    if unit not in _UNITS:
        raise UsageError(f"unknown unit {unit!r}; {nearest(str(unit), _UNITS)}")
    if structured(text):
        raise UsageError(f"a conversation or a pair of texts is one record, whose unit is 'document', not '{unit}'")
    ends: list[int] = []
    start = 0
    for end in [*(t.end for t in document.turns if t.end < length), length]:
        if unit == "turn" and document.turns:
            ends.append(end)
        else:
            first = len(ends)
            _line_ends(text, start, end, unit == "sentence", ends)
            for low, high in _armoured(text, start, end):
                ends[first:] = [at for at in ends[first:] if not low < at < high]
        start = end
    return ends


def _armoured(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """From each line "-----BEGIN …" to the one "-----END …" after it, if that is near: a key is one secret."""
    while (start := text.find(_BEGIN, start, end)) >= 0:
        high = text.find(_END, start, min(end, start + _LONGEST_KEY))
        after = text.find(_BEGIN, start + 1, end)
        if high >= 0 and not start < after < high:
            yield text.rfind("\n", 0, start) + 1, text.find("\n", high, end) + 1 or end
        start += len(_BEGIN)


def _line_ends(text: str, start: int, end: int, sentences: bool, ends: list[int]) -> None:
    while start < end:
        line_end = text.find("\n", start, end) + 1 or end
        if sentences:
            _sentence_ends(text, start, line_end, ends)
        ends.append(line_end)
        start = line_end


def _sentence_ends(text: str, start: int, end: int, ends: list[int]) -> None:
    """Ends of sentences inside one line, its own end left out."""
    for match in _STOP.finditer(text, start, end):
        follow = match.end()
        if follow == end:
            return
        marks, closers, space, following = match.groups()
        if marks[-1] not in _WIDE:
            if not space:
                continue
            lower = following[:1].islower()
            if closers and lower:  # "Really?" he asked
                continue
            if marks != ".":
                if lower and set(marks) <= _PAUSES:
                    continue
            elif not _is_end(text, start, match.start(), following):
                continue
        ends.append(follow)
        start = follow


def _is_end(text: str, start: int, stop: int, following: str) -> bool:
    """Whether a full stop with white space behind it ends the sentence that began at ``start``. following: the beginning of
    the next word of the line."""
    before = text[max(start, stop - _LOOK_BACK) : stop]
    if not before or before[-1].isspace():  # tokenised text: "centre . Then"
        return True
    word = before.rsplit(None, 1)[-1].lstrip(_OPENERS)
    key = word.lower()
    if key in NEVER_LAST or (word[-1:].isdigit() and following[:1].isdigit()):  # 030. 1234. 5678, am 12. 3. 1970
        return False
    if key in BEFORE_NUMBER and following[:1].isdigit():
        return False
    ordinal = word.isdigit() and len(word) <= 2  # am 3. Mai, der 2. Senat
    letters = (len(word) == 1 and word.isalpha()) or ("." in word and _DOTTED.fullmatch(word))
    if key in SELDOM_LAST or ordinal or letters or (key.endswith("str") and len(key) > 4):
        return following[:1].isupper() and following.lower() in STARTERS
    numbers_a_list = word.isdigit() and len(word) <= 3 and stop - start == len(before) and before.strip() == word
    return not numbers_a_list


def _join_blank(text: str, ends: list[int]) -> list[int]:
    """Ends such that no piece is white space alone, unless the text is."""
    joined: list[int] = []
    start = held = 0  # held: end of the last piece, kept back because blank ones may follow it
    only_blank = True
    for end in ends:
        if not text[start:end].isspace():
            if not only_blank:
                joined.append(held)
            only_blank = False
        held = start = end
    joined.append(held or len(text))
    return joined


def _cut(document: Document, ends: list[int]) -> dict[int, list[Span]]:
    """Gold spans by record index, relative to it; the closing line end of a record is not part of a span."""
    pieces: dict[int, list[Span]] = {}
    for span in sorted(document.gold):
        at = bisect_right(ends, span.start)
        while at < len(ends) and (start := ends[at - 1] if at else 0) < span.end:
            length = len(body(document.text[start : ends[at]]))
            first, last = max(span.start - start, 0), min(span.end - start, length)
            if document.text[start + first : start + last].strip():
                pieces.setdefault(at, []).append(replace(span, start=first, end=last))
            at += 1
    return pieces
