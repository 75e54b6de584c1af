"""What reading a corpus yields beside documents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


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


class LeftOut(BadRecord):
    """This record is no part of the corpus, and is counted. what: the kind of thing it is."""

    def __init__(self, what: str) -> None:
        super().__init__(f"left out: {what}")
        self.what = what
