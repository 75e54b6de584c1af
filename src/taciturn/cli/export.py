"""taciturn export: the model as a folder for others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from taciturn.cli.options import RUN_THERE, Json


def export(
    run: Annotated[Path, Parameter(help="a run's folder", validator=RUN_THERE)],
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="the folder to write")],
    dtype: Annotated[
        Literal["bf16", "fp16", "fp32"] | None, Parameter(help="cast the certified weights; cast.json says so")
    ] = None,
    base_model: Annotated[str | None, Parameter(help="hub name of the base, where the run began with a folder")] = None,
    language: Annotated[tuple[str, ...], Parameter(help="code for the card, such as en")] = (),
    license: Annotated[str | None, Parameter(help="for the card, e.g. apache-2.0")] = None,
    tag: Annotated[tuple[str, ...], Parameter(help="one more for the card")] = (),
    json: Json = False,
) -> None:
    """Write weights, tokenizer, model card and certificate; the folder is loaded and compared before success is said.

    Example: `taciturn export runs/mail -o model/`, then `AutoModelForCausalLM.from_pretrained("model/")`
    """
    from taciturn.cli.show import as_json, step, talk
    from taciturn.privacy.certificates.cast import SHORT
    from taciturn.reporting.export import export as write
    from taciturn.reporting.hub import Hub

    with step("writing the model and loading it again"):
        difference = write(
            run, output, Hub(base_model, language, license, tag), None if dtype is None else SHORT[dtype]
        )
    talk.print(f"{output} loads with from_pretrained; its loss differs by {difference:.1e} at most")
    if dtype is not None:
        talk.print(f"to check the cast: taciturn verify {output} --certified {run}")
    if json:
        as_json({"model": str(output), "loss_difference": difference})
