"""One process at a time in a run's folder: the lock lies beside the checkpoints, and goes with the process that holds it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from taciturn.errors import DataError
from taciturn.text.locks import hold

LOCK = "lock"


@contextmanager
def training(out: Path, resume: bool) -> Iterator[None]:
    """Hold the run folder ``out`` for as long as its run goes on in this process. Raises DataError when another process
    holds it, or reads it (:func:`reading`), or when there is nothing to resume."""
    folder = out / "checkpoints"
    if resume and not folder.is_dir():
        raise DataError(f"nothing to resume in {out}: expected {folder.name}/ in it; train without --resume")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / LOCK).open("a+b") as file:
        os.fchmod(file.fileno(), 0o600)
        hold(file.fileno(), out, lambda: _busy(file.fileno(), out))
        file.truncate(0)
        file.write(str(os.getpid()).encode())
        file.flush()
        yield


@contextmanager
def reading(out: Path) -> Iterator[None]:
    """Keep training out of the run folder ``out``. Raises DataError while it goes on there."""
    try:
        file = (out / "checkpoints" / LOCK).open("rb")
    except OSError:  # a folder that was handed on without its checkpoints
        yield
        return
    with file:
        hold(file.fileno(), out, lambda: _busy(file.fileno(), out), shared=True)
        yield


def _busy(descriptor: int, out: Path) -> DataError:
    who = os.pread(descriptor, 20, 0).decode("ascii", "replace")
    return DataError(
        f"another process{f' ({who})' if who.isdigit() else ''} is at work in {out}: wait until it ends, or stop it"
    )
