"""What a project's folder remembers: which settings each numbered folder was made from, and which steps are done.

    FOLDER/state.json     this file (mode 0600: keys are functions of the corpus)
    FOLDER/screened/N     one screened corpus for each setting of everything before training
    FOLDER/runs/N         one run for each plan; nothing here is ever overwritten

A step has a key: a hash of its settings and of what it reads. It is written before the step begins (so that a killed
step is taken up again) and marked done after it. Written whole or not at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from taciturn.errors import DataError, UsageError
from taciturn.text.atomic import write_bytes
from taciturn.text.locks import hold

FILE, LOCK = "state.json", "lock"


def key_of(*parts: Any) -> str:
    """32 hex digits, a hash of plain data.

    >>> key_of({"a": 1, "b": None}) == key_of({"b": None, "a": 1})
    True
    """
    return hashlib.blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()


def file_key(path: Path) -> str:
    """A hash of a file's bytes; "" where there is none."""
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest() if path.is_file() else ""


@dataclass(slots=True)
class State:
    """folders: kind → the key of folder 1, 2, ...; done, begun: step → its key."""

    folder: Path
    folders: dict[str, list[str]] = field(default_factory=dict)
    done: dict[str, str] = field(default_factory=dict)
    begun: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def read(folder: Path) -> State:
        """Raises DataError when the file is damaged."""
        try:
            data = orjson.loads((folder / FILE).read_bytes())
            return State(folder, **{name: data[name] for name in ("folders", "done", "begun")})
        except FileNotFoundError:
            return State(folder)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{folder / FILE} is damaged ({type(error).__name__}): move the folder away, or continue by hand with "
                "taciturn train, certify, audit and report on what is in it"
            ) from None

    def place(self, kind: str, key: str) -> Path:
        """The numbered folder of ``kind`` for ``key``; a new number is written down before it is used."""
        keys = self.folders.setdefault(kind, [])
        if key not in keys:
            keys.append(key)
            self._write()
        path = self.folder / kind / str(keys.index(key) + 1)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def is_done(self, step: str, key: str) -> bool:
        return self.done.get(step) == key

    def begin(self, step: str, key: str) -> None:
        self.done.pop(step, None)
        self.begun[step] = key
        self._write()

    def finish(self, step: str, key: str) -> None:
        self.done[step] = key
        self._write()

    def _write(self) -> None:
        data = {"format": 1, "folders": self.folders, "done": self.done, "begun": self.begun}
        write_bytes(self.folder / FILE, orjson.dumps(data, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2), 0o600)


@contextmanager
def opened(folder: Path) -> Iterator[State]:
    """The state of a folder, made with mode 0700, for one process at a time. UsageError when another one has it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / LOCK).open("ab") as lock:
        hold(lock.fileno(), folder, lambda: UsageError(f"another taciturn run is at work in {folder}; wait for it"))
        yield State.read(folder)
