"""The certificate of a run: what is promised, and enough to compute it again.

    run folder: plan.json  evidence.json  ledger.jsonl  model/**   →   certificate.json

All of it but the date and the versions is a function of the files beside it (:func:`recompute`, exported_model.py). Issuing
writes that function's value; verifying computes it again and compares (verify.py). The file is canonical JSON: sorted keys,
shortest exact floats, "inf" for ∞, and a digest of itself. Every ε and μ in it is rounded up to nine digits (rounding.py).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from taciturn.errors import DataError, GuaranteeError, nearest
from taciturn.privacy.accounting.accountant import accountant_name
from taciturn.privacy.accounting.effort import check_effort
from taciturn.privacy.accounting.event_files import from_json as event_from_json
from taciturn.privacy.accounting.events import NonPrivate, ThresholdedCounts
from taciturn.privacy.accounting.rounding import up, upwards
from taciturn.privacy.certificates.composed_runs import other_runs
from taciturn.privacy.certificates.digests import canonical, file_digest, load_json, write_json
from taciturn.privacy.certificates.exported_model import CERTIFICATE, EVIDENCE, LEDGER, VALUES, ModelFile, model_files
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.privacy.certificates.plan_fields import PLAN
from taciturn.privacy.certificates.plan_fields import checked as checked_plan
from taciturn.privacy.guarantees.claims import Claims, foreseen_effort, spent_of
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import EMPTY, Guarantee, from_number, to_number
from taciturn.privacy.guarantees.premises import TABLE
from taciturn.privacy.guarantees.release import RELEASE, against_release, over_target, refutations

__all__ = ["CERTIFICATE", "EVIDENCE", "LEDGER", "PLAN", "Certificate", "canonical", "digest_of", "issue", "load_json",
           "off_plan", "recompute", "write_json"]  # fmt: skip

FORMAT = "taciturn-certificate/2"
AHEAD = timedelta(days=1)
"""How far a certificate's date may lie before the clock of whoever reads it: time zones, clocks that are off."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+00:00")
_PACKAGE = re.compile(r"[A-Za-z0-9._-]{1,64}")
_VERSION = re.compile(r"(PLD, dp_accounting )?[A-Za-z0-9.+!_-]{1,64}")


class Certificate(BaseModel):
    """What ``certificate.json`` holds. ``guarantees`` are :class:`Guarantee` objects as JSON, ``words`` say them.
    ``other_runs``: what is known of other runs on the corpus, and by what means it counts them; the guarantees do not.
    ``created`` and ``versions`` are the issuer's word: of a plausible form, and nothing to compute them again from.
    ``model_files``: size and digest of every file of the exported model, by its path. ``values_digest``: of the table of
    common values that the run released, null where it released none.
    ``release``: whether the model may be handed out on the strength of this certificate alone; if not, ``reasons``.
    ``not_covered``: what the certificate promises nothing about, with why, whatever ``release`` is."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, strict=True)

    format: Literal["taciturn-certificate/2"] = Field("taciturn-certificate/2", alias="schema")
    created: str = Field(pattern=f"^{_DATE.pattern}$")
    versions: dict[str, str] = Field(max_length=32)
    mechanism: str
    guarantees: list[dict[str, Any]]
    words: list[str]
    target: dict[str, float] | None
    spent: dict[str, float | str]
    plan: dict[str, Any]
    plan_digest: str
    evidence: dict[str, Any]
    evidence_digest: str
    ledger_digest: str
    ledger_steps: list[dict[str, Any]]
    corpus_key: str
    corpus_counts: dict[str, int]
    model_files: dict[str, ModelFile]
    values_digest: str | None
    other_runs: dict[str, Any]
    seeded_noise: bool
    release: bool = Field(description=RELEASE)
    reasons: list[str] = Field(description="why release is false; empty if it is true")
    not_covered: list[str] = Field(
        description="what this certificate promises nothing about (status none or refuted), and why"
    )
    digest: str

    @field_validator("created")
    @classmethod
    def _a_date(cls, value: str) -> str:
        if datetime.fromisoformat(value) > datetime.now(UTC) + AHEAD:
            raise ValueError(f"{value} is in the future")
        return value

    @field_validator("versions")
    @classmethod
    def _plausible(cls, value: dict[str, str]) -> dict[str, str]:
        for name, number in value.items():
            if not (_PACKAGE.fullmatch(name) and _VERSION.fullmatch(number)):
                raise ValueError("expected names of packages with a version such as 2.1.0 each")
        return value

    def statements(self) -> list[Guarantee]:
        return [Guarantee.from_json(each) for each in self.guarantees]

    @property
    def refuted(self) -> list[str]:
        """What evidence says against statements; a certificate that has any is of a guarantee that is not met."""
        return refutations(self.statements())

    @property
    def epsilon_spent(self) -> float:
        return from_number(self.spent["epsilon"])

    @property
    def over_target(self) -> bool:
        """Whether more was spent than the target, which has all its digits where spent has nine, rounded up."""
        return self.target is not None and self.epsilon_spent > up(self.target["epsilon"])

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write atomically; the same certificate is always the same bytes."""
        return write_json(path, self.model_dump(by_alias=True))

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Certificate:
        """Parse without verifying. DataError names the first field that is wrong."""
        fields = load_json(path)
        if str(fields.get("schema", "")).startswith("taciturn-certificate/") and fields["schema"] != FORMAT:
            raise DataError(
                f"{Path(path).name}: of the form {str(fields['schema'])[:40]}, expected {FORMAT}; certify the run again "
                "with this version of taciturn"
            )
        try:
            return Certificate.model_validate(fields)
        except ValidationError as error:
            raise DataError(f"{Path(path).name}: {_first(error)}") from error


