"""taciturn --install-completion: the TAB key completes commands and options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def completion(
    *,
    shell: Annotated[
        Literal["bash", "zsh", "fish", "powershell"] | None, Parameter(help="for this shell; else the one in use")
    ] = None,
    output: Annotated[
        Path | None, Parameter(name=["--output", "-o"], help="write it here, change nothing else")
    ] = None,
) -> None:
    """Write a completion script to where the shell looks for it, and a line into the shell's start-up file.

    Example: `taciturn --install-completion`, or `taciturn --install-completion --shell bash -o taciturn.bash`
    """
    from cyclopts.completion.detect import ShellDetectionError

    from taciturn.cli.main import app
    from taciturn.cli.show import talk
    from taciturn.errors import UsageError

    try:
        if output is not None:
            output.write_text(app.generate_completion(shell=shell), "utf-8")
            written = output
        else:
            written = app.install_completion(shell=shell)
    except ShellDetectionError:
        raise UsageError("cannot tell which shell this is: name it, e.g. --shell bash") from None
    talk.print(f"wrote {written}; it works in a new shell")
