"""What waits for processes: an answer from one that works, and an end to one that does not."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest

from processes import ended, until, worked


def python(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_what_processes_say_is_returned_even_much_of_it_by_the_second() -> None:
    first = python("input = __import__('time').sleep(.2); print('one')")
    second = python("import sys; print('x' * 10**6); print('oh', file=sys.stderr)")
    (one, _), (much, oh) = ended(first, second)
    assert (one, len(much), oh) == ("one\n", 10**6 + 1, "oh\n")
    assert (first.returncode, second.returncode) == (0, 0)


def test_one_that_hangs_is_ended_and_so_are_its_children() -> None:
    process = python(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])\n"
        "print(child.pid, flush=True); time.sleep(1000)"
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    with pytest.raises(AssertionError, match="nothing was done for 1 seconds"):
        ended(process, idle=1)
    assert process.wait() == -9
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)


def test_one_that_runs_in_circles_is_ended() -> None:
    process = python("while True: pass")
    with pytest.raises(AssertionError, match="of work"):
        until(lambda: False, process, most=0.5)
    assert worked(process) >= 0.5
    process.kill()
    with pytest.raises(AssertionError, match="all processes have ended"):
        until(lambda: False, process)
    process.communicate()
