"""The last line of run, certify and audit: whether the model may leave the house, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def last_line(run: Path, *, result: bool = True) -> dict[str, Any]:
    """Print the verdict on a run's folder as it is now, on standard output if it is a ``result``, and return it as plain
    values for ``--json``: word and reasons."""
    from taciturn.cli.show import out, talk
    from taciturn.reporting.finished_run import RunView
    from taciturn.reporting.sections.front import judged, of_run

    view = RunView.load(run)
    found = of_run(view)
    provided = f", {clause}" if found.word == "may be released" and (clause := judged(view)) else ""
    (out if result else talk).print(f"{view.name}: {found}{provided}")
    return {"word": found.word, "reasons": list(found.reasons)}
