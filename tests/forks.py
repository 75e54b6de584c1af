"""Python processes that need not load torch: forked from one that has loaded what they need, and does nothing else.

To load torch and transformers takes longer than most of what tests do in a process of its own. What is forked runs as a
program of its own would, to the end of the interpreter, with the environment it is given and other random numbers.
"""

from __future__ import annotations

import gc
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import RLock
from typing import IO, Any

_MOST = 1 << 17
_SERVER = "import sys; sys.path[:0] = {path}; from forks import serve; exec(serve({fd}, {modules}))"


class Forked:
    """What tests use of ``subprocess.Popen``, of a process that is not a child of this one."""

    def __init__(self, link: socket.socket, stdout: IO[bytes] | None) -> None:
        self.pid, self.returncode, self.stdout = int(link.recv(16)), None, stdout
        self._link, self._lock = link, RLock()

    def poll(self, patience: float | None = 0) -> int | None:
        while self.returncode is None and self._speaks(patience):
            with self._lock:
                if self.returncode is None:
                    self.returncode = int(self._link.recv(16) or -signal.SIGKILL)
                    self._link.close()
        return self.returncode

    def _speaks(self, patience: float | None) -> bool:
        try:
            return bool(select.select([self._link], [], [], patience)[0])
        except (OSError, ValueError):  # closed by another thread, which has set the code before
            if self.returncode is None:
                raise
            return False

    def wait(self, timeout: float | None = None) -> int:
        found = self.poll(timeout)
        if found is None:
            raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
        return found

    def communicate(self) -> tuple[bytes | None, None]:
        said = None
        if self.stdout is not None:
            with self.stdout:
                said = self.stdout.read()
        self.wait()
        return said, None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


TRAINING = ("many", "tiny")
THIRD_PARTY = (
    "torch.distributed.tensor",
    "transformers.modeling_utils",
    "scipy.stats",
    "pyarrow.parquet",
    "dp_accounting.pld",
)
"""What takes long to load, all of it other people's; transformers' auto classes are not among it."""


def fork(
    code: str,
    env: Mapping[str, str],
    stdout: int | None = None,
    stderr: int | None = None,
    modules: tuple[str, ...] = TRAINING,
    forks: bool = False,
) -> Forked:
    """A process that runs ``code``, with ``modules`` loaded; ``stdout`` and ``stderr`` as subprocess has them. forks: it may
    call this function itself, for processes that are forked from where it was."""
    server = _given or _server(os.getpid(), modules)
    link, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    heard = os.pipe() if stdout == subprocess.PIPE else None
    out = heard[1] if heard else stdout
    task = {"code": code, "env": dict(env), "err": stderr == subprocess.STDOUT, "forks": forks}
    fds = [far.fileno(), *([] if out is None else [out]), *([server.fileno()] if forks else [])]
    socket.send_fds(server, [json.dumps(task).encode()], fds)
    if heard:
        os.close(heard[1])
    far.close()
    return Forked(link, os.fdopen(heard[0], "rb") if heard else None)


_given: socket.socket | None = None
"""The link of a process that may fork and was forked itself."""


@cache
def _server(_: int, modules: tuple[str, ...]) -> socket.socket:
    """The link to the process that forks, which has loaded ``modules`` and ends with this one."""
    here = Path(__file__).parent
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    code = _SERVER.format(path=[str(here), str(here / "training")], fd=theirs.fileno(), modules=modules)
    server = subprocess.Popen([sys.executable, "-c", code], pass_fds=[theirs.fileno()])
    server.returncode = 0  # nobody waits for it
    theirs.close()
    return ours


def serve(fd: int, modules: Sequence[str]) -> str:
    """Fork one process for each task that comes; return in that process, with its code."""
    for name in modules:
        __import__(name)
    gc.freeze()  # what is loaded is shared: at its end each process would else look through, and so copy, all of it
    global _given
    link = socket.socket(fileno=fd)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        said, fds, _, _ = socket.recv_fds(link, _MOST, 3)
        if not said:
            os._exit(0)
        if os.fork() == 0:
            break
        for each in fds:
            os.close(each)
    link.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    task: dict[str, Any] = json.loads(said)
    answer = socket.socket(fileno=fds[0])
    if pid := os.fork():  # minds the other: tells how it ended
        for each in fds[1:]:
            os.close(each)
        answer.send(str(pid).encode())
        answer.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
        os._exit(0)
    answer.close()
    if task["forks"]:
        _given = socket.socket(fileno=fds.pop())
    for each in fds[1:]:
        os.dup2(each, 1)
        os.close(each)
    if task["err"]:
        os.dup2(1, 2)
    os.environ.clear()
    os.environ.update(task["env"])
    _anew()
    return str(task["code"])


def _anew() -> None:
    """What an interpreter finds out at its start, or keeps to itself."""
    import numpy as np
    import torch

    random.seed()
    np.random.seed()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
