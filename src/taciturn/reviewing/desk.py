"""One reviewer's labels file while it is worked on. The file is the only state: every change is in it before it is answered.

The file is written whole, beside itself, and renamed (mode 0600), so that a kill at any moment leaves the labels of before
or of after the last change. One process holds it at a time.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field

from taciturn.errors import DataError, MismatchError, UsageError
from taciturn.reviewing import edits
from taciturn.screening.labels import LabelSpan, Line, read, write
from taciturn.text.locks import hold

Status = Literal["todo", "done", "skip"]


class _Change(BaseModel):
    """revision: of the record as the page shows it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    revision: str


class Mark(_Change):
    """start, end: of a selection (or a caret, where that will do), in UTF-16 units."""

    op: Literal["add", "remove", "rename"]
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    kind: str = "secret"


class Judge(_Change):
    """What the reviewer says of the whole record: looked at ("done"), unsure ("skip"), or back to "todo"."""

    op: Literal["status"]
    status: Status


class Undo(_Change):
    """Take back the last change. changes: how many were made, as the page shows it. revision: not looked at."""

    op: Literal["undo"]
    changes: int


Change = Annotated[Mark | Judge | Undo, Field(discriminator="op")]


class Stale(MismatchError):
    """The page showed another state of the record than the file has."""


@dataclass(slots=True)
class Desk:
    """path: the labels file. lines: as the file has them. kinds: what a mark may be called."""

    path: Path
    lines: list[Line] = field(repr=False)
    kinds: tuple[str, ...]
    _seen: tuple[int, int, int] = (0, 0, 0)
    _before: list[tuple[int, Line]] = field(default_factory=list, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def open(cls, path: Path, kinds: tuple[str, ...]) -> Desk:
        """From a labels file; kinds that stand in it may be used too."""
        lines = read(path)
        path.chmod(0o600)
        found = (s.label for line in lines for s in line.spans)
        return cls(path, lines, tuple(dict.fromkeys([*kinds, *sorted(set(found))])), _stamp(path))

    def counts(self) -> dict[Status, int]:
        """Lines of each status."""
        found = Counter(line.label_status for line in self.lines)
        return {"done": found["done"], "skip": found["skip"], "todo": found["todo"]}

    def next_todo(self, after: int = -1) -> int | None:
        """The first record nobody looked at, from the one after ``after`` round to it; None if there is none."""
        n = len(self.lines)
        places = ((after + 1 + step) % n for step in range(n))
        return next((at for at in places if self.lines[at].label_status == "todo"), None)

    @property
    def changes(self) -> int:
        """How many changes of this review can be taken back."""
        return len(self._before)

    def undo(self, changes: int) -> int:
        """Take back the last change and write the file; the number of its record. Raises Stale unless it was change number
        ``changes``, DataError if there is none, MismatchError if something else wrote the file."""
        with self._lock:
            if not self._before:
                raise DataError("there is nothing to undo: changes of an earlier review stay")
            if changes != len(self._before):
                raise Stale("something was changed in another window; it is shown as it is now")
            at, line = self._before[-1]
            self._write(at, line)
            self._before.pop()
            return at

    def change(self, at: int, change: Mark | Judge, start: int = 0, end: int = 0) -> Line:
        """Apply a change to line ``at`` and write the file. start, end: of a ``Mark``, in code points.

        Raises Stale if the page was not up to date, DataError for a selection that marks nothing or a kind that is unknown,
        MismatchError if something else wrote the file.
        """
        with self._lock:
            line = self.lines[at]
            if change.revision != revision(line):
                raise Stale("this record was changed in another window; it is shown as it is now")
            made = line.model_copy(update=self._update(line, change, start, end))
            if made != line:
                self._write(at, made)
                self._before.append((at, line))
            return made

    def _write(self, at: int, made: Line) -> None:
        if _stamp(self.path) != self._seen:
            raise MismatchError(
                f"{self.path.name} was changed by something else while it was reviewed; stop taciturn review "
                "and start it again: it goes on from the file as it is"
            )
        lines = [*self.lines[:at], made, *self.lines[at + 1 :]]
        write(self.path, lines)
        self.lines, self._seen = lines, _stamp(self.path)

    def _update(self, line: Line, change: Mark | Judge, start: int, end: int) -> dict[str, object]:
        if isinstance(change, Judge):
            return {"label_status": change.status}
        if change.kind not in self.kinds:
            raise DataError("this kind of secret is unknown; name the kinds at the start with --kinds")
        spans: tuple[LabelSpan, ...]
        if change.op == "add":
            spans = edits.add(line.spans, line.text, start, end, change.kind)
        elif change.op == "remove":
            spans = edits.remove(line.spans, start, end)
        else:
            spans = edits.rename(line.spans, start, end, change.kind)
        return {"spans": spans}


def revision(line: Line) -> str:
    """Of a line's labels; changes whenever they do."""
    said = [line.label_status, [(s.start, s.end, s.label) for s in line.spans]]
    return hashlib.blake2b(orjson.dumps(said), digest_size=8).hexdigest()


@contextmanager
def alone(path: Path, wait: bool = False) -> Iterator[None]:
    """Hold ``path`` for this process, until it ends in whatever way. Raises UsageError if another one does, or waits."""
    busy = UsageError(
        f"another taciturn review holds {path.name}; stop it, or give each person a file with --reviewer NAME"
    )
    descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        hold(descriptor, path.parent, lambda: busy, wait=wait)
        yield
    finally:
        os.close(descriptor)


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size
