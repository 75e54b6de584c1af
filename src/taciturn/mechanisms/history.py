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

from taciturn.errors import TaciturnError
from taciturn.privacy.certificate import LEDGER, load_json
from taciturn.privacy.claims import Phases
from taciturn.privacy.evidence import Evidence
from taciturn.privacy.history import RUNS, Line, added, append, read
from taciturn.privacy.ledger import Ledger
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
        return replace(evidence, other_runs=None, other_steps=())
    try:
        runs = read(corpus)
    except TaciturnError as error:
        logger.warning("%s; the certificate says that other runs are not known", error)
        return replace(evidence, other_runs=None, other_steps=())
    mine = plan_key(load_json(folder / "plan.json"))
    others = [run for run in runs if run.last.key != mine]
    steps = tuple(each.to_json() for each in added(each for run in others for each in run.paid))
    return replace(evidence, other_runs=len(others), other_steps=steps)


def plan_key(plan: dict[str, Any]) -> str:
    """:attr:`Plan.key` from plan.json."""
    return hashlib.blake2b(json.dumps(plan, sort_keys=True).encode(), digest_size=16).hexdigest()
