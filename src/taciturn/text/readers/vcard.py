"""Address books (.vcf): vCard 2.1, 3.0 and 4.0. Each card is one document, a line for each property."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from taciturn.errors import DataError
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.charsets import decoded
from taciturn.text.readers.files import Line, lines, opened, too_long
from taciturn.text.readers.formats import Item
from taciturn.text.readers.held import File
from taciturn.text.readers.items import BadRecord, Blank, Quarantined, Row

_PROPERTY = re.compile(rb"(?:[A-Za-z0-9-]+\.)?([A-Za-z0-9-]+)((?:;(?:[^:;\"]++|\"[^\"]*+\")*+)*+):(.*)", re.DOTALL)
_CHARSET = re.compile(rb"CHARSET=\"?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_BINARY = frozenset({"PHOTO", "LOGO", "SOUND", "KEY"})
_MACHINE = frozenset({"BEGIN", "END", "VERSION", "PRODID", "REV", "UID", "X-MS-OL-DESIGN"})
_STRUCTURED = frozenset({"N", "ADR", "ORG", "GENDER"})
_ESCAPE = re.compile(r"\\([\\;,nN])")
_PART = re.compile(r"((?:[^;\\]|\\.|\\$)*)(?:;|$)", re.DOTALL)


@dataclass(slots=True)
class _Card:
    """The lines of a card that is being read, folds undone."""

    line: int
    number: int
    size: int = 0
    depth: int = 0
    properties: list[bytearray] = field(default_factory=list)

    @property
    def where(self) -> str:
        return f"card {self.number} (line {self.line})"


def vcard(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """Text of a card: "TEL: 555", with the parameters left out, parts of names and addresses apart by commas.

    Pictures, sounds and keys are left out and counted. id: UID, where a card has one. Fields: text, fn.
    Raises DataError for a file without a card.
    """
    card: _Card | None = None
    number = 0
    with opened(path, name) as stream:
        for line in lines(stream, options.max_record_bytes):
            data = line.data
            mark = b"" if data is None else bytes(data).strip().upper()
            if card is None:
                if mark == b"BEGIN:VCARD":
                    number += 1
                    card = _Card(line.number, number)
                elif mark or data is None:
                    if not number:
                        raise DataError(f"{name} is no vCard file: line {line.number} is not BEGIN:VCARD")
                    yield Quarantined(name, f"line {line.number}", "a line outside of a card")
            elif mark == b"END:VCARD" and not card.depth:
                yield from _items(card, name, options)
                card = None
            else:
                _add(card, line, mark, options.max_record_bytes)
    if card is not None:
        yield Quarantined(name, card.where, "the card is cut off: END:VCARD is missing")


def _add(card: _Card, line: Line, mark: bytes, limit: int) -> None:
    """A line into its property: folded (RFC 6350), quoted-printable with a soft break, or bare base64 (both vCard 2.1)."""
    data = line.data
    card.size += limit + 1 if data is None else len(data) + len(line.ending)
    if card.size > limit or data is None:
        card.properties.clear()
        return
    card.depth += (mark == b"BEGIN:VCARD") - (mark == b"END:VCARD")
    last = card.properties[-1] if card.properties else None
    if last is not None and last.endswith(b"=") and _is_quoted_printable(last):
        last += b"\r\n" + data
    elif last is not None and data[:1] in (b" ", b"\t"):
        last += data[1:]
    elif last is not None and b":" not in data and _is_base64(last):
        last += data
    elif mark:
        card.properties.append(bytearray(data))


def _items(card: _Card, name: str, options: ReadOptions) -> Iterator[Item]:
    private: str | None = None
    rows: list[str] = []
    left_out: list[str] = []
    uid = known_as = None
    try:
        if card.size > options.max_record_bytes:
            raise too_long(options.max_record_bytes)
        for place, line in enumerate(card.properties, 1):
            found = _PROPERTY.fullmatch(bytes(line))
            if not found:
                raise BadRecord(f"property {place} of the card has no name and value")
            what = found[1].decode("ascii").upper()
            if what in _BINARY or _is_base64(line):
                left_out.append(what if what in _BINARY else "binary property")
                continue
            content, reason = _content(found, f"property {place} of the card", options)
            private = private or reason
            if what == "UID":
                uid = content or None
            if what in _MACHINE or not content:
                continue
            known_as = content if what == "FN" and known_as is None else known_as
            rows.append(f"{what}: {content}\n")
    except BadRecord as bad:
        yield Quarantined(name, card.where, bad.reason)
        return
    for each in left_out:
        yield Blank(name, card.where, each)
    value = {"text": "".join(rows), **({} if known_as is None else {"fn": known_as})}
    yield Row(card.number, card.where, value, private, id=uid)


def _content(found: re.Match[bytes], where: str, options: ReadOptions) -> tuple[str, str | None]:
    """The value as text on one line or several, and why it must be private."""
    name, parameters, data = found[1].decode("ascii").upper(), found[2], found[3]
    if _is_quoted_printable(found[0]):
        data = binascii.a2b_qp(data)
    charset = _CHARSET.search(parameters)
    text, private = decoded(data, charset[1].decode("ascii") if charset else None, where, options.encoding_errors)
    parts = _PART.findall(text) if name in _STRUCTURED else [text]
    plain = (_ESCAPE.sub(lambda m: "\n" if m[1] in "nN" else m[1], part).strip() for part in parts)
    return ", ".join(part for part in plain if part), private


def _parameters(line: bytes | bytearray) -> bytes:
    return bytes(line).partition(b":")[0].upper()


def _is_quoted_printable(line: bytes | bytearray) -> bool:
    return b"QUOTED-PRINTABLE" in _parameters(line)


def _is_base64(line: bytes | bytearray) -> bool:
    parameters = _parameters(line)
    return (
        b"BASE64" in parameters or b"ENCODING=B" in parameters or bytes(line).partition(b":")[2][:5].lower() == b"data:"
    )
