"""taciturn sample: draw the records a person should label."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from taciturn.cli.options import SCREENED_THERE, Json


def sample(
    screened: Annotated[str, Parameter(validator=SCREENED_THERE, help="folder that `taciturn screen` wrote")],
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="the labels file to write; it holds text")],
    n: Annotated[int, Parameter(name=["-n", "--n"], help="records to draw")] = 400,
    by: Annotated[
        Literal["simple", "cue"], Parameter(help="simple random, or by strata of cues with weights")
    ] = "simple",
    part: Annotated[
        Literal["all", "public", "private"], Parameter(help="sample one part only; no certificate takes that")
    ] = "all",
    seed: Annotated[int | None, Parameter(help="of the draw; from the operating system if not given")] = None,
    force: Annotated[bool, Parameter(help="replace a labels file that exists", negative="")] = False,
    json: Json = False,
) -> None:
    """Draw a random sample of the records for a person to label, one JSON object a line.

    In each line put the secrets into "spans" ({"start", "end", "label"}, in code points of "text") and set "label_status" to
    "done". Lines are in random order: label from the top, as many as you decided on before you saw them.

    Example: `taciturn sample screened/ -n 400 -o labels.jsonl`
    """
    from collections import Counter

    from taciturn.cli.show import as_json, out, step, table, talk
    from taciturn.errors import UsageError
    from taciturn.screening.corpus.screened import load
    from taciturn.screening.labels import write
    from taciturn.screening.measuring.sample import draw

    if output.exists() and not force:
        raise UsageError(f"{output} exists and may hold labels; name another file, or replace it with --force")
    with step("drawing records"):
        lines = draw(load(screened), n, by, part, seed)
    write(output, lines)
    drawn = Counter(line.stratum for line in lines)
    strata = {line.stratum: line for line in lines}
    if json:
        as_json(
            {
                "lines": len(lines),
                "records": lines[0].records,
                "population": part,
                "seed": lines[0].seed,
                "strata": {
                    name: {"records": line.stratum_records, "drawn": drawn[name], "weight": line.weight}
                    for name, line in strata.items()
                },
            }
        )
    elif by == "cue":
        rows = [
            (name, f"{strata[name].stratum_records:,}", str(drawn[name]), f"{strata[name].weight:.1f}")
            for name in sorted(strata)
        ]
        out.print(table("strata", ("marked by, cue", "records", "drawn", "weight"), rows))
    talk.print(
        f"{output} holds the text of {len(lines):,} of {lines[0].records:,} records (mode 0600, seed {lines[0].seed}): "
        f"keep it with the corpus; when labelled: taciturn recall {screened} {output}"
    )
