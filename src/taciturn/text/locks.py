"""One process at a time, by the file system's own locks: they go with the process that holds them, however it ends."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

from taciturn.errors import DataError, TaciturnError


def hold(
    descriptor: int, folder: Path, busy: Callable[[], TaciturnError], *, shared: bool = False, wait: bool = False
) -> None:
    """Lock an open file in ``folder`` until it is closed. Raises ``busy()`` when another process holds it (or waits for it),
    DataError where the file system has no locks."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise busy() from None
    except OSError as error:
        raise DataError(
            f"{folder} cannot be locked ({error.strerror}): name a folder on a file system with locks"
        ) from error
