"""Bytes in memory where readers take a path: standard input, pipes, members of archives."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path

from taciturn.errors import DataError, UsageError
from taciturn.text.readers.remote import Remote

MOST = 1 << 28
"""Bytes of a pipe or of an archive's member that are held."""
STDIN = ("-", "/dev/stdin")
_PATIENCE = 10.0  # seconds for somebody to begin writing into a named pipe


@dataclass(frozen=True, slots=True)
class Held:
    """Content that can be read again and handed to another process, as a file can. It has what readers use of a path."""

    name: str
    data: bytes = field(repr=False)

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix

    def open(self, mode: str = "rb", buffering: int = -1) -> io.BytesIO:  # noqa: ARG002  # the signature of Path
        return io.BytesIO(self.data)

    @property
    def size(self) -> int:
        return len(self.data)

    def is_dir(self) -> bool:
        return False


File = Path | Held | Remote


def is_stream(path: Path) -> bool:
    """Whether the path is a pipe or a device, which ends being there once it is read."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def standard_input() -> Held:
    """All that comes in. Raises UsageError when a person sits at the other end, DataError for too much."""
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("'-' reads standard input, and nothing is piped into it: COMMAND | taciturn … -")
    return Held("stdin", _within(sys.stdin.buffer.read(MOST + 1), "standard input"))


def stream(path: Path) -> Held:
    """All that comes out of a pipe or a device. Raises DataError for too much, or when nobody writes into it."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as pipe:
            data = _drained(pipe.fileno(), path.name)
    except OSError as error:
        raise DataError(f"cannot read {path.name}: {error.strerror or type(error).__name__}") from None
    return Held("pipe", _within(data, path.name))


def _drained(pipe: int, name: str) -> bytes:
    """Opened for non-blocking reads, a pipe without a writer is at its end at once, and one with a writer is not."""
    found = bytearray()
    ready = select.poll()
    ready.register(pipe, select.POLLIN)
    waited = False
    while len(found) <= MOST:
        try:
            data = os.read(pipe, 1 << 20)
        except BlockingIOError:
            ready.poll()  # somebody holds the other end
            waited = True
            continue
        found += data
        if not data:
            if found or waited:
                break
            if not ready.poll(_PATIENCE * 1000):
                raise DataError(f"nobody writes into the pipe {name}; start what fills it first")
            waited = True
    return bytes(found)


def _within(data: bytes, name: str) -> bytes:
    if len(data) > MOST:
        raise DataError(f"more than {MOST >> 20} MiB come out of {name}; write it to a file and name that")
    return data
