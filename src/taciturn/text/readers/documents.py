"""One row with named fields becomes one document: flat text, or a dialogue of turns, with its gold spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from taciturn.text.document import Document, Turn
from taciturn.text.readers.files import too_long
from taciturn.text.readers.items import BadRecord, MissingField, ReadOptions, Row
from taciturn.text.spans import Span

TURN_TEXT = ("text", "utterance", "content", "value")
TURN_SPEAKER = ("speaker", "role", "from")
NUL = "holds a NUL character"


def document(row: Row, default_id: str, options: ReadOptions) -> Document | None:
    """The document of a row; None when it holds nothing but whitespace.

    The text of a dialogue is its turns' texts, each closed by a line end, without speaker names. Gold spans count code
    points of their turn (or flat text); those marked ``"secret": false`` are annotations of something else and are left
    out, and where no such mark exists all are gold. Offsets are checked against the text, values are not.

    Raises BadRecord.
    """
    value = row.value
    if not isinstance(value, Mapping):
        raise BadRecord(f"holds {_kind(value)} where an object with named fields is expected")
    turns: tuple[Turn, ...] = ()
    found, text = lookup(value, options.text)
    dialogue = False
    if not found:
        dialogue, turns_value = lookup(value, options.turns)
        if not dialogue or not isinstance(turns_value, list):
            raise MissingField(options.text, value)
        text, turns, gold = _dialogue(turns_value, options.spans, options.gold == "secret")
    elif not isinstance(text, str):
        raise BadRecord(f"field '{options.text}' holds {_kind(text)} where text is expected")
    else:
        gold = tuple(_gold(lookup(value, options.spans)[1], len(text), 0, "the text", options.gold == "secret"))
    name = _name(value, options.id, "id") if options.id else None
    if name is None and dialogue and isinstance(value.get("dialogue_id"), str | int):
        name = str(value["dialogue_id"])
    user = _name(value, options.user, "user") if options.user else None
    whole = Document(name or default_id, text, user, turns, gold, row.private_because)
    return checked(whole, options)


def checked(document: Document, options: ReadOptions) -> Document | None:
    """The document if it may pass, marked private if it holds NUL; None when blank. Raises BadRecord."""
    text = document.text
    # A code point takes at most four bytes, so short texts need no measuring.
    if len(text) * 4 > options.max_record_bytes and len(text.encode("utf-8", "replace")) > options.max_record_bytes:
        raise too_long(options.max_record_bytes)
    for part in (text, document.id, document.user or ""):
        if not part.isascii() and not _encodable(part):
            raise BadRecord("holds a lone surrogate, which is not a character; repair the program that wrote it")
    if not text or text.isspace():
        return None
    if document.private_because is None and "\0" in text:
        return replace(document, private_because=NUL)
    return document


def lookup(value: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    """Whether the (dotted) field is there, and what it holds. A key that contains the dots itself comes first.

    >>> lookup({"body": {"text": "hi"}}, "body.text")
    (True, 'hi')
    """
    if name in value:
        return True, value[name]
    head, *rest = name.split(".")
    inner: Any = value.get(head) if rest else None
    for part in rest:
        if not isinstance(inner, Mapping) or part not in inner:
            return False, None
        inner = inner[part]
    return bool(rest), inner


def _dialogue(turns: list[Any], spans: str, marked_only: bool) -> tuple[str, tuple[Turn, ...], tuple[Span, ...]]:
    texts: list[str] = []
    places: list[Turn] = []
    gold: list[Span] = []
    at = 0
    for number, turn in enumerate(turns, 1):
        if not isinstance(turn, Mapping):
            raise BadRecord(f"turn {number} holds {_kind(turn)} where an object is expected")
        text = next((turn[key] for key in TURN_TEXT if key in turn), None)
        if not isinstance(text, str):
            raise BadRecord(f"turn {number} has no text (looked for {', '.join(TURN_TEXT)})")
        speaker = next((turn[key] for key in TURN_SPEAKER if isinstance(turn.get(key), str)), None)
        where = f"turn {number}"
        gold += _gold(turn.get(spans), len(text), at, where, marked_only)
        for frame in turn.get("frames") or ():  # MultiWOZ 2.2
            if isinstance(frame, Mapping):
                located = [s for s in frame.get("slots") or () if isinstance(s, Mapping) and "start" in s]
                gold += _gold(located, len(text), at, where, marked_only)
        texts += (text, "\n")
        places.append(Turn(at, at + len(text) + 1, speaker))
        at += len(text) + 1
    return "".join(texts), tuple(places), tuple(gold)


def _gold(spans: object, length: int, shift: int, where: str, marked_only: bool) -> Iterator[Span]:
    if spans is None:
        return
    if not isinstance(spans, Iterable) or isinstance(spans, str | Mapping):
        raise BadRecord(f"the spans of {where} are {_kind(spans)}, not a list")
    for number, span in enumerate(spans, 1):
        if not isinstance(span, Mapping):
            raise BadRecord(f"span {number} of {where} holds {_kind(span)} where an object is expected")
        if not span.get("secret", not marked_only):
            continue
        start, end = span.get("start"), span.get("end", span.get("exclusive_end"))
        if type(start) is not int or type(end) is not int or not 0 <= start <= end <= length:
            raise BadRecord(
                f"span {number} of {where} lies outside its text (offsets count code points, end exclusive)"
            )
        if start == end:
            continue
        label = span.get("slot", span.get("label"))
        yield Span(shift + start, shift + end, label if isinstance(label, str) else "", 1.0, "gold")


def _name(value: Mapping[str, Any], field: str, role: str) -> str:
    found, name = lookup(value, field)
    if not found:
        raise MissingField(field, value)
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        raise BadRecord(f"field '{field}' ({role}) holds {_kind(name)} where text or a whole number is expected")
    return str(name)


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: object) -> str:
    """What a JSON value is, in words; never the value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text" if value else "an empty text"
    return "a list" if isinstance(value, list | tuple) else "an object" if isinstance(value, Mapping) else "other data"
