"""taciturn certify: state what a run guarantees."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from taciturn.cli.options import Json


def certify(
    run: Path,
    *,
    group: Annotated[
        tuple[str, ...], Parameter(help="NAME=FILE: a group of secrets, one a line; only their number is kept")
    ] = (),
    labelled: Annotated[int | None, Parameter(help="secrets a person labelled, instead of the corpus's own")] = None,
    missed: Annotated[int | None, Parameter(help="of those, missed by π")] = None,
    missed_by_both: Annotated[int | None, Parameter(help="of those, missed by π and π_c")] = None,
    recall: Annotated[Path | None, Parameter(help="a file of `taciturn recall -o`, instead of those counts")] = None,
    confidence: Annotated[float | None, Parameter(help="of each bound; else the recall file's, or 0.95")] = None,
    json: Json = False,
) -> int:
    """Compute every guarantee from the run's ledger and write certificate.json. Exit code 4: the target is not met.

    Example: `taciturn certify runs/mail --group family=secrets.txt --recall recall.json`
    """
    from taciturn.cli.show import as_json, out, talk
    from taciturn.mechanisms.certify import certify as write
    from taciturn.mechanisms.cost import against_target

    certificate = write(
        run,
        groups=_groups(group),
        labelled=labelled,
        missed=missed,
        missed_by_both=missed_by_both,
        recall=recall,
        confidence=confidence,
    )
    if json:
        as_json(certificate.model_dump(by_alias=True))
    else:
        for words in certificate.words:
            out.print(f"• {words}", soft_wrap=True)
    most = certificate.evidence.get("records_per_user") or 1
    if most > 1 and not any(g.notion in ("user-dp", "uedp") for g in certificate.statements()):
        talk.print(f"one user has up to {most} records: for a promise about users, train with user_dp or uedp")
    for reason in certificate.reasons:
        talk.print(f"not for release: {reason}")
    talk.print(f"wrote {run / 'certificate.json'}; anyone can check it: taciturn verify {run / 'certificate.json'}")
    target = certificate.target
    if target is not None:
        sigmas = [e["noise_multiplier"] for p in certificate.plan["phases"] if "noise_multiplier" in (e := p["event"])]
        talk.print(against_target(target["epsilon"], certificate.epsilon_spent, sigmas))
    return 4 if target is not None and certificate.epsilon_spent > target["epsilon"] else 0


def _groups(settings: tuple[str, ...]) -> dict[str, list[str]]:
    from taciturn.errors import UsageError

    groups = {}
    for setting in settings:
        name, equals, file = setting.partition("=")
        if not equals or not Path(file).is_file():
            raise UsageError(f"--group {name}: expected NAME=FILE with a file of secrets, one a line")
        groups[name] = [line for line in Path(file).read_text("utf-8").split("\n") if line.strip()]
    return groups
