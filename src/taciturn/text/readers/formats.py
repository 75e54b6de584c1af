"""Rows of text formats: plain text, lines, JSON lines, JSON lists. Each streams but a JSON list, which is read whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import orjson

from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.files import decode, lines, opened, too_long
from taciturn.text.readers.held import File
from taciturn.text.readers.items import BadRecord, Blank, Quarantined, Row
from taciturn.text.readers.pieces import Stretch

Item = Row | Quarantined | Blank
Reader = Callable[[File, str, ReadOptions], Iterator[Item]]

DOUBLED = "holds an object in which a key stands twice; keep one of them, or name them apart"
SURROGATE = "holds a lone surrogate, which is not a character; repair the program that wrote it"


def text(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """The whole file is one document, line ends included."""
    with opened(path, name, encoding=options.encoding) as stream:
        offset = stream.tell()
        data = stream.read(options.max_record_bytes + 1)
        try:
            if len(data) > options.max_record_bytes:
                raise BadRecord(
                    too_long(options.max_record_bytes).reason + " (format='lines' reads a document per line)"
                )
            content, private = decode(data, offset, options)
        except BadRecord as bad:
            yield Quarantined(name, bad.location or "line 1", bad.reason)
        else:
            yield Row(1, "line 1", {options.text: content}, private)


def text_lines(path: File, name: str, options: ReadOptions, stretch: Stretch | None = None) -> Iterator[Item]:
    """Each line is one document, without its line end."""
    with opened(path, name, stretch.start if stretch else 0, options.encoding) as stream:
        yield from _per_line(stream, name, options, lambda content: {options.text: content}, stretch)


def jsonl(path: File, name: str, options: ReadOptions, stretch: Stretch | None = None) -> Iterator[Item]:
    """One JSON object per line."""
    with opened(path, name, stretch.start if stretch else 0, options.encoding) as stream:
        yield from _per_line(stream, name, options, parse, stretch)


def json_list(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """A list of objects or one object; a file of JSON lines that merely ends in .json is read as such."""
    with opened(path, name, encoding=options.encoding) as stream:
        offset = stream.tell()
        data = stream.read()
        if not data.strip():
            return
        try:
            content, private = decode(data, offset, options)
            value = parse(content, each=True)
        except BadRecord as bad:
            first, _, rest = data.strip().partition(b"\n")
            if first.startswith(b"{") and first.rstrip().endswith(b"}") and rest:
                stream.seek(offset)
                yield from _per_line(stream, name, options, parse)
            else:
                yield Quarantined(name, bad.location or "line 1", bad.reason)
            return
    for number, element in enumerate(value if isinstance(value, list) else [value], 1):
        where = f"record {number}"
        if doubled(element):
            yield Quarantined(name, where, DOUBLED)
            continue
        try:
            size = len(orjson.dumps(element))  # fails on a lone surrogate anywhere in the element
        except TypeError:
            yield Quarantined(name, where, SURROGATE)
            continue
        if size > options.max_record_bytes:
            yield Quarantined(name, where, too_long(options.max_record_bytes).reason)
        else:
            yield Row(number, where, element, private)


def _per_line(
    stream: BinaryIO,
    name: str,
    options: ReadOptions,
    read: Callable[[str], Any],
    stretch: Stretch | None = None,
) -> Iterator[Item]:
    end, before = (stretch.end, stretch.first) if stretch else (None, 0)
    for line in lines(stream, options.max_record_bytes, end, before):
        where = f"line {line.number}"
        if line.data is None:
            yield Quarantined(name, where, too_long(options.max_record_bytes).reason)
        elif not line.data.strip():
            yield Blank(name, where)
        else:
            try:
                content, private = decode(line.data, line.offset, options)
                yield Row(line.number, where, read(content), private)
            except BadRecord as bad:
                yield Quarantined(name, where, bad.reason)


class Doubled(dict[str, Any]):
    """An object in which a key stands twice; it holds the last value."""


def parse(content: str, each: bool = False) -> Any:
    """The JSON value. each: let lone surrogates through, and objects with a doubled key (as ``Doubled``), for a caller that
    checks each element itself.

    Raises BadRecord for anything that is not JSON (NaN and Infinity included) or is nested too deeply.
    """
    reason = ""
    try:
        value = orjson.loads(content)
        if _colons(content) == _keys(value):
            return value
    except orjson.JSONDecodeError as error:
        reason = f"not valid JSON (character {error.pos})"
    # orjson refuses lone surrogates like any broken JSON, and takes the last of two values; the standard library can tell.
    try:
        other = json.loads(content, parse_constant=_not_json, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        raise BadRecord(reason or "nested too deeply") from None
    if not each and doubled(other):
        raise BadRecord(DOUBLED)
    if not each and reason:
        raise BadRecord(SURROGATE)
    return other if reason or doubled(other) else value


def _colons(content: str) -> int:
    """How many keys there are at most: a colon follows each, also one that is lost, and a few words of texts."""
    if " :" in content or "\t:" in content or "\n:" in content or "\r:" in content:
        return len(_COLON.findall(content))
    return content.count('":')


_COLON = re.compile(r'"[ \t\r\n]*:')


def _keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(_keys(each) for each in value.values() if isinstance(each, dict | list))
    return sum(_keys(each) for each in value if isinstance(each, dict | list)) if isinstance(value, list) else 0


def doubled(value: Any) -> bool:
    """Whether ``parse`` met a doubled key in it."""
    if isinstance(value, Doubled):
        return True
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(doubled(each) for each in inner if isinstance(each, dict | list))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else Doubled(made)


def _not_json(constant: str) -> Any:
    raise ValueError(constant)
