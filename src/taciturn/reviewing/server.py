"""The review served on this machine alone, until Ctrl-C."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from taciturn.errors import UsageError
from taciturn.reviewing.guard import Guard

_OPEN = """<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<title>taciturn review</title><meta http-equiv="refresh" content="0;url={url}">"""


def serve(app: ASGIApp, port: int, browser: bool, ready: Callable[[str], None]) -> None:
    """Answer until Ctrl-C. port: 0 takes a free one. ready: is told the address, token included, once it answers.

    Raises UsageError if the port is taken.
    """
    listener = _listen(port)
    with listener:
        guard = Guard(app, listener.getsockname()[1])
        # uvicorn's own log would hold addresses; what goes wrong is said by the guard, without text.
        config = uvicorn.Config(
            guard, http="h11", ws="none", lifespan="off", log_config=None, log_level="critical", access_log=False,
            server_header=False, timeout_graceful_shutdown=2,
        )  # fmt: skip
        ready(guard.url)
        # The server ends by itself on SIGINT and SIGTERM, and then raises them again: either is the end of the review.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with _opened(guard.url) if browser else nullcontext(), suppress(KeyboardInterrupt):
                uvicorn.Server(config).run(sockets=[listener])
        finally:
            signal.signal(signal.SIGTERM, before)


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except (OSError, OverflowError):
        listener.close()
        raise UsageError(f"port {port} cannot be had on this machine; leave --port out for a free one") from None
    return listener


@contextmanager
def _opened(url: str) -> Iterator[None]:
    """A browser at ``url``, by way of a file that only its owner reads: other users see the arguments of a process."""
    if sys.platform != "darwin" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        yield
        return
    descriptor, name = tempfile.mkstemp(prefix="taciturn-review-", suffix=".html")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(_OPEN.format(url=url))
    try:
        webbrowser.open(Path(name).as_uri())
        yield
    finally:
        Path(name).unlink(missing_ok=True)
