"""taciturn cite: what to cite for a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from taciturn.cli.options import RUN_THERE, Json


def cite(
    run: Annotated[
        Path | None, Parameter(validator=RUN_THERE, help="a run's folder; without one, taciturn itself")
    ] = None,
    *,
    json: Json = False,
) -> None:
    """Print BibTeX of what a run used: mechanism, accountant, optimiser, detectors, attacks, libraries.

    It is read off the run's plan, certificate and audit, and off the screened corpus if that is still where it was.

    Example: `taciturn cite runs/mail > mail.bib`
    """
    import re
    import sys

    from taciturn.cli.show import as_json, step
    from taciturn.project.citing import cited_keys, entries

    known = entries()
    with step("looking what the run used"):
        found = [("taciturn", "all of it")] if run is None else cited_keys(run)
    if json:
        as_json([{"key": key, "used_for": what, "bibtex": known[key]} for key, what in found])
        return
    for key, what in found:
        sys.stdout.write(f"% {what}\n{re.sub(r', (?=[a-z]+ = {)', f',{chr(10)}  ', known[key])}\n\n")
