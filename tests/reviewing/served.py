"""A review served by another process, as a user starts it."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processes import ended

_RUN = "import sys; from taciturn.cli.main import main; main(sys.argv[1:])"


@dataclass(slots=True)
class Served:
    """url: with the token. process: the command; out: what it printed, once it has ended."""

    url: str
    process: subprocess.Popen[str]
    out: str = ""
    err: str = ""
    code: int | None = None
    cookie: str = ""

    @property
    def base(self) -> str:
        return self.url.partition("/?")[0]

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        if self.code is None:
            self.process.send_signal(how)
            [(self.out, rest)] = ended(self.process)
            self.err, self.code = self.err + rest, self.process.returncode

    def json(self) -> Any:
        return json.loads(self.out)

    def ask(self, path: str, change: dict[str, Any] | None = None) -> Any:
        """An answer of the review, as its page would get it."""
        with closing(http.client.HTTPConnection(self.base.removeprefix("http://"))) as link:
            if not self.cookie:
                link.request("GET", self.url.removeprefix(self.base))
                answer = link.getresponse()
                self.cookie = (answer.getheader("Set-Cookie") or "").partition(";")[0]
                answer.read()
            headers = {"Cookie": self.cookie, "Content-Type": "application/json"}
            body = None if change is None else json.dumps(change)
            link.request("GET" if body is None else "POST", path, body, headers)
            answer = link.getresponse()
            said = answer.read()
            assert answer.status == 200, said
            return json.loads(said)

    def change(self, at: int, **change: Any) -> Any:
        """A change to a record as it is now."""
        now = self.ask(f"/records/{at}")["record"]
        return self.ask(f"/records/{at}", {"revision": now["revision"]} | change)["record"]


@contextmanager
def served(folder: Path, *argv: str) -> Iterator[Served]:
    """`taciturn review FOLDER --no-browser --json ...`, ended with Ctrl-C if nobody ended it before."""
    command = [sys.executable, "-W", "error", "-c", _RUN, "review", str(folder), "--no-browser", "--json"]
    with subprocess.Popen([*command, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield from _until_it_ends(process)


def _until_it_ends(process: subprocess.Popen[str]) -> Iterator[Served]:
    try:
        heard = ""
        assert process.stderr is not None
        for line in process.stderr:
            heard += line
            if found := re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line):
                break
        else:
            raise AssertionError(f"no address, but: {heard}")
        made = Served(found.group(), process, err=heard)
        yield made
        made.end()
    finally:
        process.kill()
