"""The ledger: one line for every training step that happened, none of which is ever taken back.

Lines (ledger_lines.py) are sealed one by another, so no line can be changed, dropped or moved without changing every later
one, and the last hash stands for the whole file. Lines are written as the step ends. A process killed in the middle of a
write leaves a torn last line: resuming drops it, verifying refuses it.

A run that goes on from a checkpoint finds lines after it. Steps done again with the same release are these lines
(:meth:`Ledger.repeat`). Where that cannot be, a mark says from which line the run goes on (:meth:`Ledger.go_on`): the steps
since are *lost* to the model, but they happened, so they stay and are paid like all others.
"""

from __future__ import annotations

import os
from array import array
from collections import Counter, deque
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import orjson

from taciturn.errors import DataError, GuaranteeError, MismatchError, UsageError
from taciturn.privacy import limits
from taciturn.privacy.accounting.events import Event, NonPrivate
from taciturn.privacy.certificates.ledger_lines import GENESIS, Entry, Line, Mark, checked, entries, sealed

__all__ = ["GENESIS", "Entry", "Ledger", "Mark", "entries"]


class Ledger:
    """An open ledger: counts in memory, lines on disk. Use :meth:`create`, :meth:`resume` or :meth:`read`.

    digest: the last hash. branch: the hash of the last mark that a run went on from elsewhere. ended: whether it is over.
    """

    def __init__(self, path: Path, file: BinaryIO | None) -> None:
        self.path = path
        self.digest = self.branch = GENESIS
        self.ended = False
        self._file = file
        self._owed = False  # a noised step is not yet forced onto the disk
        self._counts: Counter[tuple[str, Event]] = Counter()
        self._kinds: list[tuple[str, Event]] = []  # phase and event, in the order of appearance
        self._kind: dict[tuple[str, Event], int] = {}
        # Of each line its step and the number of its kind (-1 for a mark); arrays, as there may be millions of lines.
        self._steps, self._which = array("q"), array("i")
        # After so many lines: the last line that the run's state holds; before it, that of the line.
        self._heads = array("q", [-1])
        self._at: tuple[int, str] | None = None  # where a resumed run stands, while there are lines after it
        self._tail: deque[Entry] = deque()

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
        for line in entries(path):
            ledger._note(line)
        return ledger

    @staticmethod
    def resume(path: str | os.PathLike[str], at: tuple[int, str] | None = None) -> Ledger:
        """The ledger of an interrupted run, open for appending; a torn last line is cut off.

        at: (lines, digest after them) that the state a run goes on from was saved with; None for all there are.
        Raises DataError when lines are missing or the run has ended, MismatchError when they are others.
        """
        ledger, whole, later = Ledger(Path(path), None), 0, dict[int, Entry]()
        lines, digest = at or (0, GENESIS)
        found = GENESIS
        for line, end in checked(ledger.path, tolerate_torn=True):
            ledger._note(line)
            whole = end
            if line.n + 1 == lines:
                found = line.hash
            elif line.n >= lines and isinstance(line, Entry) and at is not None:
                later[line.n] = line
        if len(ledger) < lines:
            raise DataError(
                f"{ledger.path.name} has {len(ledger)} lines, and the checkpoint was saved after {lines}: steps that were "
                "done are missing, so nobody can say what was spent; put the ledger back, or train into a new folder"
            )
        if found != digest:
            raise MismatchError(
                f"{ledger.path.name}: line {lines} is not the one that the checkpoint was saved after; put back the ledger "
                "that belongs to it, or train into a new folder"
            )
        if ledger.ended:
            raise DataError(
                f"{ledger.path}: this run has ended, and an ended run does not go on; train into a new folder"
            )
        if at is not None:
            ledger._stand(lines, digest, later)
        ledger._file = ledger.path.open("r+b")
        ledger._file.truncate(whole)
        ledger._file.seek(whole)
        return ledger

    def _stand(self, lines: int, digest: str, later: dict[int, Entry]) -> None:
        head = self._heads[-1]
        while head >= lines:
            self._tail.appendleft(later[head])
            head = self._heads[head]
        if head != self._heads[lines]:
            self._tail.clear()  # what was saved is of steps that are lost already
        self._at = (lines, digest) if self._heads[-1] != self._heads[lines] else None

    @property
    def position(self) -> tuple[int, str]:
        """(lines, digest after them) that the run's state belongs to."""
        return self._at or (len(self), self.digest)

    @property
    def ahead(self) -> bool:
        """Whether there are steps after the run's state: they are repeated, or lost by :meth:`go_on`."""
        return self._at is not None

    def repeat(self, step: int, phase: str, event: Event, release: str | None) -> bool:
        """Whether this is the next of the steps that are there already, with the same release; it then is that step."""
        if not self._tail:
            return False
        found = self._tail[0]
        if (found.step, found.phase, found.event, found.release) != (step, phase, event, release):
            return False
        self._tail.popleft()
        self._at = (found.n + 1, found.hash) if self._tail else None
        return True

    def go_on(self) -> None:
        """Mark that the run goes on from its state, and that the steps after it are lost; on the disk before returning."""
        if self._at is not None:
            self._write({"n": len(self), "from": self._at[0], "prev": self.digest})
            self._tail.clear()
            self._at = None
            self.sync()

    def append(self, step: int, phase: str, event: Event, release: str | None = None) -> None:
        """Add one step and hand it to the operating system before returning."""
        if self._at is not None:
            raise UsageError(f"ledger: there are steps after line {self._at[0]}; repeat them, or go on without them")
        body = {"n": len(self), "step": step, "phase": phase, "event": event.to_json(), "prev": self.digest}
        if step <= self._last_step():
            raise UsageError(f"ledger: step {step} comes after step {self._last_step()}")
        self._write(body if release is None else body | {"release": release}, event)
        self._owed |= not isinstance(event, NonPrivate)

    def end(self) -> None:
        """Add the last line, after which there is none; on the disk before returning."""
        if self._at is not None:
            raise UsageError(f"ledger: there are steps after line {self._at[0]}; a run ends with the last of them")
        self._write({"n": len(self), "end": True, "prev": self.digest})
        self.sync()

    def by_phase(self) -> dict[str, dict[Event, int]]:
        """How often each event happened in each phase, lost steps included: what is paid."""
        return {name: self.counts(name) for name in dict.fromkeys(name for name, _ in self._counts)}

    def counts(self, phase: str | None = None) -> dict[Event, int]:
        """How often each event happened, lost steps included, in one phase or in all."""
        return _of(self._counts, phase)

    def done(self, phase: str | None = None) -> dict[Event, int]:
        """How often each event is in the run's state, in one phase or in all: what a plan is compared with."""
        return _of(self._done(), phase)

    def lost(self, phase: str | None = None) -> dict[Event, int]:
        """How often each event happened in steps that the run went on without, in one phase or in all."""
        return _of(self._counts - self._done(), phase)

    def phases(self) -> dict[str, int]:
        """Number of steps in each phase, lost ones included."""
        return {name: sum(counts.values()) for name, counts in self.by_phase().items()}

    def summary(self) -> list[dict[str, Any]]:
        """Counts by phase and event as plain JSON, sorted: steps, and how many of them are lost."""
        done = self._done()
        rows = [
            {"phase": p, "event": e.to_json(), "steps": n, "lost": n - done[p, e]} for (p, e), n in self._counts.items()
        ]
        return sorted(rows, key=lambda row: orjson.dumps(row, option=orjson.OPT_SORT_KEYS))

    def __len__(self) -> int:
        return len(self._steps)

    def settle(self) -> None:
        """Force noised steps onto the disk, if any are not yet: before a number that depends on them is shown."""
        if self._owed:
            self.sync()

    def sync(self) -> None:
        """Force what was appended onto the disk; a checkpoint relies on it."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._owed = False

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

    def _write(self, body: dict[str, Any], event: Event | None = None) -> None:
        if self._file is None:
            raise UsageError("this ledger was opened for reading; Ledger.resume(path) opens it for appending")
        if self.ended:
            raise UsageError("ledger: the run has ended; nothing follows its last line")
        text, seal = sealed(body)
        self._file.write(text)
        self._file.flush()
        if event is not None:
            self._note(Entry(body["n"], body["step"], body["phase"], event, self.digest, seal, body.get("release")))
        else:
            self._note(Mark(body["n"], body.get("from"), self.digest, seal))

    def _note(self, line: Line) -> None:
        if isinstance(line, Entry):
            if line.step <= self._last_step():
                raise GuaranteeError(
                    f"{self.path.name} line {line.n + 1}: step {line.step} comes after step {self._last_step()}"
                )
            kind = (line.phase, line.event)
            self._counts[kind] += 1
            if (number := self._kind.setdefault(kind, len(self._kinds))) == len(self._kinds):
                self._kinds.append(kind)
                if len(self._kinds) > limits.KINDS:
                    raise GuaranteeError(f"{self.path.name}: more than {limits.KINDS} kinds of steps, which no run has")
            self._steps.append(line.step)
            self._which.append(number)
            self._heads.append(line.n)
        else:
            self._steps.append(-1)
            self._which.append(-1)
            self._heads.append(self._heads[-1 if line.start is None else line.start])
            self.ended = line.start is None
            self.branch = line.hash
        self.digest = line.hash

    def _last_step(self) -> int:
        return self._steps[self._heads[-1]] if self._heads[-1] >= 0 else -1

    def _done(self) -> Counter[tuple[str, Event]]:
        found: Counter[tuple[str, Event]] = Counter()
        head = self._heads[-1]
        while head >= 0:
            found[self._kinds[self._which[head]]] += 1
            head = self._heads[head]
        return found


def _of(counts: Counter[tuple[str, Event]], phase: str | None) -> dict[Event, int]:
    total: Counter[Event] = Counter()
    for (name, event), count in counts.items():
        if phase is None or name == phase:
            total[event] += count
    return dict(total)
