"""Compute a certificate again from the files beside it, and name every field that differs. Needs no torch."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taciturn.errors import TaciturnError
from taciturn.privacy.certificate import LEDGER as LEDGER_NAME
from taciturn.privacy.certificate import (
    Certificate,
    canonical,
    digest_of,
    load_json,
    off_plan,
    recompute,
    weights_digest,
)
from taciturn.privacy.claims import Claims
from taciturn.privacy.ledger import Ledger

TOLERANCE = 1e-6
"""Relative difference allowed in a recomputed number: another machine's FFT, another build of the accountant."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One field, what the certificate says about it and what the files say."""

    field: str
    certified: str
    recomputed: str

    def __str__(self) -> str:
        return f"{self.field}: certified {self.certified}, recomputed {self.recomputed}"


def verify(path: str | os.PathLike[str], claims: Claims) -> list[Mismatch]:
    """Everything in which ``certificate.json`` and the files beside it disagree; an empty list is a pass.

    claims: what a mechanism may state.

    Plan, evidence and ledger must lie beside it. Weights are checked where they are (model/ or the same folder).
    """
    path = Path(path)
    try:
        fields = load_json(path)
        Certificate.read(path)
    except TaciturnError as error:
        return [Mismatch(path.name, "a certificate", str(error))]
    found = list(_own_digest(path, fields))
    try:
        again = recompute(path.parent, claims)
        ledger = Ledger.read(path.parent / LEDGER_NAME)
        found += [Mismatch(*gap) for gap in off_plan(fields["plan"], ledger)]
    except (TaciturnError, KeyError, TypeError, AttributeError, ValueError) as error:
        return [*found, Mismatch("files beside the certificate", "readable and intact", str(error))]
    if weights_digest(path.parent) is None:
        again.pop("weights_digest")  # exported elsewhere; nothing here to compare with
    for name, value in again.items():
        found += _differences(name, fields[name], value)
    found += _overspent(again)
    return found


def _own_digest(path: Path, fields: Mapping[str, Any]) -> Iterator[Mismatch]:
    digest = digest_of(fields)
    if fields["digest"] != digest:
        yield Mismatch("digest", str(fields["digest"]), digest)
    if canonical(fields) != path.read_bytes():
        yield Mismatch(path.name, "written as taciturn writes it", "other spacing, order or number format")


def _overspent(fields: Mapping[str, Any]) -> Iterator[Mismatch]:
    target, spent = fields["target"], fields["spent"]["epsilon"]
    if target is not None and (spent == "inf" or spent > target["epsilon"]):
        yield Mismatch("spent.epsilon", f"within the target {target['epsilon']}", str(spent))


def _differences(name: str, certified: Any, recomputed: Any) -> Iterator[Mismatch]:
    if isinstance(certified, dict) and isinstance(recomputed, dict):
        for key in sorted(certified.keys() | recomputed.keys(), key=str):
            yield from _differences(f"{name}.{key}", certified.get(key, _ABSENT), recomputed.get(key, _ABSENT))
    elif isinstance(certified, list) and isinstance(recomputed, list) and len(certified) == len(recomputed):
        for index, (ours, theirs) in enumerate(zip(certified, recomputed, strict=True)):
            yield from _differences(f"{name}[{index}]", ours, theirs)
    elif not _same(certified, recomputed):
        yield Mismatch(name, _show(certified), _show(recomputed))


class _Absent:
    def __repr__(self) -> str:
        return "absent"


_ABSENT = _Absent()


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=1e-12)
    return type(ours) is type(theirs) and bool(ours == theirs)


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
