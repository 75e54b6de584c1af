"""A limit on the processor time of a detector, so that one text cannot stop a corpus."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


class Late(BaseException):
    """The time is up. Not an Exception, so that what a detector catches inside is not this."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise Late in the block once this process has computed for so long.

    Processor time, so that a busy machine changes nothing. Works in the main thread, where worker processes run detectors,
    and between bytecodes or inside ``re``; elsewhere, and where another virtual timer runs, there is no limit.
    """
    here = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    if not here or signal.getitimer(signal.ITIMER_VIRTUAL)[0]:
        yield
        return

    def late(*_: object) -> NoReturn:
        raise Late

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
