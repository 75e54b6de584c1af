"""taciturn report: one page for one run or several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from taciturn.cli.options import Json


def report(
    *runs: Path,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("report.html"),
    json: Json = False,
) -> None:
    """Write a self-contained HTML page: claims in words, costs, utility, attacks; no text of the corpus in it.

    Example: `taciturn report runs/plain runs/crt -o report.html`
    """
    import taciturn.reporting as reports
    from taciturn.cli.show import as_json, talk
    from taciturn.errors import UsageError

    if not runs:
        raise UsageError("name at least one run: taciturn report runs/mail")
    views = [reports.RunView.load(run) for run in runs]
    reports.write(output, views)
    talk.print(f"wrote {output}")
    if json:
        as_json(reports.data(views))
