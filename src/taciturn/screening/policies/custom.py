"""Detectors from a TOML file.

[[detector]]
name = "badge"
pattern = 'B-\\d{5}'
must_find = ["badge B-10422"]
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from taciturn.errors import DataError, UsageError, nearest
from taciturn.screening.policies.regex import Regex


class DetectorTable(BaseModel):
    """One ``[[detector]]``. pattern: Python ``re``, tried on the folded text. must_find: texts it has to find."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(min_length=1)
    pattern: str = Field(min_length=1)
    must_find: list[str] = Field(min_length=1)
    label: str = ""
    check: str = ""
    group: int = Field(default=0, ge=0)
    ignore_case: bool = False


def detectors(path: Path) -> list[Regex]:
    """The detectors a TOML file defines. Raises DataError (unreadable), UsageError (wrong key, type or pattern)."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path.name}: cannot be read as UTF-8 text ({type(error).__name__})") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path.name}: not valid TOML: {error}") from None
    for key in tables:
        if key != "detector":
            raise UsageError(f"{path.name}: unknown key '{key}'; {nearest(key, ['detector'])}")
    entries = tables.get("detector")
    if not isinstance(entries, list) or not entries:
        raise UsageError(f"{path.name}: no [[detector]] in it; define at least one")
    found = [_detector(entry, f"{path.name}, detector {number}") for number, entry in enumerate(entries, 1)]
    names = [d.name for d in found]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{path.name}: detector '{name}' is defined twice")
    return found


def _detector(entry: dict[str, Any], where: str) -> Regex:
    try:
        table = DetectorTable.model_validate(entry)
    except ValidationError as error:
        raise UsageError(f"{where}: {_words(error)}") from None
    options = table.model_dump()
    return Regex(**{**options, "must_find": tuple(table.must_find)})


def _words(error: ValidationError) -> str:
    # An unknown key first: it explains the missing one.
    first = max(error.errors(include_input=False), key=lambda e: e["type"] == "extra_forbidden")
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown key '{key}'; {nearest(key, DetectorTable.model_fields)}"
    return f"'{key}': {first['msg'].lower()}"
