"""A look at somebody's files: format, fields, users, language, sizes. Numbers and names of fields, never a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from taciturn.errors import DataError
from taciturn.project.columns import (
    ID_NAMES,
    LABEL_NAMES,
    USER_NAMES,
    Field,
    annotated_spans,
    conversations,
    flat,
    repeating,
    text_fields,
    text_of,
    usual_field,
)
from taciturn.project.language import language_of_texts, lower_case, spread
from taciturn.project.speaking import levels
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.corpus import FORMATS, Corpus, files
from taciturn.text.readers.detect import format_of
from taciturn.text.readers.items import Row
from taciturn.text.readers.sources import Source

ROWS = 2000
"""Rows looked at in one file, and four times as many in all."""
MEASURED = 30_000
"""Characters in which the marks of π_c are counted."""
UNFIELDED = (
    "text", "lines", "html", "eml", "mbox", "vcard", "whatsapp", "slack", "docx", "xlsx", "pptx", "pdf", "rtf", "ipynb",
    "xml", "subtitles", "msg", "spacy",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen. formats: files by format. texts: candidate fields for the text, the likeliest first; user, label, id:
    names of fields or None; users: how many were seen, under that field or named by the format, as senders of mail are;
    maybe_users: of fields whose values come again and again, where none has the name of a user's.
    chat: a form of ``ReadOptions.chat``. turns: rows are dialogues. spans: there are annotated secrets, ``annotated`` of
    them, ``spans_in_turns``: in turns or messages. documents: looked at; whole: that is all of them. unreadable: (file,
    why). lower: the text has no capitals; then levels: those of π_c, weakest first, and the share of words that each
    marks."""

    formats: Mapping[str, int]
    texts: tuple[str, ...]
    user: str | None
    id: str | None
    label: str | None
    chat: str | None
    turns: bool
    spans: bool
    language: str | None
    documents: int
    whole: bool
    users: int | None
    mean_characters: float
    bytes: int
    unreadable: tuple[tuple[str, str], ...]
    lower: bool = False
    levels: tuple[tuple[str, float], ...] = ()
    maybe_users: tuple[str, ...] = ()
    annotated: int = 0
    spans_in_turns: bool = False

    @property
    def text(self) -> str | None:
        """The likeliest field."""
        return self.texts[0] if self.texts else None

    @property
    def about(self) -> int:
        """Documents in all, extrapolated by size where not all were looked at."""
        return self.documents if self.whole else max(self.documents, round(self.bytes / max(self.mean_characters, 1)))


def inspect(corpus: Corpus, format: str = "auto") -> Look:
    """Look at the files of a corpus. DataError when none of them can be read, naming the first and why."""
    formats: dict[str, int] = {}
    fields: dict[str, Field] = {}
    found: list[tuple[bool, Any]] = []  # whether the row has fields of its own
    senders: list[str | None] = []
    unreadable: list[tuple[str, str]] = []
    size, whole = 0, True
    for source, kind, why in _files(corpus, format):
        room = min(ROWS, 4 * ROWS - len(found))
        fielded = kind not in UNFIELDED
        try:
            if why:
                raise DataError(why)
            items = FORMATS[kind](source.path, source.name, _any(format, corpus.options.encoding, fielded))
            rows = list(islice((item for item in items if isinstance(item, Row)), max(room, 0) + 1))
        except DataError as error:
            unreadable.append((source.name, str(error)))
            continue
        if not rows and room:
            unreadable.append((source.name, "no row could be read"))
            continue
        whole = whole and len(rows) <= room
        size += source.size
        formats[kind] = formats.get(kind, 0) + 1
        found += [(fielded, row.value) for row in rows[: max(room, 0)]]
        senders += [row.user for row in rows[: max(room, 0)]]
    if not formats:
        first, why = unreadable[0]
        more = f"; and {len(unreadable) - 1} more files" if len(unreadable) > 1 else ""
        raise DataError(f"none of the files can be read: {first}: {why}{more}")
    for fielded, row in found:
        for name, value in flat(row) if fielded else ():
            fields.setdefault(name, Field()).add(value)
    return _seen(formats, fields, found, senders, size, whole, tuple(unreadable))


def _files(corpus: Corpus, format: str) -> Iterator[tuple[Source, str, str]]:
    """Each file, those in archives too, with its format, or with why it cannot be read; hidden ones are left out."""
    options = ReadOptions(format=format)  # type: ignore[arg-type]
    for source in corpus.sources:
        try:
            for each in files(source, options):
                if not isinstance(each, Source):
                    yield replace(source, name=each[0]), "", each[1]
                elif not each.left_out:
                    try:
                        yield each, format_of(each.path, each.name, options), ""
                    except DataError as error:
                        yield each, "", str(error)
        except DataError as error:
            yield source, "", str(error)


def _any(format: str, encoding: str | None, fielded: bool) -> ReadOptions:
    """Options under which every row is read; of a table, all columns, as none has the name asked for."""
    names = {"text": "\0", "turns": "\0"} if fielded else {}
    return ReadOptions(format=format, encoding=encoding, duplicate_ids="suffix", **names)  # type: ignore[arg-type]


def _seen(
    formats: Mapping[str, int],
    fields: Mapping[str, Field],
    found: Sequence[tuple[bool, Any]],
    senders: Sequence[str | None],
    size: int,
    whole: bool,
    unreadable: tuple[tuple[str, str], ...],
) -> Look:
    rows = [row for fielded, row in found if fielded]
    n = len(rows)
    chat = conversations(rows)
    texts = () if chat else tuple(text_fields(fields, n))
    turns = not chat and not texts and "turns" in fields
    said = [text_of(row, (texts[0] if texts else None) if fielded else "text") for fielded, row in found]
    characters = sum(map(len, said))
    speaks, lower = language_of_texts(said), lower_case(said)
    user = usual_field(fields, USER_NAMES, n, lambda f: len(f.values) > 1)
    label = usual_field(
        fields, LABEL_NAMES, n, lambda f: 2 <= len(f.values) <= min(50, n // 4) and f.words <= 3 * f.rows
    )
    whole_spans, turn_spans = annotated_spans(rows)
    return Look(
        formats,
        texts,
        user if user not in texts[:1] else None,
        usual_field(fields, ID_NAMES, n, lambda f: len(f.values) == n and not f.kinds & {"list", "other"}),
        label,
        chat,
        turns,
        whole_spans + turn_spans > 0 or ("spans" in fields and fields["spans"].kinds == {"list"}),
        speaks,
        len(found),
        whole,
        len(fields[user].values) if user else _known(senders),
        characters / len(found) if found else 0.0,
        size,
        unreadable,
        lower,
        levels(list(spread(said, MEASURED)), speaks) if lower else (),
        () if user else tuple(repeating(fields, n, {*texts, label or ""})),
        whole_spans + turn_spans,
        turn_spans > 0,
    )


def _known(senders: Sequence[str | None]) -> int | None:
    """How many users the format itself names, as mail does its senders; None where it says nothing of most documents."""
    named = [each for each in senders if each is not None]
    return len(set(named)) if named and len(named) >= 0.9 * len(senders) else None
