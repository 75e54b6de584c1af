"""The runs made on one screened corpus, as it remembers them; what they spend is in composed_runs.py.

    runs.jsonl in the corpus's folder, mode 0600      one line when a run begins or goes on, with where it stands and all
                                                      that its plan may spend, and one when it ends, with what its
                                                      ledger holds; never text;
                                                      before them, perhaps, how many runs were drawn to choose from

A run that was killed has only its first line, so it counts as if it had run to its end: what is said of all runs together is
never too small.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from taciturn.errors import DataError, GuaranteeError
from taciturn.privacy import limits
from taciturn.privacy.accounting.event_files import from_json
from taciturn.privacy.accounting.events import Event, NonPrivate, Relation
from taciturn.privacy.certificates.ledger_lines import GENESIS
from taciturn.privacy.guarantees.claims import Phases

RUNS = "runs.jsonl"


@dataclass(frozen=True, slots=True)
class Paid:
    """``steps`` of one event over units of one kind (Phase.unit). seeded: its noise came from a stored seed."""

    unit: str
    event: Event
    steps: int
    seeded: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"unit": self.unit, "event": self.event.to_json(), "steps": self.steps, "seeded": self.seeded}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Paid:
        """Inverse of :meth:`to_json`; DataError on anything else."""
        try:
            made = Paid(value["unit"], from_json(value["event"]), value["steps"], value["seeded"])
        except (KeyError, TypeError, GuaranteeError) as error:
            raise DataError(f"other runs: these are not steps as taciturn writes them ({error})") from error
        types = (type(made.unit), type(made.steps), type(made.seeded))
        if types != (str, int, bool) or not 0 <= made.steps <= limits.STEPS or len(value) != 4:
            raise DataError(
                "other runs: expected a unit, an event, a number of steps from 0 to 10^9 and whether it was seeded"
            )
        return made


class Line(BaseModel):
    """One line of runs.jsonl. phases: (phase, unit, event, steps), lost ones included; key: digest of the plan, which a salt
    makes unique. start: after how many steps of the plan this start goes on. ledger: how many lines there were, and the
    digest after them. lost: how many noised steps were done and lost."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    key: str
    state: Literal["begun", "finished", "stopped"]
    date: str
    path: str
    mechanism: str
    relation: Relation
    seeded: bool
    phases: tuple[tuple[str, str, dict[str, Any], int], ...] = Field(default=())
    start: int = 0
    ledger: tuple[int, str] = (0, GENESIS)
    lost: int = 0


class Drawn(BaseModel):
    """How many runs were drawn to choose the best from, and the law (selection_law.py). The number is never published."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    drawn: dict[str, str | float]
    runs: int = Field(ge=0)
    date: str


_LINES: TypeAdapter[Line | Drawn] = TypeAdapter(Line | Drawn)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run as the corpus remembers it: its last line, and what it paid (a run that never ended: all it may have)."""

    last: Line
    paid: tuple[Paid, ...]

    @property
    def noised(self) -> int:
        """Steps with noise."""
        return sum(each.steps for each in self.paid if not isinstance(each.event, NonPrivate))

    @property
    def alike(self) -> tuple[Any, ...]:
        """Equal for runs that cost the same: mechanism, noised steps, what was read plainly (not how often)."""
        noised = frozenset(
            (p.unit, p.event, p.steps, p.seeded) for p in self.paid if not isinstance(p.event, NonPrivate)
        )
        plain = frozenset(
            part for p in self.paid if isinstance(p.event, NonPrivate) and p.steps for part in p.event.reads
        )
        return self.last.mechanism, self.last.relation, noised, plain


def append(folder: Path, line: Line | Drawn) -> None:
    """Add a line to the history of the corpus in ``folder``. Raises OSError where it cannot be written."""
    data = orjson.dumps(line.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS) + b"\n"
    descriptor = os.open(folder / RUNS, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            data = b"\n" + data  # a line that was torn by a full disk stays one bad line
        file.write(data)
        os.fsync(descriptor)


def read_history(folder: Path) -> list[Recorded]:
    """The runs on the corpus in ``folder``, oldest first; none if it has no history. DataError names a line that is none."""
    runs: dict[str, list[Line]] = {}
    for line in _lines(folder):
        if isinstance(line, Line):
            runs.setdefault(line.key, []).append(line)
    return [_settled(lines) for lines in runs.values()]


def lines_of(folder: Path, key: str) -> list[Line]:
    """What the corpus in ``folder`` remembers of one run, in order."""
    return [line for line in _lines(folder) if isinstance(line, Line) and line.key == key]


def drawn(folder: Path) -> Drawn | None:
    """The number of runs drawn for the corpus in ``folder``, None if there is none. DataError: after a run, or twice."""
    lines = _lines(folder)
    found = [(number, line) for number, line in enumerate(lines) if isinstance(line, Drawn)]
    if len(found) > 1 or any(number for number, _ in found):
        raise DataError(f"{RUNS}: a number of runs was drawn twice or after a run, so no law stands behind it")
    return found[0][1] if found else None


def _lines(folder: Path) -> list[Line | Drawn]:
    try:
        content = (folder / RUNS).read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataError(f"{RUNS}: cannot be read ({error.strerror})") from error
    lines = []
    for number, text in enumerate(content.splitlines(), 1):
        try:
            lines.append(_LINES.validate_json(text))
        except ValidationError as error:
            raise DataError(f"{RUNS} line {number}: not a run as taciturn writes it; the history is damaged") from error
    return lines


def _settled(lines: Sequence[Line]) -> Recorded:
    """A run that ended may have been resumed from an older checkpoint: of each event the largest count stands."""
    last = lines[-1]
    standing = [last] if last.state == "begun" else [line for line in lines if line.state != "begun"]
    most: dict[tuple[str, str, Event], int] = {}
    for line in standing:
        for phase, unit, event, steps in line.phases:
            kind = (phase, unit, from_json(event))
            most[kind] = max(most.get(kind, 0), steps)
    return Recorded(last, tuple(Paid(unit, event, steps, last.seeded) for (_, unit, event), steps in most.items()))


def paid_by_run(plan: Mapping[str, Any], phases: Phases, seeded: bool) -> list[Paid]:
    """What one run paid, from its plan.json and its ledger."""
    units = {phase["name"]: phase.get("unit", "record") for phase in plan["phases"]}
    return [
        Paid(units.get(name, "record"), event, steps, seeded)
        for name, counts in phases.items()
        for event, steps in counts.items()
    ]


def added(paid: Iterable[Paid]) -> list[Paid]:
    """Equal kinds of steps added up, in an order that does not depend on the input's."""
    total: dict[bytes, Paid] = {}
    for each in paid:
        key = orjson.dumps(each.to_json() | {"steps": 0}, option=orjson.OPT_SORT_KEYS)
        before = total[key].steps if key in total else 0
        total[key] = Paid(each.unit, each.event, before + each.steps, each.seeded)
    return [total[key] for key in sorted(total)]
