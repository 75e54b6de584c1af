"""taciturn export: the model as a folder for others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from taciturn.cli.options import RUN_THERE, Json


def export(
    run: Annotated[Path, Parameter(help="a run's folder", validator=RUN_THERE)],
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="the folder to write")],
    json: Json = False,
) -> None:
    """Write weights, tokenizer, model card and certificate; the folder is loaded and compared before success is said.

    Example: `taciturn export runs/mail -o model/`, then `AutoModelForCausalLM.from_pretrained("model/")`
    """
    from taciturn.cli.show import as_json, step, talk
    from taciturn.reporting.export import export as write

    with step("writing the model and loading it again"):
        difference = write(run, output)
    talk.print(f"{output} loads with from_pretrained; its loss differs by {difference:.1e} at most")
    if json:
        as_json({"model": str(output), "loss_difference": difference})
