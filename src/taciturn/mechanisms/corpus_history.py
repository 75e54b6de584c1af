"""A screened corpus remembers the runs made on it (certificates/history.py); training never fails because it cannot."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from taciturn.errors import DataError, GuaranteeError, TaciturnError, UsageError
from taciturn.privacy.accounting.events import NonPrivate
from taciturn.privacy.certificates.digests import load_json
from taciturn.privacy.certificates.exported_model import LEDGER
from taciturn.privacy.certificates.history import RUNS, Drawn, Line, added, append, drawn, lines_of, read_history
from taciturn.privacy.certificates.ledger import GENESIS, Ledger
from taciturn.privacy.certificates.ledger_lines import digest_after
from taciturn.privacy.guarantees import selection_law
from taciturn.privacy.guarantees.claims import Phases
from taciturn.privacy.guarantees.claims import added as merged
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.private_selection import Runs
from taciturn.training.plan import Plan

if TYPE_CHECKING:
    from taciturn.training.state.checkpoint import Position

ENDED = (
    "An ended run does not go on: its noise key is destroyed, and other noise would be another release. Use its model, or "
    "train into a new folder, which spends its own ε"
)
logger = logging.getLogger("taciturn")


Begun = Callable[["Position", Ledger], None]


@contextmanager
def remembered(plan: Plan, corpus: Path | None, out: Path, leads: bool) -> Iterator[Begun]:
    """Yields a function that notes in the folder ``corpus`` where the run in ``out`` goes on from; how it ends is noted
    then. A corpus in memory has no folder and remembers nothing; of several processes the one that ``leads`` writes."""
    if corpus is None or not leads:
        yield lambda *_: None
        return
    stands: list[Position] = []

    def begun(at: Position, ledger: Ledger) -> None:
        stands.append(at)
        _note(corpus, plan, out, "begun", at, ledger)

    def over(state: Literal["finished", "stopped"]) -> None:
        if stands:
            _note(corpus, plan, out, state, stands[-1], None)

    try:
        yield begun
    except BaseException:
        over("stopped")
        raise
    over("finished")


def not_rewound(plan: Plan, corpus: Path | None, out: Path) -> None:
    """Raises DataError when ``corpus`` remembers that the run in ``out`` ended, or more of its ledger than there is."""
    if corpus is None:
        return
    try:
        known = lines_of(corpus, plan.key)
    except TaciturnError as error:
        logger.warning("%s; whether this run was put back to an earlier state is not known", error)
        return
    if any(line.state == "finished" for line in known):
        raise DataError(f"{out}: {RUNS} of the corpus says that this run has ended. {ENDED}")
    lines, digest = max((line.ledger for line in known), default=(0, GENESIS))
    if digest_after(out / LEDGER, lines) != digest:
        raise DataError(
            f"{out}: {RUNS} of the corpus remembers {lines} lines of this run's ledger, which is shorter or another one: it "
            "was put back to an earlier state; put the newer ledger back, or train into a new folder"
        )


def _note(
    corpus: Path,
    plan: Plan,
    out: Path,
    state: Literal["begun", "finished", "stopped"],
    at: Position,
    ledger: Ledger | None,
) -> None:
    try:
        ledger = ledger or Ledger.read(out / LEDGER)
        phases: Phases = ledger.by_phase()
        if state == "begun":  # what is lost, and all that may come
            phases = {p.name: merged([{p.event: plan.steps_of(p)}, ledger.lost(p.name)]) for p in plan.phases}
        units = {phase.name: phase.unit for phase in plan.phases}
        line = Line(
            key=plan.key,
            state=state,
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            path=str(out.resolve()),
            mechanism=plan.mechanism,
            relation=plan.relation,
            seeded=plan.seeds.noise is not None,
            phases=tuple(
                (name, units[name], event.to_json(), steps)
                for name, counts in phases.items()
                for event, steps in counts.items()
            ),
            start=at.steps,
            ledger=(len(ledger), ledger.digest),
            lost=sum(n for event, n in ledger.lost().items() if not isinstance(event, NonPrivate)),
        )
        append(corpus, line)
    except (OSError, TaciturnError) as error:
        logger.warning(
            "%s of the screened corpus could not be written (%s): certificates of other runs on it will not count this one",
            RUNS,
            type(error).__name__,
        )


def with_others(evidence: Evidence, folder: Path, corpus: Path) -> Evidence:
    """The evidence of the run in ``folder``, with what ``corpus`` remembers of other runs; unknown where it has no folder
    or its history is damaged."""
    if not corpus.is_dir():
        return replace(evidence, other_runs=None, other_steps=(), selection=None)
    try:
        runs = read_history(corpus)
    except TaciturnError as error:
        logger.warning("%s; the certificate says that other runs are not known", error)
        return replace(evidence, other_runs=None, other_steps=(), selection=None)
    mine = plan_key(load_json(folder / "plan.json"))
    others = [run for run in runs if run.last.key != mine]
    steps = tuple(each.to_json() for each in added(each for run in others for each in run.paid))
    return replace(evidence, other_runs=len(others), other_steps=steps, selection=None)


def number_of_runs(corpus: Path, runs: Runs) -> int:
    """How many runs to make on ``corpus`` and choose the best from: drawn once, from secret entropy, and written down.

    Asked again with the same law it is the same number. Raises UsageError once there are runs, or for another law: the price
    of choosing holds for a number that nothing seen so far had a part in.
    """
    before = drawn(corpus)
    if before is not None:
        if before.drawn != selection_law.to_json(runs):
            law = selection_law.describe(selection_law.from_json(before.drawn))
            raise UsageError(f"the number of runs on this corpus was drawn from {law} already; name that law")
        return before.runs
    if made := len(read_history(corpus)):
        raise UsageError(
            f"{made} runs were made on this corpus before a number of runs was drawn: what they and others spend together "
            "is what `taciturn budget --corpus` says"
        )
    found = Drawn(
        drawn=selection_law.to_json(runs),
        runs=selection_law.draw(runs),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    append(corpus, found)
    return found.runs


def chosen(evidence: Evidence, folder: Path, corpus: Path) -> Evidence:
    """The evidence of the run in ``folder`` when it is the best of those on ``corpus``, whose number was drawn beforehand.

    Raises UsageError where no number was drawn, GuaranteeError where the runs are not those that it was drawn for.
    """
    found = drawn(corpus) if corpus.is_dir() else None
    if found is None:
        raise UsageError(
            "no number of runs was drawn for this corpus before the first one, so choosing among them has no price but that "
            "of all together, which the certificate has; draw it with taciturn plan --selection LAW:MEAN -o run.toml"
        )
    runs = read_history(corpus)
    mine = [run for run in runs if run.last.key == plan_key(load_json(folder / "plan.json"))]
    if not mine:
        raise GuaranteeError("the corpus does not remember this run, so it is none of those it could be chosen from")
    if left := [Path(run.last.path).name for run in runs if run.last.state != "finished"]:
        raise GuaranteeError(
            f"a run that did not end has no score; finish it with taciturn train --resume: {', '.join(left)}"
        )
    if lossy := [Path(run.last.path).name for run in runs if run.last.lost]:
        raise GuaranteeError(
            "the price of choosing is of runs that show nothing but their end; steps of these were done, lost at a stop and "
            f"done anew: {', '.join(lossy)}. What all runs spend together is in the certificate without --selected"
        )
    if len(runs) != found.runs:
        raise GuaranteeError(
            f"{found.runs} runs were drawn and {len(runs)} made: the price of choosing holds for exactly those drawn"
        )
    if other := [Path(run.last.path).name for run in runs if run.alike != mine[0].alike]:
        raise GuaranteeError(
            "the runs to choose from must have one mechanism, noise, rate and number of noised steps; other ones than this "
            f"run's have: {', '.join(other)}"
        )
    return replace(evidence, other_runs=None, other_steps=(), selection=found.drawn)


def plan_key(plan: dict[str, Any]) -> str:
    """:attr:`Plan.key` from plan.json."""
    return hashlib.blake2b(json.dumps(plan, sort_keys=True).encode(), digest_size=16).hexdigest()
