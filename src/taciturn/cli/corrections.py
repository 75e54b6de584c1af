"""taciturn corrections: a person corrects what π found in a sample; export it, and screen again with the corrections."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from taciturn.cli.options import SCREENED_THERE, SPARED, Json, Spared, joined
from taciturn.cli.reading import READ, Reading

corrections = App(
    name="corrections",
    help="""Let a person correct what π found: export a sample, import what they marked.

Example: `taciturn corrections export screened/ -n 200 -o todo.jsonl` (both commands take `--json`)""",
)


@corrections.command(name="export")
def export(
    screened: Annotated[str, Parameter(help="folder that `taciturn screen` wrote", validator=SCREENED_THERE)],
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="the file to correct; it holds text")],
    n: Annotated[int, Parameter(name=["-n", "--n"], help="records to draw")] = 200,
    part: Annotated[Literal["all", "public", "private"], Parameter(help="draw from one part only")] = "all",
    seed: Annotated[int | None, Parameter(help="of the draw; from the operating system if not given")] = None,
    policy: Annotated[
        tuple[str, ...], Parameter(name=["--policy", "-p"], help="π, if its name alone will not do", negative="")
    ] = (),
    policy_file: Annotated[Path | None, Parameter(help="TOML that π was made with")] = None,
    force: Annotated[bool, Parameter(help="replace a file that exists", negative="")] = False,
    json: Json = False,
) -> None:
    """Write a random sample of records with what π found in them, for a person to correct.

    Add what is missing to "spans" and set "label_status" to "done" on each line that was looked at.

    Example: `taciturn corrections export screened/ -n 200 -o todo.jsonl`
    """
    from taciturn.cli.measured import policies
    from taciturn.cli.show import as_json, step, talk
    from taciturn.errors import UsageError
    from taciturn.screening.corpus.screened import load
    from taciturn.screening.labels import write
    from taciturn.screening.measuring.corrections import export as draw

    if output.exists() and not force:
        raise UsageError(f"{output} exists and may hold corrections; name another file, or replace it with --force")
    corpus = load(screened)
    pi, _ = policies(corpus, joined(policy), "all-private", policy_file)
    with step("drawing records and running the policy"):
        lines = draw(corpus, pi, n, part, seed)
    write(output, lines)
    if json:
        as_json({"lines": len(lines), "records": lines[0].records, "population": part, "seed": lines[0].seed})
    talk.print(
        f"{output} holds the text of {len(lines):,} of {lines[0].records:,} records (mode 0600, seed {lines[0].seed}): "
        f"keep it with the corpus; when corrected: taciturn corrections import {screened} {output} FILES -o corrected/"
    )


@corrections.command(name="import")
def import_(
    screened: Annotated[str, Parameter(help="folder that `taciturn screen` wrote", validator=SCREENED_THERE)],
    done: Annotated[Path, Parameter(help="the corrected file")],
    *paths: Annotated[str, Parameter(help="the files the corpus was screened from; without them nothing is screened")],
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], help="the screened folder to write")] = None,
    policy: Annotated[
        tuple[str, ...], Parameter(name=["--policy", "-p"], help="π, if its name alone will not do", negative="")
    ] = (),
    conservative: Annotated[
        tuple[str, ...],
        Parameter(name=["--conservative", "-c"], help="π_c, if its name alone will not do", negative=""),
    ] = (),
    policy_file: Annotated[Path | None, Parameter(help="TOML that the policies were made with")] = None,
    spared: Spared = SPARED,
    reading: Reading = READ,
    json: Json = False,
) -> None:
    """Say what the corrections change and, given the input files again, screen them with the corrections.

    Corrections add to what π finds in their records; a mark of π that was taken away stays. Options of reading must be those
    of the first screening; those of screening are taken from the folder.

    Example: `taciturn corrections import screened/ done.jsonl mail/*.jsonl -o screened-corrected/`
    """
    from dataclasses import asdict

    from taciturn.cli.measured import parts
    from taciturn.cli.show import as_json, out, step, talk
    from taciturn.errors import UsageError
    from taciturn.screening.corpus.screened import load
    from taciturn.screening.labels import read
    from taciturn.screening.measuring.corrections import compare, rescreen

    if bool(paths) != (output is not None):
        raise UsageError(
            "to screen again, give both the input files and -o FOLDER; give neither to see what would change"
        )
    corpus = load(screened)
    pi, wide, public = parts(corpus, joined(policy), joined(conservative), policy_file, spared)
    with step("running the policy on what was corrected"):
        changes = compare(corpus, pi, read(done))
    result: dict[str, object] = asdict(changes)
    if output is not None:
        with step("screening with the corrections"):
            made = rescreen(corpus, reading.corpus(paths), pi, wide, done, output, public)
        result |= {
            "key": made.key,
            "policy": made.manifest.policies.pi.model_dump(),
            "counts": made.counts.model_dump(),
        }
    if json:
        as_json(result)
    else:
        out.print(
            f"{changes.records:,} records corrected: {changes.added:,} spans added in {changes.changed:,} records; "
            f"{changes.kept:,} marks of π were taken away and stay masked",
            soft_wrap=True,
        )
    if output is not None:
        talk.print(f"screened into {output}; key {made.key}; the corrections are part of π, kept in that folder")
    else:
        talk.print(f"to screen with them: -p {pi.name},corrections:{done}, or name the input files here and -o FOLDER")
