"""taciturn report: one page for one run or several, as HTML, PDF or plain data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from taciturn.cli.options import RUN_THERE, Json


def report(
    *runs: Annotated[Path, Parameter(help="folders of runs", validator=RUN_THERE)],
    output: Annotated[
        Path, Parameter(name=["--output", "-o"], help="ends in .html, or in .pdf, which takes a Chromium on the PATH")
    ] = Path("report.html"),
    recall: Annotated[
        tuple[Path, ...],
        Parameter(help="a file of `taciturn recall -o` that a certificate rests on: adds recall by kind", negative=""),
    ] = (),
    json: Json = False,
) -> None:
    """Write a self-contained HTML page or a PDF: what was protected, claims in words, costs, utility, attacks.

    No text of the corpus is in it. With --json, all that it shows as data.

    Example: `taciturn report runs/plain runs/crt -o report.html`
    """
    import taciturn.reporting as reports
    from taciturn.cli.show import as_json, step, talk
    from taciturn.errors import UsageError
    from taciturn.reporting import pdf
    from taciturn.reporting.content import as_data, collect
    from taciturn.reporting.sections import recall as measured

    if not runs:
        raise UsageError("name at least one run: taciturn report runs/mail")
    if output.suffix.lower() not in (".html", ".htm", ".pdf"):
        raise UsageError(f"--output {output.name}: expected a name that ends in .html or .pdf")
    views = [reports.RunView.load(run) for run in runs]
    kinds = [measured.read_recall(file) for file in recall]
    if output.suffix.lower() == ".pdf":
        pdf.browser()  # its absence is told before the work
    with step("drawing the report"):
        content = collect(views, kinds)
        reports.save(output, content)
    talk.print(f"wrote {output}")
    if json:
        as_json(as_data(content))
