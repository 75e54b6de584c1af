"""taciturn train: run a plan into a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from taciturn.cli.options import Allowed, Json, assign, rank, silent


def train(
    config: Annotated[Path, Parameter(help="run.toml, or the folder of a run with --resume")],
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], help="the run's folder")] = None,
    resume: Annotated[bool, Parameter(help="go on from the newest checkpoint", negative="")] = False,
    set_: Annotated[tuple[str, ...], Parameter(name=["--set", "-s"], help="KEY=VALUE of run.toml")] = (),
    allow: Allowed = (),
    json: Json = False,
) -> None:
    """Train, with checkpoints and a ledger, and export the model into the run's folder.

    Example: `taciturn train run.toml -o runs/mail` and, after a stop, `taciturn train runs/mail --resume`. In several
    processes: `torchrun --nproc-per-node 8 -m taciturn train run.toml -o runs/mail`
    """
    from taciturn.cli.show import as_json, talk, training
    from taciturn.errors import UsageError
    from taciturn.mechanisms import run as runs
    from taciturn.mechanisms.config import parse
    from taciturn.mechanisms.settings import RunConfig, load_config

    if resume:
        folder = output or (config if config.is_dir() else None)
        if folder is None:
            raise UsageError("--resume needs the run's folder: taciturn train runs/mail --resume")
        loaded = load_config(folder / "run.toml")
    else:
        if output is None:
            raise UsageError("name the run's folder with -o, e.g. taciturn train run.toml -o runs/mail")
        folder, loaded = output, load_config(config)
    if set_:
        loaded = parse(RunConfig, assign(loaded.model_dump(mode="json"), set_), "--set")
    loaded = loaded.model_copy(update={"allow": tuple(dict.fromkeys((*loaded.allow, *allow)))})
    if rank():  # process 0 talks
        silent()
        runs.train(loaded, folder, resume=resume)
        return
    with training(folder.name, loaded.epsilon) as notify:
        done = runs.train(loaded, folder, resume=resume, notify=notify)
    talk.print(f"model in {done.folder / 'model'}; next: taciturn certify {done.folder}")
    if json:
        as_json({"run": str(done.folder), "plan": done.plan})
