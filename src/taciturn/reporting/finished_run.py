"""A finished (or interrupted) run, read back from its folder for the report.

Everything comes from the files a run leaves behind; nothing is trained, attacked or certified here. Files that are not
there yet (``certificate.json``, ``audit.json``) are ``None``; a folder without ``plan.json`` is not a run.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taciturn.auditing import finding as findings_file
from taciturn.auditing.finding import Finding
from taciturn.errors import DataError
from taciturn.mechanisms.tokens_read import TOKENS
from taciturn.privacy.accounting.events import Event
from taciturn.privacy.certificates.exported_model import VALUES
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.reporting.run_files import json_lines, json_object, plan_of
from taciturn.training.values.table import Table

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunView:
    """One run as the report sees it.

    events: how often each event stands in the ledger. metrics: rows of ``metrics.jsonl`` in order (``kind`` is "step" or
    "eval"). certificate, findings: None when the run was not certified, not audited. model: config.json of the model.
    screened: counts of the screened corpus, where the run's own folder says where it lies and it is still that corpus.
    values: the table of common values that the run released, None where it released none. tokens: how many training read in
    all, and how many of them without noise (tokens.json); None where the run did not count them.
    """

    name: str
    plan: Json
    events: Mapping[Event, int]
    metrics: tuple[Json, ...]
    evidence: Json
    certificate: Json | None
    guarantees: tuple[Guarantee, ...]
    findings: tuple[Finding, ...] | None
    model: Json = field(default_factory=dict)
    screened: Json | None = None
    values: Table | None = None
    tokens: Json | None = None

    @staticmethod
    def load(folder: str | Path) -> RunView:
        """Read a run folder. Raises DataError when it is not one, or when a file in it is damaged."""
        folder = Path(folder)
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder; expected a run folder, as `taciturn train` writes it")
        plan = plan_of(folder)
        certificate = json_object(folder / "certificate.json")
        audit = folder / "audit.json"
        ledger = folder / "ledger.jsonl"
        evidence = json_object(folder / "evidence.json") or {}
        return RunView(
            name=_name(folder),
            plan=plan,
            events=dict(Ledger.read(ledger).counts()) if ledger.exists() else {},
            metrics=tuple(json_lines(folder / "metrics.jsonl")),
            evidence=evidence,
            certificate=certificate,
            guarantees=_guarantees(certificate, folder / "certificate.json"),
            findings=tuple(findings_file.load(audit)) if audit.exists() else None,
            model=json_object(folder / "model" / "config.json") or {},
            screened=_screened(folder / "run.toml", evidence.get("counts") or {}),
            values=Table.from_bytes((folder / VALUES).read_bytes()) if (folder / VALUES).exists() else None,
            tokens=json_object(folder / TOKENS),
        )

    def rows(self, kind: str) -> list[Json]:
        """The rows of ``metrics.jsonl`` of one kind, in order."""
        return [row for row in self.metrics if row.get("kind") == kind]

    def finding(self, attack: str) -> Finding | None:
        """The last finding of an attack, or None when it was not run."""
        found = [f for f in self.findings or () if f.attack == attack]
        return found[-1] if found else None


def _name(folder: Path) -> str:
    """What run.toml calls the run; the folder's own name where it calls it nothing."""
    try:
        named = tomllib.loads((folder / "run.toml").read_text("utf-8")).get("name")
    except (OSError, ValueError):
        named = None
    return named if isinstance(named, str) and named else folder.resolve().name


def _guarantees(certificate: Json | None, path: Path) -> tuple[Guarantee, ...]:
    try:
        return tuple(Guarantee.from_json(g) for g in (certificate or {}).get("guarantees", ()))
    except DataError as error:
        raise DataError(f"{path}: {error}; `taciturn certify` writes it anew") from error


def _screened(config: Path, counts: Json) -> dict[str, int] | None:
    """All counts of the corpus that run.toml names: the certificate quotes only those that are equal for neighbours.

    None where the corpus has gone, or where another one lies in its place.
    """
    try:
        corpus = tomllib.loads(config.read_text("utf-8")).get("corpus")
        found = json.loads((Path(str(corpus)) / "manifest.json").read_bytes())["counts"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    known = {str(name): value for name, value in found.items() if type(value) is int}
    same = counts and all(known.get(name) == value for name, value in counts.items())
    return known if same else None
