"""δ₂ of annotated secrets with skeletons and without, by label; and the file that says which were missed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

if TYPE_CHECKING:
    from taciturn.screening.corpus.gold import Gold

Misses = Annotated[
    Path | None,
    Parameter(help="write the annotated secrets that both policies miss, with their text (JSON lines, mode 0600)"),
]


def writable(path: Path | None) -> None:
    """Raises UsageError where no new file can be written at ``path``: an old one may be all there is of something."""
    from taciturn.errors import UsageError

    if path is not None and path.exists():
        raise UsageError(f"{path} exists; name another file for --misses, or remove it")
    if path is not None and not path.parent.is_dir():
        raise UsageError(f"--misses: there is no folder {path.parent}")


def print_gold(title: str, gold: Sequence[Gold]) -> None:
    """One row a label, after one for all of them."""
    from taciturn.cli.show import out, table
    from taciturn.screening.corpus.gold import together

    def share(n: int, of: int) -> str:
        return f"{n:,} ({100 * n / of:.1f} %)" if of else "–"

    rows = [
        (
            each.label if each is whole else f"  {each.label}",
            f"{each.spans:,}",
            share(each.missed_by_pi, each.spans),
            share(each.with_skeletons, each.spans),
            share(each.without_skeletons, each.spans),
        )
        for whole in [together(gold)]
        for each in (whole, *gold)
    ]
    columns = ("annotated", "secrets", "missed by π", "by both (δ₂), with skeletons", "by both (δ₂), --no-skeletons")
    out.print(table(title, columns, rows))


def write_misses(path: Path, misses: Iterable[Mapping[str, Any]]) -> None:
    """Write them, whole or not at all, and say how many; their text is nowhere else."""
    import orjson

    from taciturn.cli.show import talk
    from taciturn.text.atomic import write_bytes

    lines = [orjson.dumps(each) + b"\n" for each in misses]
    write_bytes(path, b"".join(lines), mode=0o600)
    talk.print(f"{path} holds the text of {len(lines):,} missed secrets (mode 0600): keep it with the corpus")
