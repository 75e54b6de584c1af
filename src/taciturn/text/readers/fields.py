"""Fields of a row: finding them, saying what they hold without quoting it, annotated spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from taciturn.text.readers.items import BadRecord, MissingField
from taciturn.text.spans import Span


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


def text_of(value: Mapping[str, Any], field: str) -> str:
    """The text a field holds. Raises BadRecord when it is not there or holds something else."""
    found, text = lookup(value, field)
    if not found:
        raise MissingField(field, value)
    return text_in(text, field)


def text_in(content: object, field: str) -> str:
    """What a field holds, if it is text. Raises BadRecord."""
    if not isinstance(content, str):
        raise BadRecord(f"field '{field}' holds {kind(content)} where text is expected")
    return content


def name_of(value: Mapping[str, Any], field: str, role: str) -> str:
    """The text or whole number a field holds, as text. Raises BadRecord."""
    found, name = lookup(value, field)
    if not found:
        raise MissingField(field, value)
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        raise BadRecord(f"field '{field}' ({role}) holds {kind(name)} where text or a whole number is expected")
    return str(name)


def gold_spans(spans: object, text: str, shift: int, where: str, marked_only: bool) -> Iterator[Span]:
    """Annotated spans of a text, moved by ``shift``; see ``documents.document``.

    A span that says its own text is held to it: offsets that count UTF-16, as JavaScript does, are corrected.
    """
    if spans is None:
        return
    if not isinstance(spans, Iterable) or isinstance(spans, str | Mapping):
        raise BadRecord(f"the spans of {where} are {kind(spans)}, not a list")
    for number, span in enumerate(spans, 1):
        if not isinstance(span, Mapping):
            raise BadRecord(f"span {number} of {where} holds {kind(span)} where an object is expected")
        if not span.get("secret", not marked_only):
            continue
        start, end = span.get("start"), span.get("end", span.get("exclusive_end"))
        if isinstance(said := span.get("text"), str) and type(start) is int and type(end) is int:
            start, end = _held_to(said, start, end, text, f"span {number} of {where}")
        if type(start) is not int or type(end) is not int or not 0 <= start <= end <= len(text):
            raise BadRecord(
                f"span {number} of {where} lies outside its text (offsets count code points, end exclusive)"
            )
        if start == end:
            continue
        label = span.get("slot", span.get("label"))
        yield Span(shift + start, shift + end, label if isinstance(label, str) else "", 1.0, "gold")


def _held_to(said: str, start: int, end: int, text: str, where: str) -> tuple[int, int]:
    """Offsets in code points at which the text is what the span says. Raises BadRecord."""
    if 0 <= start <= end <= len(text) and text[start:end] == said:
        return start, end
    units = text.encode("utf-16-le", "surrogatepass")
    if 0 <= start <= end <= len(units) // 2 and units[2 * start : 2 * end] == said.encode("utf-16-le", "surrogatepass"):
        start = len(units[: 2 * start].decode("utf-16-le", "surrogatepass"))
        return start, start + len(said)
    raise BadRecord(
        f"{where} says another text than stands at its offsets (in code points, or UTF-16 units); annotate this text again"
    )


def kind(value: object) -> str:
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
