"""Files written whole or not at all, and files that nobody else reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


def create(path: Path) -> BinaryIO:
    """A new file that only its owner can read, in place of whatever an interrupted run left there."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Write UTF-8 text through a temporary file beside it: a reader sees the old file or the new one, never half."""
    write_bytes(path, text.encode(), mode)


def write_bytes(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write bytes: temporary file, fsync, rename."""
    partial = path.with_name(path.name + ".partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
