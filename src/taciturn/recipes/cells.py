"""Cells: what a recipe measures once, keeps in a file, and reads from there the next time."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import taciturn
from taciturn.errors import TaciturnError
from taciturn.text.locks import hold

NAME = 78
"""Characters of a cell's settings that are told when it begins."""

Row = dict[str, Any]
"""Plain numbers, strings, lists and dictionaries of them: what JSON holds, and infinities."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work folder of one recipe: ``cells/`` with one file a cell, ``screened/`` and ``runs/`` for whoever measures.

    notify: told one line of plain text when a cell begins and when it ends. A cell is written when it is complete, and
    renamed into its place, so a recipe that was killed goes on where it stopped. asked: every cell asked for so far, by the
    name of its file: its key, its row, and the CPU seconds it took.
    """

    folder: Path
    notify: Callable[[str], None] = lambda _: None
    asked: dict[str, Row] = field(default_factory=dict)

    def cell(self, key: Mapping[str, Any], measure: Callable[[], Row]) -> Row:
        """The row of ``key``: read if it is there, else measured; where another process measures it, that is waited for.
        key: every setting that decides it.

        The version of taciturn is part of the key. CPU seconds of this process are kept with the row, and count towards
        the recipe's whether they were spent now or then.
        """
        there = self.kept(key)
        if there is not None:
            return there
        full, path = self._at(key)
        with _alone(path):
            there = self.kept(key)
            if there is not None:  # measured by another process meanwhile
                return there
            self.notify(", ".join(f"{k} {v}" for k, v in key.items() if isinstance(v, str | int | float))[:NAME])
            began = time.process_time()
            row = measure()
            self._write(path, {"key": full, "row": _plain(row), "seconds": round(time.process_time() - began, 2)})
        return dict(_numbers(self.asked[path.stem]["row"]))

    def kept(self, key: Mapping[str, Any]) -> Row | None:
        """The row of ``key`` if it is there."""
        _, path = self._at(key)
        if not path.exists():
            return None
        self.asked[path.stem] = kept = json.loads(path.read_text())
        return dict(_numbers(kept["row"]))

    def keep(self, key: Mapping[str, Any], row: Row) -> None:
        """A row that is found anew each time, in the place of an older one: for those who have the rows alone."""
        full, path = self._at(key)
        self._write(path, {"key": full, "row": _plain(row), "seconds": 0.0})

    def _at(self, key: Mapping[str, Any]) -> tuple[Row, Path]:
        """The whole key as JSON holds it, and the file of its cell."""
        full = json.loads(json.dumps({**key, "taciturn": taciturn.__version__}, sort_keys=True, default=str))
        return full, self.folder / "cells" / f"{_digest(full)}.json"

    def _write(self, path: Path, kept: Row) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(kept, allow_nan=False, sort_keys=True))
        part.replace(path)
        self.asked[path.stem] = kept

    def restore(self, lines: str) -> None:
        """Cells from what :meth:`lines` gave, so that they are not measured again; those that are there stay."""
        for line in lines.splitlines():
            kept = json.loads(line)
            path = self.path("cells", f"{_digest(kept['key'])}.json")
            if not path.exists():
                path.write_text(json.dumps(kept, allow_nan=False, sort_keys=True))

    def path(self, *parts: str) -> Path:
        """A path inside the folder, its parent made."""
        path = self.folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def seconds(self) -> float:
        """CPU seconds of all cells asked for so far."""
        return sum(float(each["seconds"]) for each in self.asked.values())

    def lines(self) -> str:
        """All cells asked for, as JSON lines: with them a page can be made again without measuring anything."""
        return "".join(json.dumps(each, allow_nan=False, sort_keys=True) + "\n" for each in self.asked.values())


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Nobody else is in such a block for the cell at ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_suffix(".lock")
    with ExitStack() as stack:
        while True:
            file = stack.enter_context(lock.open("w"))
            hold(file.fileno(), path.parent, lambda: TaciturnError(f"{path.parent} is busy"), wait=True)
            if _same(file.fileno(), lock):
                break  # else whoever held it has removed it, and others lock the next one
        stack.callback(lock.unlink, missing_ok=True)
        yield


def _same(descriptor: int, path: Path) -> bool:
    """Whether the open file is the one that is there now."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _digest(key: Row) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:20]


def _plain(value: Any) -> Any:
    """JSON has no infinities: they are written as a dictionary of one."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"float"}:
            return float(value["float"])
        return {key: _numbers(item) for key, item in value.items()}
    return [_numbers(item) for item in value] if isinstance(value, list) else value
