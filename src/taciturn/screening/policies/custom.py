"""Detectors from a TOML file: patterns of one's own, and the built-in ones with options.

[[detector]]
name = "badge"
pattern = 'B-\\d{5}'
must_find = ["badge B-10422"]

[[detector]]
use = "spacy:high-entity"
labels = ["PERSON", "ORG"]
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from taciturn.errors import DataError, UsageError, nearest
from taciturn.screening.policies import registry
from taciturn.screening.policies.finder import Detector
from taciturn.screening.policies.narrowed import Narrowed, labels_of
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


class UseTable(BaseModel):
    """One ``[[detector]]`` with ``use``, the name of a detector, a preset or a family. labels, threshold: what to keep of
    what it finds. name: another name for it, when it is one detector. Every other key is an option of the family."""

    model_config = ConfigDict(extra="allow", strict=True)

    use: str = Field(min_length=1)
    name: str = Field(default="", min_length=1)
    labels: list[str] = Field(default=[], min_length=1)
    threshold: float = Field(default=0.0, ge=0.0, le=1.0)


def detectors(path: Path) -> list[Detector]:
    """The detectors a TOML file defines. Raises DataError (unreadable), UsageError (wrong key, type, name or pattern)."""
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
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise UsageError(f"{path.name}: no [[detector]] in it; define at least one")
    found: list[Detector] = []
    for number, entry in enumerate(entries, 1):
        where = f"{path.name}, detector {number}"
        found += _used(entry, where) if "use" in entry else [_pattern(entry, where)]
    names = [d.name for d in found]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{path.name}: detector '{name}' is defined twice; give one of them another 'name'")
    return found


def _pattern(entry: dict[str, Any], where: str) -> Regex:
    try:
        table = DetectorTable.model_validate(entry)
    except ValidationError as error:
        raise UsageError(f"{where}: {_words(error, [*DetectorTable.model_fields, 'use'])}") from None
    options = table.model_dump()
    return Regex(**{**options, "must_find": tuple(table.must_find)})


def _used(entry: dict[str, Any], where: str) -> list[Detector]:
    try:
        table = UseTable.model_validate(entry)
    except ValidationError as error:
        raise UsageError(f"{where}: {_words(error, UseTable.model_fields)}") from None
    options = dict(table.model_extra or {})
    labels, threshold = tuple(table.labels), table.threshold
    prefix = table.use.partition(":")[0]
    if prefix in registry.FAMILIES:
        own = registry.options(prefix)  # a family that knows labels or thresholds of its own gets them
        if labels and "labels" in own:
            options["labels"], labels = list(labels), ()
        if "threshold" in own and "threshold" in table.model_fields_set:
            options["threshold"], threshold = threshold, 0.0
    elif options:
        key = next(iter(options))
        raise UsageError(f"{where}: unknown key '{key}'; {nearest(key, UseTable.model_fields)}")
    try:
        found = registry.resolve(table.use, options)
        return _narrowed(found, table.name, labels, threshold)
    except UsageError as error:
        raise type(error)(f"{where}: {error}") if type(error) is UsageError else error from None


def _narrowed(found: list[Detector], name: str, labels: tuple[str, ...], threshold: float) -> list[Detector]:
    if name and len(found) > 1:
        raise UsageError(f"'name' renames one detector, and this is {len(found)}; leave it out")
    if not (name or labels or threshold):
        return found
    known = {label for d in found for label in labels_of(d) or labels}
    for label in labels:
        if label not in known:
            raise UsageError(f"unknown label '{label}'; {nearest(label, known)}")
    # Of several detectors each keeps the labels it has; one that has none of them is left out.
    kept = [(d, tuple(x for x in labels if x in (labels_of(d) or labels))) for d in found]
    return [Narrowed(d, name or d.name, own, threshold) for d, own in kept if own or not labels]


def _words(error: ValidationError, known: Any) -> str:
    # An unknown key first: it explains the missing one.
    first = max(error.errors(include_input=False), key=lambda e: e["type"] == "extra_forbidden")
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown key '{key}'; {nearest(key, known)}"
    return f"'{key}': {first['msg'].lower()}"
