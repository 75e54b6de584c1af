"""The ledger: one line for every training step that happened, each sealed by a hash of all before it.

    {"event": {...}, "hash": "…", "n": 0, "phase": "private", "prev": "…", "step": 0}

``hash`` is SHA-256 over ``prev`` and the line without its hash, so no line can be changed, dropped or moved without
changing every later one, and the last hash stands for the whole file. Lines are written as the step ends. A process
killed in the middle of a write leaves a torn last line: resuming drops it, verifying refuses it.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import orjson

from taciturn.errors import DataError, GuaranteeError, UsageError
from taciturn.privacy import limits
from taciturn.privacy.events import Event, from_json
from taciturn.privacy.files import opened, too_deep

LINE_BYTES = 4096
GENESIS = hashlib.sha256(b"taciturn ledger 1").hexdigest()


@dataclass(frozen=True, slots=True)
class Entry:
    """One step: ``n`` counts lines from 0, ``step`` is the engine's own number, ``phase`` the plan's name for it."""

    n: int
    step: int
    phase: str
    event: Event
    prev: str
    hash: str


class Ledger:
    """An open ledger: counts in memory, lines on disk. Use :meth:`create`, :meth:`resume` or :meth:`read`."""

    def __init__(self, path: Path, file: BinaryIO | None) -> None:
        self.path = path
        self._file = file
        self._forget()

    def _forget(self) -> None:
        self.digest = GENESIS
        self._counts: Counter[tuple[str, Event]] = Counter()
        self._length = 0
        self._last_step = -1

    @staticmethod
    def create(path: str | os.PathLike[str]) -> Ledger:
        """A new, empty ledger. DataError if there already is one: a run's history is never overwritten."""
        path = Path(path)
        try:
            return Ledger(path, path.open("xb"))
        except FileExistsError as error:
            raise DataError(f"{path.name} already exists; resume the run or choose another folder") from error

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Ledger:
        """A finished ledger, every line checked. GuaranteeError names the first line that does not hold."""
        ledger = Ledger(Path(path), None)
        for entry in entries(path):
            ledger._note(entry)
        return ledger

    @staticmethod
    def resume(path: str | os.PathLike[str]) -> Ledger:
        """The ledger of an interrupted run, open for appending; a torn last line is cut off."""
        ledger = Ledger(Path(path), None)
        whole = 0
        for entry, end in _checked(Path(path), tolerate_torn=True):
            ledger._note(entry)
            whole = end
        ledger._file = ledger.path.open("r+b")
        ledger._file.truncate(whole)
        ledger._file.seek(whole)
        return ledger

    def append(self, step: int, phase: str, event: Event) -> None:
        """Add one step and hand it to the operating system before returning."""
        if self._file is None:
            raise UsageError("this ledger was opened for reading; Ledger.resume(path) opens it for appending")
        if step < self._last_step:
            raise UsageError(f"ledger: step {step} comes after step {self._last_step}")
        body = {"n": self._length, "step": step, "phase": phase, "event": event.to_json(), "prev": self.digest}
        seal = _seal(body)
        self._file.write(orjson.dumps({**body, "hash": seal}, option=orjson.OPT_SORT_KEYS) + b"\n")
        self._file.flush()
        self._note(Entry(self._length, step, phase, event, self.digest, seal))

    def truncate_to(self, n: int) -> None:
        """Forget every line from number ``n`` on: the steps a checkpoint does not hold were never released."""
        if self._file is None:
            raise UsageError("this ledger was opened for reading; Ledger.resume(path) opens it for truncating")
        if not 0 <= n <= self._length:
            raise DataError(f"ledger: cannot keep {n} lines, there are {self._length}; the checkpoint is newer than it")
        self._file.flush()
        self._forget()
        end = 0
        for entry, position in _checked(self.path, tolerate_torn=True):
            if entry.n >= n:
                break
            self._note(entry)
            end = position
        self._file.truncate(end)
        self._file.seek(end)

    def by_phase(self) -> dict[str, dict[Event, int]]:
        """How often each event happened in each phase."""
        return {name: self.counts(name) for name in dict.fromkeys(name for name, _ in self._counts)}

    def counts(self, phase: str | None = None) -> dict[Event, int]:
        """How often each event happened, in one phase or in all."""
        total: Counter[Event] = Counter()
        for (name, event), count in self._counts.items():
            if phase is None or name == phase:
                total[event] += count
        return dict(total)

    def phases(self) -> dict[str, int]:
        """Number of steps in each phase."""
        total: Counter[str] = Counter()
        for (name, _), count in self._counts.items():
            total[name] += count
        return dict(total)

    def summary(self) -> list[dict[str, Any]]:
        """Counts by phase and event as plain JSON, sorted."""
        rows = [{"phase": p, "event": e.to_json(), "steps": c} for (p, e), c in self._counts.items()]
        return sorted(rows, key=lambda row: orjson.dumps(row, option=orjson.OPT_SORT_KEYS))

    def __len__(self) -> int:
        return self._length

    def sync(self) -> None:
        """Force what was appended onto the disk; a checkpoint relies on it."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self.sync()
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _note(self, entry: Entry) -> None:
        self._counts[(entry.phase, entry.event)] += 1
        if len(self._counts) > limits.KINDS:
            raise GuaranteeError(f"{self.path.name}: more than {limits.KINDS} kinds of steps, which no run has")
        self._length += 1
        self._last_step = entry.step
        self.digest = entry.hash


def entries(path: str | os.PathLike[str]) -> Iterator[Entry]:
    """Every entry of a ledger file, checked as it is read."""
    for entry, _ in _checked(Path(path), tolerate_torn=False):
        yield entry


def _seal(body: dict[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _checked(path: Path, *, tolerate_torn: bool) -> Iterator[tuple[Entry, int]]:
    """Entries with the byte position after each."""
    digest, last_step, position = GENESIS, -1, 0
    known: dict[bytes, Event] = {}
    with opened(path) as file:
        for n, line in enumerate(iter(lambda: file.readline(LINE_BYTES), b"")):
            if not line.endswith(b"\n") and len(line) == LINE_BYTES:
                raise GuaranteeError(f"{path.name} line {n + 1}: longer than {LINE_BYTES} bytes, which no step is")
            if not line.endswith(b"\n"):
                if tolerate_torn:
                    return
                raise GuaranteeError(f"{path.name} line {n + 1}: torn in the middle; resume the run to repair it")
            entry = _entry(path.name, n, line, digest, known)
            if entry.step < last_step:
                raise GuaranteeError(f"{path.name} line {n + 1}: step {entry.step} comes after step {last_step}")
            digest, last_step, position = entry.hash, entry.step, position + len(line)
            yield entry, position


def _entry(name: str, n: int, line: bytes, digest: str, known: dict[bytes, Event]) -> Entry:
    def broken(why: str) -> GuaranteeError:
        return GuaranteeError(f"{name} line {n + 1}: {why}; the ledger was edited or damaged")

    try:
        body = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise broken("not JSON") from error
    if not isinstance(body, dict) or set(body) != {"n", "step", "phase", "event", "prev", "hash"} or too_deep(body, 4):
        raise broken("not a ledger entry")
    if orjson.dumps(body, option=orjson.OPT_SORT_KEYS) + b"\n" != line:
        raise broken("not written as taciturn writes it")
    seal = body.pop("hash")
    if type(body["n"]) is not int or body["n"] != n:
        raise broken(f"numbered {limits.short(body['n'])}, expected {n}")
    if body["prev"] != digest:
        raise broken("does not follow from the line before")
    if seal != _seal(body):
        raise broken("its hash does not match")
    step, phase = body["step"], body["phase"]
    if type(step) is not int or not 0 <= step <= limits.STEPS or not isinstance(phase, str) or len(phase) > 64:
        raise broken("step or phase is not valid")
    key = orjson.dumps(body["event"])
    if key not in known:
        try:
            known[key] = from_json(body["event"])
        except GuaranteeError as error:
            raise broken(str(error)) from error
        if len(known) > limits.KINDS:
            raise broken(f"more than {limits.KINDS} kinds of steps")
    return Entry(n, body["step"], body["phase"], known[key], body["prev"], seal)
