"""Mechanisms by name. A new one is a file beside this one and its name in ``MECHANISMS`` (docs/how-to/new-mechanism.md)."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from taciturn.errors import UsageError, nearest
from taciturn.mechanisms import MECHANISMS, WITHOUT_CORPUS
from taciturn.privacy.certificates import verify as recompute
from taciturn.privacy.guarantees.claims import Phases
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.refutation import check_against_evidence


def mechanism(name: str) -> Any:
    """The module of a mechanism: SUMMARY, Config, plan, guarantees; without a corpus neither Config nor plan. Raises
    UsageError that names the nearest."""
    if name not in (*MECHANISMS, *WITHOUT_CORPUS):
        raise UsageError(f"mechanism {name!r} is unknown: {nearest(name, MECHANISMS)}")
    return import_module(f"taciturn.mechanisms.{name.replace('-', '_')}")


def guarantees(name: str, phases: Phases, evidence: Evidence) -> list[Guarantee]:
    """Every statement that a finished run of a mechanism makes, with the status that the evidence leaves it.

    phases: what the ledger counted (``Ledger.by_phase()``). evidence: measured facts.
    """
    return list(check_against_evidence(mechanism(name).guarantees(phases, evidence), evidence))


def verify(
    path: str | os.PathLike[str],
    *,
    certified: str | os.PathLike[str] | None = None,
    without_weights: bool = False,
    patient: bool = False,
) -> list[recompute.Mismatch]:
    """Everything in which a ``certificate.json`` and the files beside it disagree; an empty list is a pass. Needs no
    torch.

    certified: of an export in another number type: the run, to cast its weights again. without_weights: the files of the
    model need not be there. patient: compute as long as it takes."""
    return recompute.verify(path, guarantees, certified=certified, without_weights=without_weights, patient=patient)


def examine(
    path: str | os.PathLike[str], *, certified: str | os.PathLike[str] | None = None, patient: bool = False
) -> recompute.Verification:
    """As :func:`verify`, with what was compared, what was not, and the certificate's first claim."""
    return recompute.examine(path, guarantees, certified=certified, patient=patient)