def issue(folder: str | os.PathLike[str], claims: Claims, versions: Mapping[str, str] | None = None) -> Certificate:
    """The certificate of a finished run folder (not yet written).

    Args:
        folder: holds plan.json, evidence.json, ledger.jsonl and, once exported, model/.
        claims: what a mechanism may state.
        versions: of the packages that trained; taciturn's and the accountant's are added.

    Raises:
        DataError: a file is missing or unreadable. GuaranteeError: the ledger is broken or does not follow the plan.
    """
    folder = Path(folder)
    ledger = Ledger.read(folder / LEDGER)
    fields = upwards(recompute(folder, ledger, claims)) | {"model_files": model_files(folder)}
    fields["words"] = sentences(fields["guarantees"])
    gaps = off_plan(fields["plan"], ledger)
    if gaps:
        name, planned, found = gaps[0]
        raise GuaranteeError(f"{name}: the plan says {planned}, the ledger {found}; finish the run, then certify it")
    fields |= {
        "schema": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {**(versions or {}), "taciturn": _own_version(), "accountant": accountant_name()},
    }
    try:
        return Certificate.model_validate(fields | {"digest": digest_of(fields)})
    except ValidationError as error:
        raise DataError(f"no certificate: {_first(error)}") from error


def recompute(folder: Path, ledger: Ledger, claims: Claims) -> dict[str, Any]:
    """Every field that follows from ``ledger`` and the plan and evidence in ``folder``, but ``words``; numbers as computed,
    not rounded."""
    plan, evidence_json = load_json(folder / PLAN), load_json(folder / EVIDENCE)
    checked_plan(plan)
    evidence = Evidence.from_json(evidence_json)
    mechanism, relation, target = (_field(plan, name) for name in ("mechanism", "relation", "target"))
    seeded = _field(plan, "seeds").get("noise") != "os"
    if evidence.seeded_noise != seeded:
        raise DataError(f"{EVIDENCE}: seeded_noise is {evidence.seeded_noise}, but the plan's noise seed says {seeded}")
    drawn_from = _noised_units(plan)
    if evidence.protected != drawn_from:
        raise DataError(
            f"{EVIDENCE}: protected is {evidence.protected}, but the plan's steps with noise draw from {drawn_from} units"
        )
    sizes = {1, plan.get("group", 1), evidence.records_per_user or 1, *(size for _, size in evidence.groups)}
    check_effort(foreseen_effort(ledger.counts(), sizes))
    statements = claims(mechanism, ledger.by_phase(), evidence)
    delta = float(target["delta"]) if target else evidence.delta
    epsilon = spent_of(plan, ledger.counts(), delta)
    others = other_runs(plan, ledger.by_phase(), evidence, delta)
    reasons = [*against_release(statements, evidence), *over_target(target, relation, epsilon, others)]
    return {
        "mechanism": mechanism,
        "guarantees": [each.to_json() for each in statements],
        "target": {name: float(value) for name, value in target.items()} if target else None,
        "spent": {"relation": relation, "epsilon": to_number(epsilon), "delta": delta},
        "plan": plan,
        "plan_digest": file_digest(folder / PLAN),
        "evidence": evidence_json,
        "evidence_digest": file_digest(folder / EVIDENCE),
        "ledger_digest": ledger.digest,
        "ledger_steps": ledger.summary(),
        "corpus_key": _field(plan, "corpus_key"),
        "corpus_counts": dict(evidence.counts),
        "values_digest": _values_digest(folder, ledger),
        "other_runs": others,
        "seeded_noise": seeded,
        "release": not reasons,
        "reasons": reasons,
        "not_covered": [f"{each.unit} ({each.notion}): {each.reason}" for each in statements if each.status in EMPTY],
    }


