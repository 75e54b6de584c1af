"""taciturn audit: attack a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from taciturn.cli.options import Json, comma


def audit(
    run: Annotated[Path, Parameter(help="a run's folder, or any model folder")],
    *,
    attack: Annotated[str, Parameter(help="exposure, membership, group-membership")] = "exposure",
    canaries: Annotated[Path | None, Parameter(help="canaries.json: template, secrets, copies")] = None,
    members: Annotated[Path | None, Parameter(help="texts trained on, one a line")] = None,
    nonmembers: Annotated[Path | None, Parameter(help="texts of the same kind never seen, one a line")] = None,
    reference: Annotated[Path | None, Parameter(help="model folder for the ratio attack")] = None,
    group_size: int = 20,
    seed: int = 0,
    json: Json = False,
) -> None:
    """Run attacks, each with its null, its controls and a verdict; writes numbers to audit.json, never a secret.

    Example: `taciturn audit runs/mail --attack exposure --canaries canaries.json`
    """
    from taciturn.auditing.finding import save
    from taciturn.auditing.run import audit as attack_all
    from taciturn.cli.show import as_json, number, out, table
    from taciturn.models.hf import load_exported

    findings = attack_all(
        run,
        comma(attack),
        canaries=canaries,
        members=_lines(members),
        nonmembers=_lines(nonmembers),
        reference=load_exported(reference) if reference else None,
        group_size=group_size,
        seed=seed,
    )
    if (run / "plan.json").is_file():
        save(run / "audit.json", findings)
    if json:
        as_json({"findings": [f.to_json() for f in findings]})
        return
    rows = [
        (
            f.attack,
            f"{number(f.score)} {f.unit_of_score}",
            number(f.null.get("mean")),
            number(f.null.get("p95")),
            number(f.null.get("p")),
            number(f.controls.get("negative")),
            number(f.controls.get("positive")),
            f.verdict,
        )
        for f in findings
    ]
    columns = ("attack", "score", "null mean", "null 95 %", "p", "negative control", "positive control", "verdict")
    out.print(table(f"attacks on {run.name}", columns, rows))
    for finding in findings:
        for note in finding.notes:
            out.print(f"{finding.attack}: {note}")


def _lines(path: Path | None) -> list[str] | None:
    if path is None:
        return None
    from taciturn.text.readers import read

    return [document.text for document in read(path, format="lines").documents()]
