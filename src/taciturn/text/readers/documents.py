"""One row with named fields becomes one document: flat text, a dialogue of turns, a conversation or a pair of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from taciturn.text.chat import FIRST, SECOND, head, message_problem, structured
from taciturn.text.document import Document, Turn
from taciturn.text.read_options import TURN_SPEAKER, TURN_TEXT, ReadOptions
from taciturn.text.readers.annotations import unified
from taciturn.text.readers.chats import conversation
from taciturn.text.readers.fields import gold_spans, kind, lookup, name_of, text_in, text_of
from taciturn.text.readers.files import too_long
from taciturn.text.readers.items import BadRecord, MissingField, Row
from taciturn.text.spans import Span

NUL = "holds a NUL character"
FORGED = "holds the characters that mark chat messages (U+001E, U+001F); remove them, or read messages with chat=..."


def document(row: Row, default_id: str, options: ReadOptions) -> Document | None:
    """The document of a row; None when it holds nothing but whitespace.

    The text of a dialogue is its turns' texts, each closed by a line end, without speaker names. Gold spans count code
    points of their turn, message or flat text (of a pair: its first); those marked ``"secret": false`` are annotations of
    something else and are left out, and where no such mark exists all are gold. Offsets are checked against the text,
    values are not.

    Raises BadRecord.
    """
    value = row.value
    if type(value) is not dict and not isinstance(value, Mapping):  # almost always a dict, and asking that is cheap
        raise BadRecord(f"holds {kind(value)} where an object with named fields is expected")
    turns: tuple[Turn, ...] = ()
    gold: tuple[Span, ...] = ()
    dialogue = False
    if options.chat is not None:
        said = conversation(value, options)
        if said is None:
            return None
        text, gold = said
    elif options.text_pair is not None:
        paired = _pair(value, options.text_pair, options)
        if paired is None:
            return None
        text, gold = paired
    elif (joined := _text(value, options)) is not None:
        text = joined
        if (spans := lookup(value, options.spans)[1]) is not None:
            if len(options.texts) > 1 and options.text not in value:
                raise BadRecord(f"field '{options.spans}' cannot be placed in a text of several fields; name one")
            gold = tuple(gold_spans(spans, text, 0, "the text", options.gold == "secret"))
    else:
        dialogue, turns_value = lookup(value, options.turns)
        if not dialogue or not isinstance(turns_value, list):
            raise MissingField(next(name for name in options.texts if not lookup(value, name)[0]), value)
        text, turns, gold = _dialogue(turns_value, options.spans, options.gold == "secret")
    if not options.structured and structured(text):
        raise BadRecord(FORGED)
    name = name_of(value, options.id, "id") if options.id else row.id
    if name is None and dialogue and isinstance(value.get("dialogue_id"), str | int):
        name = str(value["dialogue_id"])
    user = name_of(value, options.user, "user") if options.user else row.user
    label = _label(value, options.label) if options.label else None
    whole = Document(name or default_id, text, user, turns, gold, row.private_because, label)
    return checked(whole, options)


def documents(row: Row, default_id: str, options: ReadOptions) -> list[Document | None]:
    """The document of a row, or, where ``options.user`` names who speaks in its turns, one of each turn.

    A record then has one user, whatever its unit is; a turn of nobody (a notice of the app) has none. Raises BadRecord, and
    LeftOut for a row that an annotator did not accept.
    """
    value = row.value
    if isinstance(value, Mapping) and not options.structured:
        value = unified(value, options)
        row = row if value is row.value else replace(row, value=value)
    if (
        options.user not in TURN_SPEAKER
        or options.structured
        or not isinstance(value, Mapping)
        or lookup(value, options.user)[0]
        or _text(value, options) is not None
        or not isinstance(turns := lookup(value, options.turns)[1], list)
    ):
        return [document(row, default_id, options)]
    name = name_of(value, options.id, "id") if options.id else str(value.get("dialogue_id") or row.id or default_id)
    label = _label(value, options.label) if options.label else None
    made = []
    for number, turn in enumerate(turns, 1):
        text, _, gold = _dialogue([turn], options.spans, options.gold == "secret", number)
        speaker = turn.get(options.user)
        user = speaker if isinstance(speaker, str) and speaker else None
        if structured(text):
            raise BadRecord(FORGED)
        said = Document(f"{name}/{number}", text, user, (), gold, row.private_because, label)
        made.append(checked(said, options))
    return made


def _text(value: Mapping[str, Any], options: ReadOptions) -> str | None:
    """The text field, or several joined by blank lines; None when one of them is not there. Of several, null and blank ones
    are passed over."""
    found, text = lookup(value, options.text)
    if found:
        return text_in(text, options.text)
    if len(options.texts) == 1 or not all(lookup(value, field)[0] for field in options.texts):
        return None
    parts = [text_of(value, field) for field in options.texts if lookup(value, field)[1] is not None]
    return "\n\n".join(part for part in parts if part.strip())


def checked(document: Document, options: ReadOptions) -> Document | None:
    """The document if it may pass, marked private if it holds NUL; None when blank. Raises BadRecord."""
    text = document.text
    # A code point takes at most four bytes, so short texts need no measuring.
    if len(text) * 4 > options.max_record_bytes and len(text.encode("utf-8", "replace")) > options.max_record_bytes:
        raise too_long(options.max_record_bytes)
    for part in (text, document.id, document.user or "", document.label or ""):
        if not part.isascii() and not _encodable(part):
            raise BadRecord("holds a lone surrogate, which is not a character; repair the program that wrote it")
    if not text or text.isspace():
        return None
    if document.private_because is None and "\0" in text:
        return replace(document, private_because=NUL)
    return document


def _pair(value: Mapping[str, Any], second: str, options: ReadOptions) -> tuple[str, tuple[Span, ...]] | None:
    if (first := _text(value, options)) is None:
        raise MissingField(options.text, value)
    texts = first, text_of(value, second)
    if not "".join(texts).strip():
        return None
    for field, text in zip((options.text, second), texts, strict=True):
        if wrong := message_problem(FIRST, text):
            raise BadRecord(f"field '{field}' {wrong}")
    shift = len(head(FIRST))
    spans = lookup(value, options.spans)[1]
    gold = tuple(gold_spans(spans, texts[0], shift, "the text", options.gold == "secret"))
    return head(FIRST) + texts[0] + head(SECOND) + texts[1], gold


def _label(value: Mapping[str, Any], field: str) -> str | None:
    """A label as text; None where it is null."""
    found, label = lookup(value, field)
    if found and label is None:
        return None
    return str(label).lower() if isinstance(label, bool) else name_of(value, field, "label")


def _dialogue(
    turns: list[Any], spans: str, marked_only: bool, first: int = 1
) -> tuple[str, tuple[Turn, ...], tuple[Span, ...]]:
    texts: list[str] = []
    places: list[Turn] = []
    gold: list[Span] = []
    at = 0
    for number, turn in enumerate(turns, first):
        if not isinstance(turn, Mapping):
            raise BadRecord(f"turn {number} holds {kind(turn)} where an object is expected")
        text = next((turn[key] for key in TURN_TEXT if key in turn), None)
        if not isinstance(text, str):
            raise BadRecord(f"turn {number} has no text (looked for {', '.join(TURN_TEXT)})")
        speaker = next((turn[key] for key in TURN_SPEAKER if isinstance(turn.get(key), str)), None)
        where = f"turn {number}"
        gold += gold_spans(turn.get(spans), text, at, where, marked_only)
        for frame in turn.get("frames") or ():  # MultiWOZ 2.2
            if isinstance(frame, Mapping):
                located = [s for s in frame.get("slots") or () if isinstance(s, Mapping) and "start" in s]
                gold += gold_spans(located, text, at, where, marked_only)
        texts += (text, "\n")
        places.append(Turn(at, at + len(text) + 1, speaker))
        at += len(text) + 1
    return "".join(texts), tuple(places), tuple(gold)


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
