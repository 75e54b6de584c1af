"""What waits for processes: an answer from one that works, and an end to one that does not."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from forks import fork
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


def test_a_forked_process_is_as_one_of_its_own(tmp_path: Path) -> None:
    """Its own environment, output, exit code and random numbers; signals reach it; how it ended is told."""
    code = "import os, sys, random; print(os.environ['NAME'], many.__name__, random.random()); print('oh', file=sys.stderr)"
    env = {**os.environ, "OMP_NUM_THREADS": "1", "NAME": "a name"}
    both = [fork(f"import many; {code}; sys.exit(7)", env, subprocess.PIPE, subprocess.STDOUT) for _ in range(2)]
    said = [each[0].decode() for each in ended(*both)]
    assert [process.returncode for process in both] == [7, 7]
    assert said[0] != said[1]
    assert all(each.startswith("a name many 0.") and each.endswith("oh\n") for each in said)
    hung = fork(f"import time, pathlib; pathlib.Path({str(tmp_path / 'here')!r}).touch(); time.sleep(1000)", env)
    until((tmp_path / "here").exists, hung)
    assert hung.poll() is None
    with pytest.raises(AssertionError, match="nothing was done for 1 seconds"):
        ended(hung, idle=1)
    assert hung.wait() == -9


def test_threads_that_ask_a_forked_process_at_once_get_its_code() -> None:
    """One of them closes the link while others are about to look at it."""
    for _ in range(20):
        process = fork("pass", os.environ)
        found: list[int | None] = []

        def ask(process: Any = process, found: list[int | None] = found) -> None:
            while process.poll() is None:
                pass
            found.append(process.poll())

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert found == [0] * 6
