"""The `taciturn` command. Commands are imported when they run, so that help is quick and needs no torch."""

from __future__ import annotations

import os
import sys
from typing import Any

from cyclopts import App

from taciturn import __version__
from taciturn.cli.options import rank
from taciturn.errors import Elsewhere, Interrupted, TaciturnError, UsageError

COMMANDS = (
    "demo",
    "screen",
    "preview",
    "sample",
    "recall",
    "evaluate",
    "corrections",
    "check",
    "plan",
    "train",
    "certify",
    "verify",
    "audit",
    "report",
    "export",
    "generate",
    "budget",
    "policies",
    "doctor",
)

app = App(
    name="taciturn",
    version=__version__,
    help="Language models that keep secrets: screen a corpus, train, certify, attack, report.",
    help_format="markdown",
    usage="Usage: taciturn COMMAND [OPTIONS]",
)
for _name in COMMANDS:
    app.command(f"taciturn.cli.{_name}:{_name}", name=_name)


def main(argv: list[str] | None = None) -> None:
    """Run a command line and exit: 0 fine, 1 bug, 2 usage, 3 data, 4 guarantee not met, 130 interrupted."""
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def run(argv: list[str]) -> int:
    """The exit code of a command line. Errors taciturn raises on purpose are one line on standard error."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Idle OpenMP threads that spin for long slow a shared machine several times, ones that never spin an idle one by half.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        result: Any = app(argv, exit_on_error=False, print_error=True, result_action="return_value")
    except TaciturnError as error:
        if rank() == 0:
            print(f"taciturn: {error}", file=sys.stderr)
        elif not isinstance(error, UsageError | Interrupted | Elsewhere):  # those process 0 has said
            print(f"taciturn (process {rank()}): {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("taciturn: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from cyclopts import CycloptsError

        if isinstance(error, CycloptsError):  # already printed
            return 2
        raise
    return int(result) if isinstance(result, int) else 0
