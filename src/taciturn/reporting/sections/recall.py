"""How much of what is secret the policies find, with bounds: from the evidence, and per kind from recall.json."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from taciturn.errors import DataError
from taciturn.privacy.guarantees.statements import miss_rates
from taciturn.reporting.finished_run import RunView
from taciturn.reporting.sections.costs import evidence_of

Json = Mapping[str, Any]

_KIND = re.compile(r"[A-Za-z][A-Za-z _-]{0,30}")
"""Names of kinds that are shown: what a labeller typed could be anything, and a secret has digits or is long."""


def tables(labelled: Sequence[tuple[str, RunView]], files: Sequence[Json] = ()) -> list[dict[str, Any]]:
    """One table per distinct measurement, with the runs it stands for. files: recall.json of `taciturn recall -o`."""
    made: list[dict[str, Any]] = []
    for name, run in labelled:
        evidence = evidence_of(run)
        if evidence is None or not evidence.labels:
            continue
        counts = (evidence.labelled, evidence.missed_by_pi, evidence.missed_by_both)
        rates, weighted = miss_rates(evidence), evidence.miss_bounds is not None
        table: dict[str, Any] = {
            "unit": evidence.label_unit,
            "confidence": evidence.confidence,
            "stratified": weighted,
            "rows": [
                _row("the policy", counts[0], counts[1] or 0, rates["gamma"], weighted),
                _row("both policies", counts[0], counts[2] or 0, rates["delta2"], weighted),
            ],
        }
        for file in files:
            if counts == tuple(file.get(field) for field in ("labels", "missed_by_pi", "missed_by_both")):
                table["rows"] += _kinds(file.get("kinds") or {})
        same = [each for each in made if {k: v for k, v in each.items() if k != "runs"} == table]
        if same:
            same[0]["runs"].append(name)
        else:
            made.append({"runs": [name], **table})
    return made


def read_recall(path: Path) -> dict[str, Any]:
    """recall.json. Raises DataError when it is not one."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("kinds"), dict) or "missed_by_pi" not in found:
        raise DataError(f"{path.name}: expected the file that `taciturn recall -o` writes")
    return found


def _row(by: str, n: int, missed: int, bound: float, weighted: bool) -> dict[str, Any]:
    """Recall is 1 − miss rate, and bounded where that is. A plain share of a stratified sample is no estimate."""
    recall = None if weighted or not n else 1 - missed / n
    return {"kind": "all", "by": by, "labelled": n, "missed": missed, "recall": recall, "at_least": 1 - bound}


def _kinds(kinds: Json) -> Iterator[dict[str, Any]]:
    for number, (label, rates) in enumerate(kinds.items(), 1):
        for by, role in (("the policy", "pi"), ("both policies", "both")):
            rate = rates[role]
            yield {
                "kind": label.replace("_", " ").lower() if _KIND.fullmatch(label) else f"kind {number}",
                "by": by,
                "labelled": rate["records"],
                "missed": rate["records_missed"],
                "recall": 1 - rate["records_missed"] / rate["records"] if rate["records"] else None,
                "at_least": 1 - rate["bound"],
            }
