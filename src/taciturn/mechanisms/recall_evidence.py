"""Miss rates measured by `taciturn recall`, as evidence for a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from taciturn.errors import DataError, MismatchError, UsageError
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.screening.corpus.manifest import Manifest
from taciturn.screening.measuring.label_claims import FORMAT

DEFAULT_CONFIDENCE = 0.95


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)  # recall.json says more than a certificate takes


class _Sample(_Read):
    records: int = Field(ge=1)
    looked_at: int = Field(ge=1)
    population: Literal["all", "public", "private"]
    design: Literal["simple", "stratified"]


class _Policy(_Read):
    identity: str


class _Policies(_Read):
    pi: _Policy
    conservative: _Policy


class _Bounds(_Read):
    gamma: float = Field(ge=0, le=1)
    delta2: float = Field(ge=0, le=1)


class Measured(_Read):
    """The part of recall.json that a certificate takes; counts are of records with a secret."""

    format: Literal[2]
    corpus: str
    policies: _Policies
    sample: _Sample
    confidence: float = Field(gt=0, lt=1)
    unit: Literal["record"]
    labels: int = Field(ge=1)
    missed_by_pi: int = Field(ge=0)
    missed_by_both: int = Field(ge=0)
    bounds: _Bounds


def read_recall(path: Path) -> Measured:
    """Raises DataError if the file is not one of `taciturn recall -o`."""
    try:
        return Measured.model_validate_json(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path.name}: cannot be read ({type(error).__name__})") from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise DataError(
            f"{path.name}: {where or 'file'}: {first['msg'].lower()}; write it with: taciturn recall -o (format {FORMAT})"
        ) from None


def measured(evidence: Evidence, found: Measured, manifest: Manifest, confidence: float | None) -> Evidence:
    """The evidence with the miss rates of ``found``.

    Raises MismatchError unless they were measured on this corpus, with its policies, on a sample of all records, and
    UsageError if a stratified sample's bounds have another confidence.
    """
    if found.corpus != manifest.key:
        raise MismatchError(
            "recall was measured on another screened corpus than the run's; measure it on the folder the run was planned for"
        )
    for role in ("pi", "conservative"):
        if getattr(found.policies, role).identity != getattr(manifest.policies, role).identity:
            raise MismatchError(
                f"recall was measured with another policy ({role}) than the corpus was screened with; "
                "measure it without -p and -c, or screen again with those policies"
            )
    if found.sample.population != "all":
        raise MismatchError(
            f"recall was measured on {found.sample.population} records only, which says nothing of the others; "
            "sample with --part all"
        )
    weighted = found.sample.design == "stratified"
    if weighted and confidence not in (None, found.confidence):
        raise UsageError(
            f"the bounds in the recall file have confidence {found.confidence:g}; measure again with --confidence"
        )
    return replace(
        evidence,
        labelled=found.labels,
        missed_by_pi=found.missed_by_pi,
        missed_by_both=found.missed_by_both,
        label_unit="record",
        population=None if weighted else found.sample.records - found.sample.looked_at + found.labels,
        miss_bounds=(found.bounds.gamma, found.bounds.delta2) if weighted else None,
        confidence=confidence or found.confidence,
    )
