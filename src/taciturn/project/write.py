"""project.toml as text: every setting with its value and a comment, in the order of the models of settings.py."""

from __future__ import annotations

import textwrap
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tomli_w
from pydantic import BaseModel

from taciturn.mechanisms.config import parse
from taciturn.mechanisms.registry import mechanism
from taciturn.project.comments import words_for
from taciturn.project.settings import Plan, Settings

HEAD = """\
# A taciturn project: {name}. Written by `taciturn init` from a look at the files; nothing in it is text of theirs.
# `taciturn run {name}` does what it says, step by step, and goes on where it stopped.
# Every setting is here; a line that begins with "#" shows one that is left out.
"""
COMMENT_AT = 36
WIDTH = 118


def render(settings: Settings, name: str, notes: Mapping[str, Sequence[str]] | None = None) -> str:
    """The file. notes: further comments by table. Equal arguments give equal bytes."""
    lines = [*HEAD.format(name=name).splitlines(), ""]
    lines += _table(settings, "", notes or {}, off=False)
    return "\n".join(lines).strip("\n") + "\n"


def _table(model: BaseModel, path: str, notes: Mapping[str, Sequence[str]], off: bool) -> Iterator[str]:
    """A table: its values, then the tables in it. off: written as comments."""
    tables: list[tuple[str, Any, bool]] = []
    for name in type(model).model_fields:
        value, key = getattr(model, name), f"{path}.{name}".lstrip(".")
        if isinstance(model, Plan) and name == "options":
            made = mechanism(model.mechanism)
            tables.append((key, parse(made.Config, value, f"options of {model.mechanism}"), off))
        elif isinstance(value, BaseModel | dict) and words_for(key, table=True)[0]:
            tables.append((key, value, off))
        elif value is None and (inner := _table_of(type(model), name)):
            tables.append((key, inner, True))
        else:
            yield _line(name, value, key, off)
    for key, value, hidden in tables:
        yield ""
        said, example = words_for(key, table=True)
        for line in (said, *notes.get(key, ())):
            yield from textwrap.wrap(line, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
        yield f"{'# ' if hidden else ''}[{key}]"
        if isinstance(value, BaseModel):
            yield from _table(value, key, notes, hidden)
        else:
            yield from (_line(name, each, f"{key}.{name}", hidden) for name, each in value.items())
            if not value and example:
                yield f"# {example}"


def _line(name: str, value: Any, path: str, off: bool) -> str:
    said, example = words_for(path)
    setting = f"# {name} = {example}" if value is None else f"{'# ' if off else ''}{name} = {toml(value)}"
    if not said:
        return setting
    line = f"{setting:<{COMMENT_AT}}  # {said}"
    return line if len(line) <= WIDTH else f"# {said}\n{setting}"


def _table_of(model: type[BaseModel], name: str) -> BaseModel | None:
    """The table that an optional field would hold, at its defaults; those that must be given are shown by example."""
    annotation = model.model_fields[name].annotation
    if typing.get_origin(annotation) not in (types.UnionType, typing.Union):
        return None
    for kind in typing.get_args(annotation):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            needed = {field: None for field, about in kind.model_fields.items() if about.is_required()}
            return kind.model_construct(**needed)
    return None


def toml(value: Any) -> str:
    """A value on one line.

    >>> toml(("a", "b")), toml({"x": 1.5}), toml(True)
    ('["a", "b"]', '{ x = 1.5 }', 'true')
    """
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + " }" if value else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").rstrip("\n")
