"""taciturn run: carry out a project file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from taciturn.cli.options import Allowed, Json, Verbose


def run(
    project: Annotated[Path, Parameter(help="project.toml, as `taciturn init` writes it")],
    *,
    until: Annotated[
        Literal["screen", "plan", "train", "certify", "audit", "report", "export"], Parameter(help="the last step")
    ] = "export",
    again: Annotated[
        bool, Parameter(help="train anew with changed settings: this spends more ε on the same text", negative="")
    ] = False,
    allow: Allowed = (),
    verbose: Verbose = False,
    json: Json = False,
) -> int:
    """Screen, plan, train, certify, audit, report and export; what is done is kept, what was stopped goes on.

    A changed setting redoes what depends on it. Exit code 4: the target is not met, evidence refutes a claim, or
    an attack is above the certificate.

    Example: `taciturn run project.toml --until plan`, then `taciturn run project.toml`
    """
    import os

    from taciturn.cli.show import as_json, claims, out, screening, talk, training
    from taciturn.cli.verdict import last_line
    from taciturn.errors import Interrupted, UsageError
    from taciturn.project.context import Show
    from taciturn.project.done_steps import opened
    from taciturn.project.settings import load
    from taciturn.project.steps import Work

    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError(
            "taciturn run is one process: stop it in training, go on with torchrun … -m taciturn train FOLDER/runs/1 "
            "--resume, then give taciturn run again"
        )
    loaded = load(project)
    show = Show(lambda line: talk.print(line), screening, training)
    with opened(loaded.folder) as state:
        work = Work(loaded, state, show, again, allow)
        try:
            work.carry_out(until)
        except Interrupted as stopped:
            raise Interrupted(f"{str(stopped).partition(';')[0]}; taciturn run {project} goes on") from None
    reasons = work.missed
    certificate = work.certificate if any(step.name == "certify" for step in work.steps) else None
    if not json:
        for step in work.steps:
            out.print(f"{step.name:<8} {step.state:<5} {step.words}")
        claims(certificate.words if certificate else (), verbose)
    for reason in certificate.reasons if certificate else ():
        talk.print(f"not for release: {reason}")
    for reason in reasons:
        talk.print(f"not met: {reason}")
    verdict = last_line(work.run_folder, result=not json) if certificate else None
    if json:
        as_json(_summary(work, reasons) | ({"verdict": verdict} if verdict else {}))
    return 4 if reasons else 0


def _summary(work: object, reasons: list[str]) -> dict[str, object]:
    from taciturn.project.steps import Work

    assert isinstance(work, Work)
    names = {step.name for step in work.steps}
    made: dict[str, object] = {
        "folder": str(work.project.folder),
        "steps": [{"step": s.name, "state": s.state, "result": s.words} for s in work.steps],
        "not_met": reasons,
    }
    if "train" in names:
        made["run"] = str(work.run_folder)
    if "certify" in names:
        made |= {"spent": work.certificate.spent, "target": work.certificate.target, "words": work.certificate.words}
    if "audit" in names:
        made["verdicts"] = {each.attack: each.verdict for each in work.findings}
    return made
