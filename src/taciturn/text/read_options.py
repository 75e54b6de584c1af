"""How a corpus is to be read: the options of the readers, of every command that reads, and of a project's ``[read]``."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, get_args

from annotated_types import Ge

from taciturn.errors import UsageError, nearest

Format = Literal[
    "auto", "text", "lines", "jsonl", "json", "csv", "tsv", "parquet", "datasets",
    "html", "eml", "mbox", "vcard", "whatsapp", "slack",
    "docx", "xlsx", "pptx", "pdf", "rtf", "ipynb", "xml", "subtitles", "msg", "spacy",
]  # fmt: skip
"""text, html, xml, eml, msg, docx, pptx, pdf, rtf, ipynb, subtitles: one document per file; xlsx: per sheet or row.
lines: one per line. json: a list of objects. datasets: saved by ``save_to_disk``. mbox, vcard: one per message or card.
spacy: one per text of a DocBin. whatsapp: a chat is one dialogue. slack: one dialogue per channel and day."""

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
    fields; a dotted name reaches into nested objects ("body.text"). text may be several ("subject,body"), joined by blank
    lines. A row without the text field but with a list of turns is a dialogue; where user is who speaks in it ("speaker"),
    each turn is a document of its own. id: without one, a dialogue's "dialogue_id" or "<file>:<number>" is used.
    chat: rows are conversations, stored as CHATS says; fields of other names follow a colon ("pairs:question,answer").
    text_pair: field of a second text; a record is then the pair. label: field of a label, which nothing redacts.
    gold: "secret" takes only annotations marked ``"secret": true``; "annotated" also those without such a mark.
    encoding: of text files, by a name that Python knows; None is UTF-8, or UTF-16 where a byte order mark says so.
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
    encoding: str | None = None
    encoding_errors: Literal["strict", "replace"] = "strict"
    max_record_bytes: Annotated[int, Ge(1)] = 16 * 2**20
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
        if self.encoding is not None and not _is_encoding(self.encoding):
            raise UsageError(
                f"encoding {self.encoding!r} is none that Python knows; for instance cp1252, utf-16, shift_jis"
            )
        if self.max_record_bytes < 1:
            raise UsageError(f"max_record_bytes must be at least 1, got {self.max_record_bytes}")
        for name in ("text", "turns", "spans"):
            if not getattr(self, name):
                raise UsageError(f"{name} needs the name of a field, got an empty string")
        if not all(self.texts):
            raise UsageError(f"text names fields apart by commas ('subject,body'), got {self.text!r}")
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
    def texts(self) -> tuple[str, ...]:
        """The fields that make up the text."""
        return tuple(self.text.split(","))

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


def _is_encoding(name: str) -> bool:
    """Whether text can be stored in it; Python's other codecs pack or cipher bytes."""
    try:
        return codecs.lookup(name)._is_text_encoding and name not in ("idna", "punycode", "undefined")
    except (LookupError, ValueError):
        return False
