"""taciturn preview: look at what the policies mark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from taciturn.cli.options import SPARED, Json, Spared, joined
from taciturn.cli.reading import READ, Reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console
    from rich.text import Text

    from taciturn.screening.measuring.preview import Shown
    from taciturn.screening.policies import Policy
    from taciturn.screening.policies.finder import Named
    from taciturn.text.document import Record


def preview(
    *paths: Annotated[str, Parameter(help="files, folders or globs as for screen, or one screened folder")],
    policy: Annotated[
        tuple[str, ...],
        Parameter(
            name=["--policy", "-p"],
            help="π, what to redact; a screened folder knows its own; may be repeated",
            negative="",
        ),
    ] = (),
    conservative: Annotated[
        tuple[str, ...],
        Parameter(
            name=["--conservative", "-c"],
            help="π_c, what may be secret; may be repeated [default: conservative]",
            negative="",
        ),
    ] = (),
    policy_file: Annotated[Path | None, Parameter(help="TOML with detectors of your own")] = None,
    spared: Spared = SPARED,
    n: Annotated[int, Parameter(name=["-n", "--n"], help="records to show")] = 20,
    show: Annotated[Literal["all", "private", "public"], Parameter(help="only records of one part")] = "all",
    random: Annotated[bool, Parameter(help="a random sample instead of the first records", negative="")] = False,
    seed: Annotated[int, Parameter(group="Records", help="of --random")] = 0,
    unit: Annotated[Literal["sentence", "turn", "document"] | None, Parameter(group="Records")] = None,
    html: Annotated[Path | None, Parameter(help="write a page (mode 0600; it holds text) instead")] = None,
    max_bad: Annotated[int, Parameter(group="Records", help="unreadable items to accept")] = 0,
    reading: Reading = READ,
    json: Json = False,
) -> None:
    """Show records with what π and π_c mark in colour. The terminal, or the page, then shows their text.

    Example: `taciturn preview mail/*.jsonl -p ssn,email -c conservative -n 20 --html preview.html`
    """
    from collections import Counter

    from taciturn.cli.show import as_json, out, step, talk
    from taciturn.errors import UsageError
    from taciturn.screening.measuring.preview import chosen

    if not paths:
        raise UsageError("nothing to preview: name files, or a screened folder")
    pi, wide, texts = _source(paths, joined(policy), joined(conservative), policy_file, spared, unit, reading, max_bad)
    with step("running the policies"):
        records = chosen(texts, pi, wide, n, show, seed if random else None)
    if json:
        as_json(
            {
                "records": [
                    {"id": r.id, "part": r.part, "spans": [[p.by, p.label, p.start, p.end] for p in r.pieces if p.by]}
                    for r in records
                ]
            }
        )
        return
    if not records:
        talk.print(f"no {'' if show == 'all' else show + ' '}record to show")
        return
    if html is not None:
        from taciturn.reporting.preview import write

        write(html, records, pi.name, wide.name)
        talk.print(f"{html} holds the text of {len(records)} records (mode 0600): keep it with the corpus")
        return
    _show(records, out)
    parts = Counter(r.part for r in records)
    talk.print(
        f"{len(records)} records: {parts['public']} public, {parts['private']} private; π: {pi.name}; π_c: {wide.name}"
    )


def _source(
    paths: tuple[str, ...],
    policy: str | None,
    conservative: str | None,
    file: Path | None,
    spared: Spared,
    unit: Literal["sentence", "turn", "document"] | None,
    reading: Reading,
    max_bad: int,
) -> tuple[Policy, Named, Iterator[Record]]:
    """π, π_c and the records of a screened folder or of files."""
    from taciturn.cli.measured import build, policies
    from taciturn.errors import UsageError
    from taciturn.screening.corpus.manifest import MANIFEST
    from taciturn.screening.corpus.screened import load
    from taciturn.screening.measuring.preview import of_corpus, of_screened
    from taciturn.screening.sparing import Sparing

    if len(paths) == 1 and (Path(paths[0]) / MANIFEST).is_file():
        screened = load(Path(paths[0]))
        return *policies(screened, policy, conservative, file, spared), of_screened(screened)
    if policy is None:
        raise UsageError("which policy? name π with -p; see: taciturn policies")
    return (
        *Sparing.pair(build(policy, file), build(conservative or "conservative", file), spared.read()),
        of_corpus(reading.corpus(paths), unit, max_bad),
    )


_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red")


def _show(records: Sequence[Shown], console: Console) -> None:
    """Records with marks in colour; where there are no colours, π's spans stand in ⟦⟧ with their label, π_c's in ‹›."""
    from rich.text import Text

    labels = list(dict.fromkeys(p.label for r in records for p in r.pieces if p.by == "π"))
    styles = {label: f"black on {_COLOURS[i % len(_COLOURS)]}" for i, label in enumerate(labels)}
    plain = console.color_system is None
    for record in records:
        head = Text(f" {record.part} ", "black on green" if record.part == "public" else "white on red")
        console.print(Text.assemble(head, "  ", _visible(record.id, "dim")))
        body = Text("  ")
        for piece in record.pieces:
            style = styles[piece.label] if piece.by == "π" else "underline yellow" if piece.by else ""
            left, right = (
                {"π": ("⟦", f"⟧{piece.label}"), "π_c": ("‹", "›")}.get(piece.by, ("", "")) if plain else ("", "")
            )
            body = Text.assemble(body, left, _visible(piece.text, style), right)
        console.print(body)
        if record.redacted != record.text:
            console.print(Text.assemble(("  → ", "dim"), _visible(record.redacted, "dim")))
        console.print()
    if not plain:
        legend = [part for label in labels for part in ((f" {label} ", styles[label]), "  ")]
        console.print(
            Text.assemble("π: ", *legend, "π_c alone: ", ("so", "underline yellow"), "   →: what training reads")
        )


def _visible(text: str, style: str) -> Text:
    from rich.text import Text

    from taciturn.screening.measuring.preview import runs

    return Text.assemble(*((run, f"{style} reverse".strip() if escaped else style) for run, escaped in runs(text)))
