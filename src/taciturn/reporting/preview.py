"""A page of records with what the policies mark in colour: local, no script, no network. It holds their text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from taciturn.errors import MissingExtra
from taciturn.screening.measuring.preview import Shown, runs
from taciturn.text.atomic import write_bytes

_HUES = 8


def write(out: Path, records: Sequence[Shown], pi: str, conservative: str) -> None:
    """Write the page, mode 0600."""
    out.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(out, render(records, pi, conservative).encode("utf-8"), mode=0o600)


def render(records: Sequence[Shown], pi: str, conservative: str) -> str:
    """The page as a string. Raises MissingExtra without jinja2."""
    try:
        import jinja2
    except ModuleNotFoundError as error:
        raise MissingExtra("jinja2", "report") from error

    labels = list(dict.fromkeys(p.label for r in records for p in r.pieces if p.by == "π"))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["runs"] = runs
    return environment.get_template("preview.html").render(
        records=records,
        pi=pi,
        conservative=conservative,
        hues={label: i % _HUES for i, label in enumerate(labels)},
        public=sum(r.part == "public" for r in records),
    )
