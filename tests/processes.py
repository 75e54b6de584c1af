"""Waiting for other processes in tests: as long as they work, however slowly, and no longer.

A clock cannot tell a process that hangs from one on a machine with other work on it. Processor time can: a process that runs
has some, one that waits for what never comes has none.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable
from threading import Thread
from typing import Any, TypeAlias

import psutil

from forks import THIRD_PARTY, Forked, fork

Process: TypeAlias = subprocess.Popen[Any] | Forked

IDLE = 180.0
"""Seconds of (almost) no work by any of the processes after which they are said to hang: more than they wait for each
other. Almost: one that looks now and then whether another has come uses a thousandth of a processor; one that works beside
much else has more than a two-hundredth, niced too."""

MOST = 900.0
"""Processor seconds after which they are said to run in circles."""


def worked(*processes: Process) -> float:
    """Processor seconds of processes and what they started, as far as it is there still."""
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            top = psutil.Process(process.pid)
            for each in (top, *top.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    times = each.cpu_times()
                    total += times.user + times.system
    return total


def until(what: Callable[[], object], *processes: Process, idle: float = IDLE, most: float = MOST) -> None:
    """Return as soon as ``what()`` holds. AssertionError when all ``processes`` have ended without it, hang, or work on
    and on."""
    done, since, look = -1.0, time.monotonic(), 0.0
    while not what():
        # An end and what it left may come between the two looks.
        assert not all(p.poll() is not None for p in processes) or what(), "all processes have ended"
        if (now := time.monotonic()) >= look:
            spent, look = worked(*processes), now + min(1.0, idle / 4)
            if abs(spent - done) > idle / 200:  # less when a child has ended
                done, since = spent, now
            assert now - since < idle, f"nothing was done for {idle:.0f} seconds"
            assert spent < most, f"not there after {spent:.0f} seconds of work"
        time.sleep(0.02)


def ended(*processes: Process, idle: float = IDLE, most: float = MOST) -> list[tuple[Any, Any]]:
    """(what it said, its complaints) of each, once all have ended; on an error, and else, none of them is left."""
    said: list[tuple[Any, Any]] = [(None, None)] * len(processes)

    def hear(i: int) -> None:
        said[i] = processes[i].communicate()

    hearers = [Thread(target=hear, args=(i,), daemon=True) for i in range(len(processes))]
    for hearer in hearers:
        hearer.start()
    try:
        until(lambda: all(p.poll() is not None for p in processes), *processes, idle=idle, most=most)
    except AssertionError as error:
        kill(*processes)
        for hearer in hearers:
            hearer.join(10)
        raise AssertionError(f"{error}; until then: {said}") from None
    finally:
        kill(*processes)
    for hearer in hearers:  # what an ended process wrote is there to be read, unless another holds its pipe too
        hearer.join(idle)
        assert not hearer.is_alive(), "what they started goes on, and holds their output"
    return said


def kill(*processes: Process) -> None:
    """End processes and all that they started."""
    for process in processes:
        below: list[psutil.Process] = []
        with contextlib.suppress(psutil.Error):
            below = psutil.Process(process.pid).children(recursive=True)
        for each in (*below, process):
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                each.kill()


NOTHING_OF_OURS = """
import sys
assert not [name for name in sys.modules if name.partition(".")[0] == "taciturn"]
assert "transformers.models.auto.modeling_auto" not in sys.modules
"""


def fresh(code: str) -> str:
    """What ``code`` prints in an interpreter that has loaded torch and what else takes long, but nothing of ours nor
    transformers' auto classes, for which our registration waits. AssertionError when it fails."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = fork(f"{NOTHING_OF_OURS}\n{code}", env, subprocess.PIPE, subprocess.STDOUT, modules=THIRD_PARTY)
    said: bytes = ended(process)[0][0]
    assert process.returncode == 0, said[-500:]
    return said.decode()
