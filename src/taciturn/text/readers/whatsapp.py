"""A chat exported by WhatsApp as text: one dialogue, a turn for each message."""

from __future__ import annotations

import re
from collections.abc import Iterator

from taciturn.errors import DataError
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.files import decode, lines, opened, too_long
from taciturn.text.readers.formats import Item
from taciturn.text.readers.held import File
from taciturn.text.readers.items import BadRecord, Quarantined, Row

_MARKS = "[\u200e\u200f\u202a-\u202e\ufeff]*"
_DATE = r"\d{1,4}[./-] ?\d{1,2}[./-] ?\d{1,4}\.?"
_TIME = r"[^\d\[\]:–-]{0,8}\d{1,2}[:.]\d{2}(?:[:.]\d{2})?[^\d\[\]:–-]{0,12}"
_HEAD = re.compile(rf"{_MARKS}(?:\[{_DATE}[,،]?\s?{_TIME}\]\s|{_DATE}[,،]?\s?{_TIME}\s[–-]\s)")
"""iOS "[31/12/2020, 21:41:07] Ann: Hi"; Android "12/31/20, 9:41 PM - Ann: Hi". Which of day and month comes first, and
in which script the digits are, does not matter here."""
_SPEAKER = re.compile(rf"{_MARKS}([^:\n]{{1,100}}):(?: |$)")


def whatsapp(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """Times are left out; so is who speaks, who becomes the turn's speaker. What the app itself says ("Ann was added") is a
    turn without one. Lines without a time continue the message before them.

    Raises DataError when the first line that is not blank does not begin with a date and a time.
    """
    turns: list[dict[str, str | None]] = []
    texts: list[str] = []  # of the last turn
    private: str | None = None
    size = 0
    with opened(path, name, encoding=options.encoding) as stream:
        for line in lines(stream, options.max_record_bytes):
            where = f"line {line.number}"
            size += len(line.data or b"") + len(line.ending)
            if size > options.max_record_bytes:
                yield Quarantined(name, "line 1", too_long(options.max_record_bytes).reason)
                return
            if line.data is None:
                yield Quarantined(name, where, too_long(options.max_record_bytes).reason)
                continue
            try:
                content, reason = decode(line.data, line.offset, options)
            except BadRecord as bad:
                yield Quarantined(name, where, bad.reason)
                continue
            private = private or reason
            if head := _HEAD.match(content):
                _close(turns, texts)
                speaker = _SPEAKER.match(content, head.end())
                turns.append({"speaker": speaker[1].strip() if speaker else None})
                texts = [content[speaker.end() if speaker else head.end() :]]
            elif turns:
                texts.append(content)
            elif content.strip():
                raise DataError(f"{name} is no WhatsApp export: {where} does not begin with a date and a time")
    _close(turns, texts)
    if turns:
        yield Row(1, "line 1", {options.turns: turns}, private)


def _close(turns: list[dict[str, str | None]], texts: list[str]) -> None:
    if turns:
        turns[-1]["text"] = "\n".join(texts)
