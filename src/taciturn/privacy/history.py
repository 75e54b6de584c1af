"""The runs made on one screened corpus, and what they spend together.

    runs.jsonl in the corpus's folder, mode 0600      one line when a run begins, with all that its plan may spend,
                                                      and one when it ends, with what its ledger holds; never text

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
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from taciturn.errors import DataError, GuaranteeError
from taciturn.privacy.accountant import accountant_name, compose
from taciturn.privacy.claims import Phases
from taciturn.privacy.events import FREE, Event, NonPrivate, PoissonGaussian, Relation, from_json
from taciturn.privacy.evidence import Evidence
from taciturn.privacy.guarantee import Assumption, Guarantee, Notion
from taciturn.privacy.statements import DETECTED, PRIVATE_RECORD, RECORD, SECRET

RUNS = "runs.jsonl"
USER = "whether one user's records were there"
THEOREM = "composition of dominating pairs (guarantees.md §1)"
EACH = Assumption("what the certificate of each of these runs assumes holds", enforced=False)

_MASKED: frozenset[str] = frozenset({"redacted", "removed"})


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
        if types != (str, int, bool) or made.steps < 0 or len(value) != 4:
            raise DataError("other runs: expected a unit, an event, a number of steps ≥ 0 and whether it was seeded")
        return made


class Line(BaseModel):
    """One line of runs.jsonl. phases: (phase, unit, event, steps); key: digest of the plan, which a salt makes unique."""

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


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run as the corpus remembers it: its last line, and what it paid (a run that never ended: all it may have)."""

    last: Line
    paid: tuple[Paid, ...]

    @property
    def noised(self) -> int:
        """Steps with noise."""
        return sum(each.steps for each in self.paid if not isinstance(each.event, NonPrivate))


def append(folder: Path, line: Line) -> None:
    """Add a line to the history of the corpus in ``folder``. Raises OSError where it cannot be written."""
    data = orjson.dumps(line.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS) + b"\n"
    descriptor = os.open(folder / RUNS, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            data = b"\n" + data  # a line that was torn by a full disk stays one bad line
        file.write(data)
        os.fsync(descriptor)


def read(folder: Path) -> list[Recorded]:
    """The runs on the corpus in ``folder``, oldest first; none if it has no history. DataError names a line that is none."""
    try:
        content = (folder / RUNS).read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataError(f"{RUNS}: cannot be read ({error.strerror})") from error
    runs: dict[str, list[Line]] = {}
    for number, text in enumerate(content.splitlines(), 1):
        try:
            line = Line.model_validate_json(text)
        except ValidationError as error:
            raise DataError(f"{RUNS} line {number}: not a run as taciturn writes it; the history is damaged") from error
        runs.setdefault(line.key, []).append(line)
    return [_settled(lines) for lines in runs.values()]


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


def own(plan: Mapping[str, Any], phases: Phases, seeded: bool) -> list[Paid]:
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


def together(paid: Sequence[Paid], delta: float) -> list[Guarantee]:
    """What all these steps cost at ``delta``, one statement a relation.

    A record that becomes another changes what one unit adds, whatever of record, residual or user is drawn; a record more or
    less is a unit more or less only where records are drawn, a user only where users are. Other steps do not compose with
    these here: the statement is then ``none`` and its reason lists them. Steps without noise count as in a certificate.
    """
    paid = [each for each in paid if each.steps]
    plain = {part for each in paid if isinstance(each.event, NonPrivate) for part in each.event.reads}
    units = {each.unit for each in paid if not isinstance(each.event, NonPrivate)}
    made = [_total("confidentiality", SECRET, "substitution", paid, {"record", "residual", "user"}, FREE, delta)]
    if plain & _MASKED:  # for a secret that the policy detects, redacted text is the same in both worlds
        made.append(
            _total("sdp", DETECTED, "substitution", paid, {"record", "residual", "user"}, FREE | _MASKED, delta)
        )
    one = PRIVATE_RECORD if plain else RECORD
    made.append(_total("dp", one, "add-remove", paid, {"record"}, frozenset({"public"}), delta))
    if "user" in units:
        made.append(_total("user-dp", USER, "add-remove", paid, {"user"}, frozenset(), delta))
    return made


def _total(
    notion: Notion,
    unit: str,
    relation: Relation,
    paid: Sequence[Paid],
    composing: set[str],
    free: frozenset[str],
    delta: float,
) -> Guarantee:
    counts: dict[Event, int] = {}
    refused: list[str] = []
    void: list[str] = []
    for each in paid:
        if isinstance(each.event, NonPrivate):
            if not set(each.event.reads) <= free:
                void.append(f"{each.steps} steps without noise read {', '.join(each.event.reads)}")
            continue
        if each.seeded:
            void.append("noise or sampling coins of a run came from a stored seed")
        if each.unit not in composing or not isinstance(each.event, PoissonGaussian):
            kind = str(each.event.to_json()["event"])
            refused.append(f"{each.steps} steps over units of the kind {each.unit} ({kind}) do not compose with it")
        else:
            counts[each.event] = counts.get(each.event, 0) + each.steps
    reasons = list(dict.fromkeys([*void, *refused]))
    if reasons:
        return Guarantee(
            notion, unit, relation, float("inf"), delta, "none", THEOREM, accountant_name(), reason="; ".join(reasons)
        )  # fmt: skip
    epsilon = compose(counts, relation).epsilon(delta)
    return Guarantee(notion, unit, relation, epsilon, delta, "conditional", THEOREM, accountant_name(), (EACH,))


def beside(plan: Mapping[str, Any], phases: Phases, evidence: Evidence, delta: float) -> dict[str, Any]:
    """A certificate's ``other_runs``: how many are known, what they and this one spend together, and a sentence."""
    alone = "Every guarantee here is about this run alone"
    known = evidence.other_runs
    if known is None:
        words = f"{alone}; whether other runs were made on the same corpus is not known."
        return {"known": None, "together": [], "words": words}
    if not known:
        return {"known": 0, "together": [], "words": f"{alone}; no other run on the same corpus is recorded."}
    others = [Paid.from_json(each) for each in evidence.other_steps]
    total = together(added([*own(plan, phases, evidence.seeded_noise), *others]), delta)
    runs = "1 other run on the same corpus is" if known == 1 else f"{known} other runs on the same corpus are"
    spent = "; ".join(each.label() for each in total)
    words = (
        f"{alone}; {runs} recorded (such as those that settings were tried in) and not counted in it. Together all "
        f"{known + 1} spend: {spent}."
    )
    return {"known": known, "together": [each.to_json() for each in total], "words": words}
