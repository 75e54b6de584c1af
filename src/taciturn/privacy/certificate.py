"""The certificate of a run: what is promised, and enough to compute it again.

    run folder: plan.json  evidence.json  ledger.jsonl  model/*.safetensors   →   certificate.json

All of it but the date and the versions is a function of the files beside it (:func:`recompute`). Issuing writes that
function's value; verifying computes it again and compares (verify.py). The file is canonical JSON: sorted keys,
shortest exact floats, "inf" for ∞, and a digest of itself.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from taciturn.errors import DataError, GuaranteeError, nearest
from taciturn.privacy.accountant import accountant_name
from taciturn.privacy.claims import Claims, spent_of
from taciturn.privacy.events import from_json as event_from_json
from taciturn.privacy.evidence import Evidence
from taciturn.privacy.guarantee import EMPTY, Guarantee, from_number, to_number
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.release import RELEASE, against_release, over_target, refutations
from taciturn.privacy.together import beside

PLAN, EVIDENCE, LEDGER, CERTIFICATE, MODEL = "plan.json", "evidence.json", "ledger.jsonl", "certificate.json", "model"


class Certificate(BaseModel):
    """What ``certificate.json`` holds. ``guarantees`` are :class:`Guarantee` objects as JSON, ``words`` say them.
    ``other_runs``: what is known of other runs on the corpus, and by what means it counts them; the guarantees do not.
    ``release``: whether the model may be handed out on the strength of this certificate alone; if not, ``reasons``.
    ``not_covered``: what the certificate promises nothing about, with why, whatever ``release`` is."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, strict=True)

    format: Literal["taciturn-certificate/1"] = Field("taciturn-certificate/1", alias="schema")
    created: str
    versions: dict[str, str]
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
    weights_digest: dict[str, str]
    other_runs: dict[str, Any]
    seeded_noise: bool
    release: bool = Field(description=RELEASE)
    reasons: list[str] = Field(description="why release is false; empty if it is true")
    not_covered: list[str] = Field(
        description="what this certificate promises nothing about (status none or refuted), and why"
    )
    digest: str

    def statements(self) -> list[Guarantee]:
        return [Guarantee.from_json(each) for each in self.guarantees]

    @property
    def refuted(self) -> list[str]:
        """What evidence says against statements; a certificate that has any is of a guarantee that is not met."""
        return refutations(self.statements())

    @property
    def epsilon_spent(self) -> float:
        return from_number(self.spent["epsilon"])

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write atomically; the same certificate is always the same bytes."""
        return write_json(path, self.model_dump(by_alias=True))

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Certificate:
        """Parse without verifying. DataError names the first field that is wrong."""
        try:
            return Certificate.model_validate(load_json(path))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            raise DataError(f"{Path(path).name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


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
    fields = recompute(folder, claims)
    gaps = off_plan(fields["plan"], Ledger.read(folder / LEDGER))
    if gaps:
        name, planned, found = gaps[0]
        raise GuaranteeError(f"{name}: the plan says {planned}, the ledger {found}; finish the run, then certify it")
    fields |= {
        "schema": "taciturn-certificate/1",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {**(versions or {}), "taciturn": _own_version(), "accountant": accountant_name()},
    }
    return Certificate.model_validate(fields | {"digest": digest_of(fields)})


def recompute(folder: Path, claims: Claims) -> dict[str, Any]:
    """Every field that follows from the files in ``folder``."""
    plan, evidence_json = load_json(folder / PLAN), load_json(folder / EVIDENCE)
    evidence, ledger = Evidence.from_json(evidence_json), Ledger.read(folder / LEDGER)
    mechanism, relation, target = (_field(plan, name) for name in ("mechanism", "relation", "target"))
    seeded = _field(plan, "seeds").get("noise") != "os"
    if evidence.seeded_noise != seeded:
        raise DataError(f"{EVIDENCE}: seeded_noise is {evidence.seeded_noise}, but the plan's noise seed says {seeded}")
    statements = claims(mechanism, ledger.by_phase(), evidence)
    delta = float(target["delta"]) if target else evidence.delta
    epsilon = spent_of(plan, ledger.counts(), delta)
    others = beside(plan, ledger.by_phase(), evidence, delta)
    reasons = [*against_release(statements, evidence), *over_target(target, relation, epsilon, others)]
    return {
        "mechanism": mechanism,
        "guarantees": [each.to_json() for each in statements],
        "words": [each.words() for each in statements],
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
        "weights_digest": weights_digest(folder) or {},
        "other_runs": others,
        "seeded_noise": seeded,
        "release": not reasons,
        "reasons": reasons,
        "not_covered": [f"{each.unit} ({each.notion}): {each.reason}" for each in statements if each.status in EMPTY],
    }


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


def weights_digest(folder: Path) -> dict[str, str] | None:
    """SHA-256 of every weights file in ``folder``/model, or beside the certificate; ``None`` if there are none."""
    for place in (folder / MODEL, folder):
        found = {file.name: file_digest(file) for file in sorted(place.glob("*.safetensors"))}
        if found:
            return found
    return None


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(fields: Mapping[str, Any]) -> str:
    """Digest of a certificate's fields without the digest itself."""
    return hashlib.sha256(canonical({k: v for k, v in fields.items() if k != "digest"})).hexdigest()


def canonical(value: Any) -> bytes:
    """Sorted keys, two spaces, shortest floats that read back exactly, a final newline."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def write_json(path: str | os.PathLike[str], value: Any) -> Path:
    """Write canonical JSON atomically."""
    path = Path(path)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_bytes(canonical(value))
    os.replace(draft, path)
    return path


def load_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A JSON object from a file; DataError says what is wrong with it."""
    path = Path(path)
    try:
        value = orjson.loads(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path.name}: cannot be read ({error.strerror})") from error
    except orjson.JSONDecodeError as error:
        raise DataError(f"{path.name}: not valid JSON") from error
    if not isinstance(value, dict):
        raise DataError(f"{path.name}: expected a JSON object, found {type(value).__name__}")
    return value


def _field(plan: Mapping[str, Any], name: str) -> Any:
    try:
        return plan[name]
    except KeyError as error:
        raise DataError(f"{PLAN}: field {name!r} is missing; {nearest(name, plan)}") from error


def _own_version() -> str:
    try:
        return version("taciturn")
    except PackageNotFoundError:
        return "unknown"
