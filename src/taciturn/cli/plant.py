"""taciturn plant: put canaries in a corpus before it is screened."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from taciturn.cli.options import Json
from taciturn.cli.reading import READ, Reading


def plant(
    *paths: Annotated[str, Parameter(help="files, folders or globs, as for screen")],
    output: Annotated[
        Path, Parameter(name=["--output", "-o"], help="JSON lines to write; canaries.json lies beside it")
    ],
    template: Annotated[str, Parameter(help="one line with {} for the secret")] = "My ID is: {}",
    alphabet: Annotated[
        str, Parameter(help="of the secrets: digits, hex, letters, or words:FILE (one word a line)")
    ] = "digits",
    length: Annotated[int, Parameter(help="letters, or words, of a secret")] = 6,
    canaries: Annotated[int, Parameter(help="different secrets")] = 10,
    copies: Annotated[int, Parameter(help="records that hold one secret")] = 20,
    kind: Annotated[
        Literal["missed", "caught", "dialled"],
        Parameter(help="what π does to a secret: marks nothing, marks all, or is made to miss a share of them"),
    ] = "missed",
    policy: Annotated[
        tuple[str, ...],
        Parameter(name=["--policy", "-p"], help="π, to check the kind by; as for screen", negative=""),
    ] = (),
    policy_file: Annotated[
        Path | None, Parameter(group="What π does", help="TOML with detectors of your own, added to π")
    ] = None,
    unit: Annotated[
        Literal["sentence", "turn", "document"], Parameter(group="Records", help="what a record will be")
    ] = "sentence",
    miss_rate: Annotated[
        float | None, Parameter(group="What π does", help="dialled: the share, as screen will be given it")
    ] = None,
    miss_seed: Annotated[int, Parameter(group="What π does")] = 0,
    add: Annotated[bool, Parameter(group="Draw", help="to the canaries.json that is there", negative="")] = False,
    seed: Annotated[
        int | None, Parameter(group="Draw", help="whoever knows it knows the secrets [default: drawn by the system]")
    ] = None,
    reading: Reading = READ,
    json: Json = False,
) -> None:
    """Write a corpus with random secrets in it, for an exposure audit. The secrets go to canaries.json (mode 0600) only.

    Give the new file to screen in place of the old ones, with the fields id, text, user, label. For several templates or
    kinds plant again in what was written, with --add.

    Example: `taciturn plant mail/*.jsonl --template "My ID is: {}" --kind missed -p ssn,email -o planted.jsonl`
    """
    import secrets as system

    from taciturn.auditing.canaries.alphabets import alphabet as symbols
    from taciturn.auditing.canaries.planting import Dial, choose, write
    from taciturn.auditing.canaries.templates import Template, read_plantings, write_plantings
    from taciturn.cli.show import as_json, step, talk
    from taciturn.errors import UsageError
    from taciturn.screening.policies import policy as build
    from taciturn.screening.policies.registry import split

    if not paths:
        raise UsageError("nothing to plant in: name files")
    output.parent.mkdir(parents=True, exist_ok=True)
    beside = output.with_name("canaries.json")
    if beside.exists() != add:
        wrong = "is not there to add to" if add else "exists: extend it with --add, or write into another folder"
        raise UsageError(f"{beside} {wrong}")
    before = read_plantings(beside) if add else ()
    made = Template(template, symbols(alphabet), length)
    seed = system.randbits(62) if seed is None else seed
    pi = build(*split(policy), file=policy_file) if policy or policy_file is not None else None
    with step("choosing canaries"):
        planted = choose(
            made,
            canaries,
            copies,
            kind,
            pi=pi,
            dial=None if miss_rate is None else Dial(miss_rate, miss_seed),
            unit=unit,
            seed=seed,
            without=[secret for each in before if each.template == made for secret in each.secrets],
        )
    name = "canary" if not before else f"canary{len(before) + 1}"
    with step("writing the corpus"):
        written = write(reading.corpus(paths), planted, output, seed, name)
    write_plantings(beside, [*before, *planted])
    kinds = {each.kind: len(each.secrets) for each in planted}
    if json:
        as_json(
            {
                "output": str(output),
                "canaries": str(beside),
                "documents": written.documents,
                "records": written.canaries,
                "candidates": made.size,
                "copies": copies,
                "kinds": kinds,
                "checked": pi is not None,
            }
        )
        return
    said = " and ".join(f"{n} {each}" for each, n in kinds.items())
    talk.print(
        f"{output}: {written.documents:,} documents and {said} canaries × {copies} copies, of {made.size:,} candidates each"
    )
    talk.print(f"{beside} holds the secrets (mode 0600): keep it out of what is trained on and published")
    if pi is None:
        talk.print(f"note: nothing was checked; name π with -p to see whether the canaries are {kind}")
    dial = f" --miss-rate {miss_rate:g} --miss-seed {miss_seed}" if miss_rate is not None else ""
    named = f" -p {','.join(policy)}" if policy else " -p POLICY"
    talk.print(f"next: taciturn screen {output}{named}{dial} -o screened/, and when a model is trained: "
               f"taciturn audit RUN --canaries {beside}")  # fmt: skip
