"""The files of a run's folder, read back: each is there or not, and whole or damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from taciturn.errors import DataError


def plan_of(folder: Path) -> dict[str, Any]:
    """plan.json. Raises DataError where there is none: the folder is no run then."""
    plan = json_object(folder / "plan.json")
    if plan is None:
        raise DataError(f"{folder} is not a run folder: plan.json is missing; `taciturn train` writes one")
    return plan


def json_object(path: Path) -> dict[str, Any] | None:
    """The object in a file, None where there is no file. Raises DataError when it holds anything else."""
    if not path.is_file():
        return None
    try:
        value = json.loads(path.read_bytes())
    except ValueError:
        value = None
    if not isinstance(value, dict):
        # The parser's own message can quote the file, so it is not passed on.
        raise DataError(f"{path} is damaged: expected one JSON object")
    return value


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Rows of a JSON lines file. A last line cut short by a killed process is left out."""
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
            if number == len(lines):
                return
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {number}: expected one JSON object per line")
        yield row
