"""How long something takes, in tests that it must not take longer than in proportion."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """CPU seconds of the quickest of ``times``: other work and page faults only ever add to it. No garbage is collected
    meanwhile, which in a process that holds a test suite takes up to a second."""
    taken = []
    was = gc.isenabled()
    gc.disable()
    try:
        for _ in range(times):
            start = time.process_time()
            work()
            taken.append(time.process_time() - start)
    finally:
        if was:
            gc.enable()
    return min(taken)


def in_proportion(
    short: Callable[[], object], long: Callable[[], object], most: float, slack: float = 0.05, tries: int = 6
) -> bool:
    """Whether ``long`` takes at most ``most`` times what ``short`` takes, and ``slack`` CPU seconds, in one of some tries.

    Processor time too is longer beside other work, which shares caches and cores. So both are taken one right after the
    other: other work slows both, or one of them in some tries; what grows too fast does so in all.
    """
    return any(seconds(long, 1) <= most * seconds(short, 1) + slack for _ in range(tries))
