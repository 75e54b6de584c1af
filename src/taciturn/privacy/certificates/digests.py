"""Files as a verifier reads them: regular ones, not too large, JSON not too deep; and the digests of all files of a model.

Nothing here follows a link, waits for a pipe, or reads more than it was told to expect.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any

import orjson

from taciturn.errors import DataError

JSON_BYTES = 2 << 20
JSON_VALUES = 100_000
JSON_DEPTH = 24
MODEL_FILES = 10_000
MODEL_DEPTH = 12


def opened(path: Path) -> BufferedReader:
    """The regular file ``path``, open for reading. DataError for anything else: a link, a folder, a pipe, a device."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        if path.is_symlink():
            raise DataError(f"{path.name}: a symbolic link, expected a file; copy what it points to")
        descriptor = os.open(path, flags)
    except OSError as error:
        raise DataError(f"{path.name}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise DataError(f"{path.name!r}: not the name of a file") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DataError(f"{path.name}: not a regular file")
    return os.fdopen(descriptor, "rb")


def read_bytes(path: Path, most: int = JSON_BYTES) -> bytes:
    """All of a file of at most ``most`` bytes."""
    with opened(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise DataError(f"{path.name}: larger than {most} bytes, which no file of a run is")
    return content


def load_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A JSON object from a file; DataError says what is wrong with it."""
    path = Path(path)
    content = read_bytes(path)
    if sum(map(content.count, (b",", b"[", b"{"))) > JSON_VALUES:
        raise DataError(f"{path.name}: more than {JSON_VALUES} values, which no file of a run has")
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise DataError(f"{path.name}: not valid JSON, or nested too deep") from error
    if not isinstance(value, dict):
        raise DataError(f"{path.name}: expected a JSON object, found {type(value).__name__}")
    if too_deep(value):
        raise DataError(f"{path.name}: nested deeper than {JSON_DEPTH} levels, which no file of a run is")
    return value


def too_deep(value: Any, most: int = JSON_DEPTH) -> bool:
    """Whether lists and objects are nested more than ``most`` deep; without recursion."""
    level = [value]
    for _ in range(most):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return any(isinstance(each, dict | list) for each in level)


def canonical(value: Any) -> bytes:
    """Sorted keys, two spaces, shortest floats that read back exactly, a final newline."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def write_json(path: str | os.PathLike[str], value: Any) -> Path:
    """Write canonical JSON atomically."""
    path = Path(path)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_bytes(canonical(value))
    os.replace(draft, path)
    return path


def file_digest(path: Path) -> str:
    """SHA-256 of a regular file, in hexadecimal."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree(folder: Path) -> Iterator[str]:
    """Every file under ``folder``, hidden ones too, as posix paths relative to it, sorted within each folder.

    Raises DataError for a link, a pipe, a name that is not Unicode, and for more files or levels than a model has.
    """
    found = 0
    waiting = [(folder, "")]
    while waiting:
        place, prefix = waiting.pop()
        if place.is_symlink():
            raise DataError(f"{prefix or folder.name}: a symbolic link in the place of a folder")
        with os.scandir(place) as listing:
            for entry in sorted(listing, key=lambda each: each.name):
                name, found = f"{prefix}{entry.name}", found + 1
                if not name.isprintable() or "\\" in name:
                    raise DataError(f"{name!r}: not a name that a model's file can have")
                if found > MODEL_FILES or name.count("/") > MODEL_DEPTH:
                    raise DataError(f"{folder.name}: more than {MODEL_FILES} files or {MODEL_DEPTH} levels of folders")
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((Path(entry.path), f"{name}/"))
                elif entry.is_file(follow_symlinks=False):
                    yield name
                else:
                    raise DataError(f"{name}: a link, pipe or device, expected a file; copy what it points to")
