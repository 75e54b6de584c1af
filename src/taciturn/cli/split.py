"""taciturn split: decide by coins, before training, what an audit will call members and non-members."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from taciturn.cli.options import Json


def split(
    texts: Annotated[Path, Parameter(help="file of texts of one kind, one a line")],
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="folder for the parts")],
    reference: Annotated[float, Parameter(help="share set aside to train reference models on")] = 0.0,
    seed: Annotated[int | None, Parameter(help="of the coins; the operating system's entropy by default")] = None,
    json: Json = False,
) -> None:
    """Split texts by fair coins: train on members.txt, keep nonmembers.txt out, and audit the difference.

    Members and non-members of two sources differ without any model. Equal texts stay on one side. Existing files are kept.

    Example: `taciturn split mail.txt -o coins --reference 0.2`
    """
    import secrets

    from taciturn.auditing.membership.split import split as split_texts
    from taciturn.cli.show import as_json, out, step
    from taciturn.errors import UsageError
    from taciturn.text.atomic import write_bytes
    from taciturn.text.readers import read

    with step("reading the texts"):
        lines = [document.text for document in read(texts, format="lines").documents()]
    found = split_texts(lines, secrets.randbits(64) if seed is None else seed, reference)
    parts = {"members": found.members, "nonmembers": found.nonmembers}
    if reference:
        parts["reference"] = found.reference
    there = [name for name in parts if (output / f"{name}.txt").exists()]
    if there:
        raise UsageError(
            f"{output}: {', '.join(there)} there already; a second split would not be of the first one's coins"
        )
    output.mkdir(parents=True, exist_ok=True)
    for name, side in parts.items():
        write_bytes(output / f"{name}.txt", "".join(f"{text}\n" for text in side).encode(), 0o600)
    if json:
        as_json({name: len(side) for name, side in parts.items()})
    else:
        out.print(", ".join(f"{len(side)} {name}" for name, side in parts.items()))