def sentences(guarantees: Sequence[Mapping[str, Any]]) -> list[str]:
    """The sentences of a certificate, from the numbers in it; and one on what was released beside the model."""
    statements = [Guarantee.from_json(each) for each in guarantees]
    texts = dict.fromkeys(a.text for each in statements for a in each.assumptions if a.text.startswith(TABLE))
    return [*(each.words() for each in statements), *(f"{text[0].upper()}{text[1:]}." for text in texts)]


def off_plan(plan: Mapping[str, Any], ledger: Ledger) -> list[tuple[str, str, str]]:
    """(where, planned, found) for each phase whose steps or events differ from the plan's. Lost steps are not among those
    of the model: they are paid beside them."""
    gaps = []
    phases = _field(plan, "phases")
    for phase in phases:
        name, event, steps = phase["name"], event_from_json(phase["event"]), phase["steps"]
        found = ledger.done(name)
        if found != ({event: steps} if steps else {}):
            other = ", ".join(f"{count} × {each.to_json()}" for each, count in found.items()) or "no steps"
            gaps.append((f"phase {name}", f"{steps} × {event.to_json()}", other))
    for name in ledger.phases().keys() - {phase["name"] for phase in phases}:
        gaps.append((f"phase {name}", "no such phase", f"{ledger.phases()[name]} steps"))
    return gaps


def digest_of(fields: Mapping[str, Any]) -> str:
    """Digest of a certificate's fields without the digest itself."""
    return hashlib.sha256(canonical({k: v for k, v in fields.items() if k != "digest"})).hexdigest()


def _first(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(str(part)[:64] for part in first['loc'])}: {first['msg'][:200]}"


def _field(plan: Mapping[str, Any], name: str) -> Any:
    try:
        return plan[name]
    except KeyError as error:
        raise DataError(f"{PLAN}: field {name!r} is missing; {nearest(name, plan)}") from error


def _noised_units(plan: Mapping[str, Any]) -> int | None:
    """How many units the steps with noise of a checked plan draw from; None where it has none."""
    noised = [each for each in plan["phases"] if not isinstance(event_from_json(each["event"]), NonPrivate)]
    return max((each["records"] for each in noised), default=None)


def _values_digest(folder: Path, ledger: Ledger) -> str | None:
    """Of the table of values: there is one exactly where the ledger has its release."""
    released = any(isinstance(event, ThresholdedCounts) for event in ledger.counts())
    if released != (folder / VALUES).exists():
        expected = "the table that the ledger says was released, found none" if released else "none, found one"
        raise DataError(f"{VALUES}: expected {expected}; put back the run's own files")
    return file_digest(folder / VALUES) if released else None


def _own_version() -> str:
    try:
        return version("taciturn")
    except PackageNotFoundError:
        return "unknown"
