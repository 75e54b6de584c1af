"""The page on paper: printed by a Chromium that is on the machine, from a file, with no network."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from taciturn.errors import TaciturnError, UsageError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 300
"""Seconds after which a browser that has not printed the page is ended."""

_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--no-pdf-header-footer",
    "--generate-pdf-document-outline",
)


def browser(names: Sequence[str] = BROWSERS) -> str:
    """The path of the first browser found. Raises UsageError, saying how to get one."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise UsageError(
            f"a PDF is printed by Chromium, and none of {', '.join(names)} is on the PATH; install one (Debian: apt install "
            "chromium), or write the page (-o report.html) and print it from any browser"
        )
    return found


def write(out: Path, page: str, program: str) -> None:
    """Print ``page`` (HTML) into ``out``, whole or not at all. Raises TaciturnError when the browser does not."""
    with tempfile.TemporaryDirectory(prefix="taciturn-") as folder:
        source, printed = Path(folder, "report.html"), Path(folder, "report.pdf")
        source.write_text(page, encoding="utf-8")
        # Chromium's sandbox refuses to start for root; the page has no script and its policy forbids any.
        root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        flags = [*_FLAGS, *root, f"--user-data-dir={folder}/profile", f"--print-to-pdf={printed}"]
        try:
            done = subprocess.run(
                [program, *flags, source.as_uri()], capture_output=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            raise TaciturnError(f"{Path(program).name} did not print the page within {PATIENCE} s") from None
        if done.returncode or not printed.is_file() or not printed.stat().st_size:
            raise TaciturnError(f"{Path(program).name} did not print the page (exit code {done.returncode})")
        shutil.move(printed, out)
