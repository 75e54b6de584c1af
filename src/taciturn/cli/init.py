"""taciturn init: a project file from a look at the files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from taciturn.cli.options import Json
from taciturn.mechanisms import MECHANISMS


def init(
    *files: Annotated[str, Parameter(help="files, folders or globs, as for `taciturn screen`")],
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="the project file to write")] = Path(
        "project.toml"
    ),
    mechanism: Annotated[str, Parameter(help=f"one of {', '.join(MECHANISMS)}")] = "crt",
    model: Annotated[str, Parameter(help="lstm, a folder or a hub name")] = "lstm",
    encoding: Annotated[str | None, Parameter(help="of text files, if it is not UTF-8: cp1252, utf-16")] = None,
    format: Annotated[str, Parameter(help="if the files' names do not say it: lines, whatsapp, slack")] = "auto",
    force: Annotated[bool, Parameter(help="replace a project file that exists", negative="")] = False,
    json: Json = False,
) -> None:
    """Look at files (format, fields, users, language) and write a commented project file with every setting in it.

    Nothing of the files' text goes into it. Read it, change it, then `taciturn run` does what it says.

    Example: `taciturn init mail/*.jsonl -o project.toml`
    """
    import os

    from taciturn.cli.show import as_json, out, step, table, talk
    from taciturn.errors import UsageError
    from taciturn.mechanisms.registry import mechanism as mechanism_named
    from taciturn.project.inspect_files import inspect
    from taciturn.project.left_out import left_out
    from taciturn.project.settings import named
    from taciturn.project.suggest import language_note, suggest, suggested_comments
    from taciturn.project.write import render
    from taciturn.text.atomic import write_text
    from taciturn.text.readers import read
    from taciturn.text.urls import is_url

    if "-" in files or "/dev/stdin" in files:
        raise UsageError(
            "a project reads its files again and again, and standard input only once: save it to a file first"
        )
    if output.exists() and not force:
        raise UsageError(f"{output} exists: name another file with -o, or replace it with --force")
    mechanism_named(mechanism)
    base = output.absolute().parent
    base.mkdir(parents=True, exist_ok=True)
    with step("looking at the files"):
        seen = inspect(read(*files, format=format, encoding=encoding), format)
    paths = [
        file if file.startswith("hf:") or is_url(file) else os.path.relpath(Path(file).expanduser().absolute(), base)
        for file in files
    ]
    settings = suggest(seen, paths, output.stem, mechanism, model, format, encoding, named(output))
    write_text(output, render(settings, output.name, suggested_comments(seen, settings)))
    facts = {
        "format": dict(seen.formats),
        "text": seen.text,
        "other_texts": list(seen.texts[1:]),
        "user": seen.user,
        "label": seen.label,
        "id": seen.id,
        "chat": seen.chat,
        "annotated": seen.spans,
        "annotations": seen.annotated or None,
        "may be users": list(seen.maybe_users[:4]),
        "language": seen.language,
        "lower_case": seen.lower,
        "documents": seen.documents,
        "whole": seen.whole,
        "users": seen.users,
        "mean_characters": round(seen.mean_characters, 1),
        "bytes": seen.bytes,
        "unit": settings.screen.unit,
        "policy": list(settings.screen.policy),
        "conservative": list(settings.screen.conservative),
        "unreadable": [name for name, _ in seen.unreadable],
    }
    for name, why in seen.unreadable:
        talk.print(f"left as it is, it would stop the screening: {name}: {why}")
    without = [said for lines in left_out(seen, settings).values() for said in lines]
    if json:
        as_json({"project": str(output), "seen": facts, "left_out": without})
    else:
        rows = [(name.replace("_", " "), _said(value)) for name, value in facts.items() if value not in (None, [])]
        out.print(table("seen and suggested", ("what", "value"), rows))
        for said in (language_note(seen), *without):
            out.print(said)
    talk.print(f"wrote {output}; read it, then: taciturn run {output}")


def _said(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} {kind}" for kind, count in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return (
        {True: "yes", False: "no"}[value]
        if isinstance(value, bool)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )
