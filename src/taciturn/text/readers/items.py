"""What reading a corpus yields beside documents, and the options of reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from taciturn.errors import UsageError, nearest

Format = Literal[
    "auto", "text", "lines", "jsonl", "json", "csv", "tsv", "parquet", "datasets",
    "html", "eml", "mbox", "vcard", "whatsapp", "slack",
]  # fmt: skip
"""text, html, eml: one document per file. lines: one per line. json: a list of objects. datasets: saved by ``save_to_disk``.
mbox, vcard: one per message or card. whatsapp: a chat is one dialogue. slack: one dialogue per channel and day."""

CHATS: Mapping[str, tuple[str, ...]] = {
    "openai": ("messages",),
    "sharegpt": ("conversations",),
    "pairs": ("prompt", "completion"),
    "alpaca": ("instruction", "input", "output"),
    "turns": ("turns",),
}
"""How conversations may be stored, and the fields each form is read from."""

TURN_TEXT = ("text", "utterance", "content", "value")
TURN_SPEAKER = ("speaker", "role", "from")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files become documents.

    format: see ``Format``; "auto" goes by the file's extension (after .gz, .zst). text, user, id, turns, spans: names of
    fields; a dotted name reaches into nested objects ("body.text"). A row without the text field but with a list of turns
    is a dialogue. id: without one, a dialogue's "dialogue_id" or "<file>:<number>" is used.
    chat: rows are conversations, stored as CHATS says; fields of other names follow a colon ("pairs:question,answer").
    text_pair: field of a second text; a record is then the pair. label: field of a label, which nothing redacts.
    gold: "secret" takes only annotations marked ``"secret": true``; "annotated" also those without such a mark.
    encoding_errors: "replace" keeps undecodable bytes as U+FFFD and makes the document private; "strict" quarantines it.
    max_record_bytes: a longer line, row or text file is quarantined, never cut. duplicate_ids: "suffix" appends ~2, ~3, ...

    Raises UsageError for a value outside these.
    """

    format: Format = "auto"
    text: str = "text"
    user: str | None = None
    id: str | None = None
    turns: str = "turns"
    spans: str = "spans"
    chat: str | None = None
    text_pair: str | None = None
    label: str | None = None
    gold: Literal["annotated", "secret"] = "annotated"
    encoding_errors: Literal["strict", "replace"] = "strict"
    max_record_bytes: int = 16 * 2**20
    duplicate_ids: Literal["error", "suffix"] = "error"

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("format", self.format, get_args(Format)),
            ("gold", self.gold, ("annotated", "secret")),
            ("encoding_errors", self.encoding_errors, ("strict", "replace")),
            ("duplicate_ids", self.duplicate_ids, ("error", "suffix")),
        ):
            if value not in choices:
                raise UsageError(f"{name} cannot be {value!r}; {nearest(str(value), choices)}")
        if self.max_record_bytes < 1:
            raise UsageError(f"max_record_bytes must be at least 1, got {self.max_record_bytes}")
        for name in ("text", "turns", "spans"):
            if not getattr(self, name):
                raise UsageError(f"{name} needs the name of a field, got an empty string")
        if self.chat is not None:
            kind, fields = self.chat_fields
            if kind not in CHATS:
                raise UsageError(f"chat cannot be {kind!r}; {nearest(kind, CHATS)}")
            if len(fields) != len(CHATS[kind]) or not all(fields):
                raise UsageError(
                    f"chat={kind!r} reads {len(CHATS[kind])} fields ({', '.join(CHATS[kind])}), not {len(fields)}"
                )
            if self.text_pair is not None:
                raise UsageError("a record is a conversation (chat) or a pair of texts (text_pair), not both")

    @property
    def chat_fields(self) -> tuple[str, tuple[str, ...]]:
        """The form of conversations and the fields to read it from; ("", ()) where rows are not conversations."""
        kind, _, fields = (self.chat or "").partition(":")
        return kind, tuple(fields.split(",")) if fields else CHATS.get(kind, ())

    @property
    def structured(self) -> bool:
        """Whether a record is more than a text, and so always a whole document."""
        return self.chat is not None or self.text_pair is not None

    @staticmethod
    def of(options: Mapping[str, Any]) -> ReadOptions:
        """From keyword arguments; raises UsageError that names the nearest option when one is unknown."""
        known = [f.name for f in fields(ReadOptions)]
        for name in options:
            if name not in known:
                raise UsageError(f"unknown read option {name!r}; {nearest(name, known)}")
        return ReadOptions(**options)


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A record that could not be read. location: "line 12", "row 3", "byte 1042". reason never quotes the text."""

    source: str
    location: str
    reason: str


@dataclass(frozen=True, slots=True)
class Blank:
    """What was skipped, and is counted: a line or record with nothing but whitespace, or a part that holds no text.

    what: "" for white space, else the kind of part ("attachment (image)"), never a word of it.
    """

    source: str
    location: str
    what: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One record before its fields are looked up. number counts lines or rows of its file from 1.

    id, user: what the format itself says, where options name no field for them.
    """

    number: int
    location: str
    value: Any = field(repr=False)
    private_because: str | None = None
    id: str | None = None
    user: str | None = None


class BadRecord(Exception):
    """This record goes to quarantine, for this reason; ``location`` where it is narrower than the record's."""

    def __init__(self, reason: str, location: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.location = reason, location


class MissingField(BadRecord):
    """A named field is not in the record. names: the fields that are."""

    def __init__(self, field: str, names: Iterable[str]) -> None:
        super().__init__(f"field '{field}' is missing")
        self.field, self.names = field, frozenset(names)
