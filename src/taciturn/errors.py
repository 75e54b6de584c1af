"""Every error taciturn raises on purpose, and the exit code each one ends a command with.

    TaciturnError                     1   a bug, or something nobody foresaw
    ├── UsageError                    2   wrong argument, option or configuration
    │   └── MissingExtra              2   an optional dependency is not installed
    ├── DataError                     3   the input, or a folder taciturn wrote, cannot be used
    │   └── MismatchError             3   a resumed run meets another corpus, plan or seed
    ├── GuaranteeError                4   a guarantee is not met, or a certificate does not verify
    ├── GateClosed                    5   a gate that was asked for (--fail-on, --fail-under) does not let this through
    ├── LostProcess                   1   another process of the run died or hangs; the last checkpoint resumes it
    ├── Unreachable                   1   an object store does not give what it is asked for; the same command goes on
    ├── Elsewhere                     *   process 0 failed in what it does for all, and ends them with its own exit code
    └── Interrupted                 130   stopped by the user; a checkpoint was written

A message names the thing, what was expected, what was found and the next step. It never quotes a record,
a span or a secret: locations (file, line, record id) are enough to find them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class TaciturnError(Exception):
    """Base of all errors; ``exit_code`` is what the command line returns."""

    exit_code = 1


class UsageError(TaciturnError):
    """A wrong argument, option or configuration value."""

    exit_code = 2


class MissingExtra(UsageError):
    """An optional dependency is absent; the message carries the pip line that installs it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; it comes with: pip install 'taciturn[{extra}]'")


class DataError(TaciturnError):
    """Input that cannot be read, or a taciturn folder that is incomplete or damaged."""

    exit_code = 3


class MismatchError(DataError):
    """What is resumed or compared does not belong together (other corpus, plan or seed)."""


class GuaranteeError(TaciturnError):
    """A guarantee is not met: spent ε above target, a certificate that does not verify, an attack above its bound."""

    exit_code = 4


class GateClosed(TaciturnError):
    """All went well, and what came out is not what the caller said it must be."""

    exit_code = 5


class LostProcess(TaciturnError):
    """Another process of the run died, hangs, or cannot be reached."""


class Unreachable(TaciturnError):
    """A store of files does not answer, or refuses; nothing is wrong with the input, and what is done stays."""


class Elsewhere(TaciturnError):
    """Process 0 of the run failed in what it does for all; it says why, the others only end."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Interrupted(TaciturnError):
    """The user stopped the work; the last checkpoint resumes it."""

    exit_code = 130


MOST = 30
"""Choices that an error lists at most."""


def nearest(word: str, choices: Iterable[str]) -> str:
    """A hint naming the closest valid choice, or listing them, the first ``MOST``, when none is close.

    >>> nearest("emial", ["email", "phone"])
    "did you mean 'email'?"
    """
    known = sorted(set(choices))
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known: {', '.join(known[:MOST])}" + (f" and {len(known) - MOST} more" if len(known) > MOST else "")


def similar(path: Path) -> str:
    """A hint where something of almost that name lies beside it, to follow a path that is not there; else empty."""
    try:
        beside = [each.name for each in path.expanduser().absolute().parent.iterdir()]
    except OSError:
        return ""
    close = difflib.get_close_matches(path.name, beside, n=1, cutoff=0.75)
    return f" (did you mean '{path.with_name(close[0])}'?)" if close else ""
