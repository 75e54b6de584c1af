"""A screened corpus remembers the runs made on it (privacy/history.py); training never fails because it cannot."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from taciturn.errors import GuaranteeError, TaciturnError, UsageError
from taciturn.privacy import tuning
from taciturn.privacy.claims import Phases
from taciturn.privacy.evidence import Evidence
from taciturn.privacy.exported import LEDGER
from taciturn.privacy.files import load_json
from taciturn.privacy.history import RUNS, Drawn, Line, added, append, drawn, read
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.selection import Runs
from taciturn.training.plan import Plan

logger = logging.getLogger("taciturn")


@contextmanager
def remembered(plan: Plan, corpus: Path | None, out: Path, leads: bool) -> Iterator[None]:
    """Note in the folder ``corpus`` that the run in ``out`` begins, and how it ends. A corpus in memory has no folder and
    remembers nothing; of several processes the one that ``leads`` writes."""
    if corpus is None or not leads:
        yield
        return
    _note(corpus, plan, out, "begun")
    try:
        yield
    except BaseException:
        _note(corpus, plan, out, "stopped")
        raise
    _note(corpus, plan, out, "finished")


def _note(corpus: Path, plan: Plan, out: Path, state: Literal["begun", "finished", "stopped"]) -> None:
    try:
        if state == "begun":
            phases: Phases = {phase.name: {phase.event: plan.steps_of(phase)} for phase in plan.phases}
        else:
            phases = Ledger.read(out / LEDGER).by_phase() if (out / LEDGER).exists() else {}
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
        runs = read(corpus)
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
        if before.drawn != tuning.to_json(runs):
            law = tuning.words(tuning.from_json(before.drawn))
            raise UsageError(f"the number of runs on this corpus was drawn from {law} already; name that law")
        return before.runs
    if made := len(read(corpus)):
        raise UsageError(
            f"{made} runs were made on this corpus before a number of runs was drawn: what they and others spend together "
            "is what `taciturn budget --corpus` says"
        )
    found = Drawn(
        drawn=tuning.to_json(runs), runs=tuning.draw(runs), date=datetime.now(UTC).isoformat(timespec="seconds")
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
    runs = read(corpus)
    mine = [run for run in runs if run.last.key == plan_key(load_json(folder / "plan.json"))]
    if not mine:
        raise GuaranteeError("the corpus does not remember this run, so it is none of those it could be chosen from")
    if left := [Path(run.last.path).name for run in runs if run.last.state != "finished"]:
        raise GuaranteeError(
            f"a run that did not end has no score; finish it with taciturn train --resume: {', '.join(left)}"
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
