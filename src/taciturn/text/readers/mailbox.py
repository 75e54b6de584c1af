"""Files of mail: .eml, one message; mbox, many, each after a line that begins with "From "."""

from __future__ import annotations

import re
from collections.abc import Iterator

from taciturn.errors import DataError
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.files import Line, lines, opened, too_long
from taciturn.text.readers.formats import Item
from taciturn.text.readers.held import File
from taciturn.text.readers.items import BadRecord, Blank, Quarantined, Row
from taciturn.text.readers.mail import mail

ENVELOPE = re.compile(
    rb"From .{0,500}?\b\d{1,2}:\d\d\b.{0,80}?\b\d{4}\b|From .{0,500}?\b\d{4}\b.{0,80}?\b\d{1,2}:\d\d\b"
)
"""The line before a message. "From " alone also begins sentences; one with a time and a year does not."""

PREAMBLE = "text before the first message; move it to a file of its own"
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)
_FIELD = re.compile(rb"[!-9;-~]+[ \t]*:")
_HEADER = re.compile(rb"(?:>?From |[!-9;-~]+[ \t]*:)")


def eml(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """The file is one message. Raises DataError when it does not begin with a header."""
    with opened(path, name) as stream:
        data = stream.read(options.max_record_bytes + 1)
    if not data.strip():
        return
    if len(data) > options.max_record_bytes:
        yield Quarantined(name, "message 1", too_long(options.max_record_bytes).reason)
    elif not _HEADER.match(data := data.lstrip()):
        raise DataError(f"{name} is no mail message: it does not begin with a header; format='text' reads it as text")
    else:
        yield from _items(data, 1, "message 1", name, options)


def mbox(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """Each message is one document; ">From " at the start of a line becomes "From " again (mboxrd and mboxo).

    A message begins at a "From " line with a time and a year: the first line, or between a blank line and a header. What
    stands before the first is quarantined. Raises DataError when there is none.
    """
    limit = options.max_record_bytes
    with opened(path, name) as stream:
        number, where, size = 0, "", 0
        parts: list[bytes] = []
        after_blank, before = True, 0
        for line, following in _with_next(lines(stream, limit)):
            if (after_blank or not number) and _begins(line, following, first=not number and not before):
                if before and not number:
                    yield Quarantined(
                        name, f"line {before}", "text before the first message; give it a file of its own"
                    )
                if number:
                    yield from _message(parts, size, number, where, name, options)
                number, where, size, parts = number + 1, f"message {number + 1} (line {line.number})", 0, []
                after_blank = False
                continue
            after_blank = line.data is not None and not line.data.strip()
            if not number:
                before = before or (0 if after_blank else line.number)
                continue
            size += limit + 1 if line.data is None else len(line.data) + len(line.ending)
            if size <= limit and line.data is not None:
                parts += (line.data, line.ending)
            else:
                parts.clear()
        if number:
            yield from _message(parts, size, number, where, name, options)
        elif before:
            raise DataError(
                f"{name} is no mbox: line {before} is no 'From ' line with a date, nor is any after it; format='eml' reads "
                "one message"
            )


def _with_next(source: Iterator[Line]) -> Iterator[tuple[Line, Line | None]]:
    line = next(source, None)
    while line is not None:
        following = next(source, None)
        yield line, following
        line = following


def _begins(line: Line, following: Line | None, first: bool) -> bool:
    """Whether a message begins; inside the file only where a header follows, as it does not after a sentence."""
    if line.data is None or not ENVELOPE.match(line.data):
        return False
    return first or (following is not None and following.data is not None and _FIELD.match(following.data) is not None)


def _message(parts: list[bytes], size: int, number: int, where: str, name: str, options: ReadOptions) -> Iterator[Item]:
    if size > options.max_record_bytes:
        yield Quarantined(name, where, too_long(options.max_record_bytes).reason)
        return
    data = _QUOTED.sub(rb"\1", b"".join(parts))
    # The blank line before the next "From " line belongs to the box.
    data = data[:-2] if data.endswith(b"\n\r\n") else data[:-1] if data.endswith(b"\n\n") else data
    yield from _items(data, number, where, name, options) if data.strip() else (Blank(name, where),)


def _items(data: bytes, number: int, where: str, name: str, options: ReadOptions) -> Iterator[Item]:
    try:
        read = mail(data, options)
    except BadRecord as bad:
        yield Quarantined(name, where, bad.reason)
        return
    for what in read.left_out:
        yield Blank(name, where, what)
    yield Row(number, where, read.value, read.private, id=read.value.get("message-id"), user=read.value.get("from"))
