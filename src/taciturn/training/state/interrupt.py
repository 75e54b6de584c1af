"""Stopping at the end of a step: what SIGINT and SIGTERM mean while a run goes on."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Yields a function that says whether SIGINT or SIGTERM came: the loop then finishes its step and saves. A second one
    raises KeyboardInterrupt at once. Outside the main thread there is no handler.
    """
    asked: list[int] = []

    def handler(*_: Any) -> None:
        asked.append(1)
        if len(asked) > 1:
            raise KeyboardInterrupt

    try:
        previous = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:
        yield lambda: False
        return
    try:
        yield lambda: bool(asked)
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
