"""A look at somebody's files: format, fields, users, language, sizes. Numbers and names of fields, never a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from taciturn.errors import DataError
from taciturn.project.language import language_of_texts, lower_case, spread
from taciturn.project.speaking import levels
from taciturn.text.read_options import TURN_TEXT, ReadOptions
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
TEXT_NAMES = (
    "text", "body", "content", "message", "utterance", "transcript", "note", "description", "comment", "review",
)  # fmt: skip
USER_NAMES = (
    "user", "user_id", "userid", "username", "author", "author_id", "sender", "from", "customer", "customer_id", "client",
    "client_id", "patient", "patient_id", "person", "employee", "account", "account_id", "email", "owner", "speaker",
    "customer_email", "customer_name", "user_email", "user_name", "sender_email", "sender_id", "from_email", "email_address",
    "contact", "contact_id", "member", "member_id", "subscriber", "requester", "requester_id", "agent", "agent_id",
    "agent_name", "operator",
)  # fmt: skip
ID_NAMES = ("id", "uuid", "guid", "document_id", "message_id", "ticket_id", "dialogue_id")
LABEL_NAMES = ("label", "labels", "category", "class", "intent", "topic", "sentiment")
_NAME = re.compile(r"[A-Za-z_][\w.\- ]{0,40}")


@dataclass(slots=True)
class Field:
    """What rows hold under a (dotted) name. rows: that have it; kinds: of JSON values; values: of short ones, to count."""

    rows: int = 0
    kinds: set[str] = field(default_factory=set)
    characters: int = 0
    words: int = 0
    values: set[Any] = field(default_factory=set, repr=False)

    def add(self, value: Any) -> None:
        self.rows += 1
        if isinstance(value, str):
            self.kinds.add("text")
            self.characters += len(value)
            self.words += len(value.split())
            self.values.add(value[:80])
        elif isinstance(value, bool) or value is None or not isinstance(value, int):
            self.kinds.add("list" if isinstance(value, list) else "other")
        else:
            self.kinds.add("whole number")
            self.values.add(value)


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
        for name, value in _flat(row) if fielded else ():
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


def _flat(value: Any, before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(dotted name, value) of an object and the objects in it."""
    if not isinstance(value, Mapping):
        return
    for name, each in value.items():
        path = f"{before}{name}"
        if isinstance(each, Mapping) and depth < 2:
            yield from _flat(each, f"{path}.", depth + 1)
        else:
            yield path, each


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
    chat = _chat(rows)
    texts = () if chat else tuple(_texts(fields, n))
    turns = not chat and not texts and "turns" in fields
    said = [_text(row, (texts[0] if texts else None) if fielded else "text") for fielded, row in found]
    characters = sum(map(len, said))
    speaks, lower = language_of_texts(said), lower_case(said)
    user = _named(fields, USER_NAMES, n, lambda f: len(f.values) > 1)
    label = _named(fields, LABEL_NAMES, n, lambda f: 2 <= len(f.values) <= min(50, n // 4) and f.words <= 3 * f.rows)
    whole_spans, turn_spans = _annotations(rows)
    return Look(
        formats,
        texts,
        user if user not in texts[:1] else None,
        _named(fields, ID_NAMES, n, lambda f: len(f.values) == n and not f.kinds & {"list", "other"}),
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
        () if user else tuple(_repeating(fields, n, {*texts, label or ""})),
        whole_spans + turn_spans,
        turn_spans > 0,
    )


def _known(senders: Sequence[str | None]) -> int | None:
    """How many users the format itself names, as mail does its senders; None where it says nothing of most documents."""
    named = [each for each in senders if each is not None]
    return len(set(named)) if named and len(named) >= 0.9 * len(senders) else None


def _repeating(fields: Mapping[str, Field], n: int, others: Set[str]) -> Iterator[str]:
    """Fields that nearly every row has a short value under, of which there are many, and each comes more than once or twice:
    as people do. The most values first."""
    likely = {
        name: each
        for name, each in fields.items()
        if name not in others
        and _NAME.fullmatch(name)
        and each.rows >= 0.9 * n
        and each.kinds <= {"text", "whole number"}
        and each.words <= 3 * each.rows
        and 5 <= len(each.values) <= 0.6 * n
    }
    yield from sorted(likely, key=lambda name: (-len(likely[name].values), name))


def _annotations(rows: Sequence[Any]) -> tuple[int, int]:
    """Annotated spans of whole rows, and of their turns or messages, under the names that reading takes them from."""
    whole = inside = 0
    for row in rows:
        if not isinstance(row, Mapping):
            continue
        whole += _length(row.get("spans"))
        for name in ("turns", "messages", "conversations"):
            said = row.get(name)
            for each in said if isinstance(said, list) else ():
                inside += _length(each.get("spans")) if isinstance(each, Mapping) else 0
    return whole, inside


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0


def _texts(fields: Mapping[str, Field], n: int) -> Iterator[str]:
    """Fields that most rows have, with three words and more on average; usual names first, then the longest."""
    likely = {
        name: each
        for name, each in fields.items()
        if each.kinds == {"text"} and each.rows >= 0.5 * n and each.words >= 3 * each.rows and _NAME.fullmatch(name)
    }

    def rank(name: str) -> tuple[int, float]:
        last = name.rpartition(".")[2].lower()
        return (TEXT_NAMES.index(last) if last in TEXT_NAMES else len(TEXT_NAMES), -likely[name].characters)

    yield from sorted(likely, key=rank)


def _named(fields: Mapping[str, Field], wanted: Sequence[str], n: int, fits: Any) -> str | None:
    """The first of the usual names that nearly every row has a short value under."""
    for last in wanted:
        for name, each in fields.items():
            usual = name.rpartition(".")[2].lower() == last and _NAME.fullmatch(name)
            if usual and each.rows >= 0.9 * n and each.values and not each.kinds & {"list", "other"} and fits(each):
                return name
    return None


def _chat(rows: Sequence[Any]) -> str | None:
    """The form of conversations, if most rows have it."""

    def listed(row: Any, name: str, *keys: str) -> bool:
        value = row.get(name) if isinstance(row, Mapping) else None
        first = value[0] if isinstance(value, list) and value else None
        return isinstance(first, Mapping) and all(key in first for key in keys)

    def texts(row: Any, *keys: str) -> bool:
        return isinstance(row, Mapping) and all(isinstance(row.get(key), str) for key in keys)

    forms = {
        "openai": lambda row: listed(row, "messages", "role", "content"),
        "sharegpt": lambda row: listed(row, "conversations", "from", "value"),
        "alpaca": lambda row: texts(row, "instruction", "output"),
        "pairs": lambda row: texts(row, "prompt", "completion"),
    }
    for name, has in forms.items():
        if rows and sum(map(has, rows)) >= 0.9 * len(rows):
            return name
    return None


def _text(row: Any, name: str | None) -> str:
    """What the language is told from: the text field, or all texts of a conversation."""
    if name is not None:
        return " ".join(each for key, each in _flat(row) if key == name and isinstance(each, str))
    return " ".join(_strings(row))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        content = [each for key, each in value.items() if key in TURN_TEXT or isinstance(each, list)]
        for each in content or value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
