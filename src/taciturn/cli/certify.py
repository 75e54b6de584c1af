"""taciturn certify: state what a run guarantees."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from taciturn.cli.options import RUN_THERE, Json, Verbose


def certify(
    run: Annotated[Path | None, Parameter(validator=RUN_THERE, help="a run's folder")] = None,
    *,
    group: Annotated[
        tuple[str, ...], Parameter(help="NAME=FILE: a group of secrets, one a line; only their number is kept")
    ] = (),
    labelled: Annotated[
        int | None, Parameter(group="Labels by hand", help="secrets a person labelled, instead of the corpus's own")
    ] = None,
    missed: Annotated[int | None, Parameter(group="Labels by hand", help="of those, missed by π")] = None,
    missed_by_both: Annotated[
        int | None, Parameter(group="Labels by hand", help="of those, missed by π and π_c")
    ] = None,
    recall: Annotated[Path | None, Parameter(help="a file of `taciturn recall -o`, instead of those counts")] = None,
    confidence: Annotated[
        float | None, Parameter(group="Labels by hand", help="of each bound; else the recall file's, or 0.95")
    ] = None,
    selected: Annotated[
        bool,
        Parameter(
            group="Several runs",
            help="this run is the best of those drawn with `plan --selection`: count the others",
            negative="",
        ),
    ] = False,
    sign: Annotated[
        Path | None, Parameter(group="Signing", help="a private key: also write certificate.json.sig")
    ] = None,
    new_key: Annotated[
        Path | None, Parameter(group="Signing", help="make a private key (mode 0600) and FILE.pub; needs no run")
    ] = None,
    schema: Annotated[
        bool, Parameter(group="Schema", help="print the JSON Schema of certificates; needs no run", negative="")
    ] = False,
    verbose: Verbose = False,
    json: Json = False,
) -> int:
    """Compute every guarantee from the run's ledger and write certificate.json. Exit code 4: the target is not
    met, or evidence refutes a claim.

    Example: `taciturn certify runs/mail --group family=secrets.txt --recall recall.json`
    """
    from taciturn.cli.show import as_json, claims, out, step, talk
    from taciturn.errors import UsageError

    if schema or new_key is not None:
        _without_a_run(schema, new_key)
        if run is None:
            return 0
    if run is None:
        raise UsageError("name the run's folder: taciturn certify runs/mail")
    from taciturn.cli.verdict import last_line
    from taciturn.mechanisms.certify import certify as write
    from taciturn.mechanisms.cost import against_target

    with step("composing what the ledger says"):
        certificate = write(
            run,
            groups=_groups(group),
            labelled=labelled,
            missed=missed,
            missed_by_both=missed_by_both,
            recall=recall,
            confidence=confidence,
            selected=selected,
        )
    if json:
        as_json(certificate.model_dump(by_alias=True))
    else:
        claims(certificate.words, verbose)
        out.print(str(certificate.other_runs["words"]))
    if lost := sum(row["lost"] for row in certificate.ledger_steps if row["event"]["event"] != "non-private"):
        talk.print(f"{lost} noised steps were done, lost at a stop and done anew: each ε above pays for both")
    most = certificate.evidence.get("records_per_user") or 1
    if most > 1 and not any(g.notion in ("user-dp", "uedp") for g in certificate.statements()):
        talk.print(f"one user has up to {most} records: for a promise about users, train with user_dp or uedp")
    for what in certificate.not_covered:
        talk.print(f"nothing is promised about {what}")
    for reason in certificate.reasons:
        talk.print(f"not for release: {reason}")
    talk.print(f"wrote {run / 'certificate.json'}; anyone can check it: taciturn verify {run / 'certificate.json'}")
    if sign is not None:
        from taciturn.privacy.certificates.signature import sign as write_signature

        written = write_signature(run / "certificate.json", sign)
        talk.print(f"wrote {written}; check it with taciturn verify --key {sign}.pub")
    target = certificate.target
    if target is not None:
        sigmas = [e["noise_multiplier"] for p in certificate.plan["phases"] if "noise_multiplier" in (e := p["event"])]
        talk.print(against_target(target["epsilon"], certificate.epsilon_spent, sigmas))
    for reason in certificate.refuted:
        talk.print(f"refuted: {reason}")
    last_line(run, result=not json)
    return 4 if certificate.over_target or certificate.refuted else 0


def _without_a_run(schema: bool, new_key: Path | None) -> None:
    from taciturn.cli.show import as_json, talk

    if schema:
        from taciturn.privacy.certificates.schema import certificate_schema

        as_json(certificate_schema())
    if new_key is not None:
        from taciturn.privacy.certificates.signature import new_key as make

        public = make(new_key)
        talk.print(
            f"wrote {new_key} (keep it secret) and {public} (for those who verify, by another way than the model)"
        )


def _groups(settings: tuple[str, ...]) -> dict[str, list[str]]:
    from taciturn.errors import UsageError

    groups = {}
    for setting in settings:
        name, equals, file = setting.partition("=")
        if not equals or not Path(file).is_file():
            raise UsageError(f"--group {name}: expected NAME=FILE with a file of secrets, one a line")
        groups[name] = [line for line in Path(file).read_text("utf-8").split("\n") if line.strip()]
    return groups
