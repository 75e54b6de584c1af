"""A run: configuration in, folder out. The folder (run_folder.py) is all that later steps need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from taciturn.mechanisms.corpus_history import remembered
from taciturn.mechanisms.cost import running
from taciturn.mechanisms.lock import training
from taciturn.mechanisms.materials import gather, initial_model, is_cut
from taciturn.mechanisms.planning import make_plan, within_target
from taciturn.mechanisms.run_folder import Run, begin, check_resumable, corpus_salt
from taciturn.mechanisms.settings import RunConfig
from taciturn.mechanisms.tokens_read import tokens_read
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.corpus.screened import load as load_screened
from taciturn.text.document import Record
from taciturn.text.urls import is_url

__all__ = ["Run", "make_plan", "train"]


def train(
    config: RunConfig,
    out: Path,
    *,
    screened: ScreenedCorpus | None = None,
    valid: Sequence[Record] | None = None,
    resume: bool = False,
    notify: Callable[[Any], None] = lambda _: None,
) -> Run:
    """Plan, train and export into ``out``. With ``resume``, go on from the newest checkpoint; the corpus, the plan and
    the seeds must be those the run began with (MismatchError names what changed). Raises DataError when another process is
    at work in ``out``, when its run has ended, or when it was put back to an earlier state.

    Under torchrun every process calls this; process 0 alone writes and notifies. ``out`` is a folder all of them see.
    """
    from taciturn.models.hf import export
    from taciturn.models.saved_dtype import saved_dtype
    from taciturn.training.distributed.processes import joined
    from taciturn.training.engine import fit
    from taciturn.training.state import reporters
    from taciturn.training.state.releases import finish

    for name in config.train.report_to:
        reporters.library(name)  # a missing extra is named before anything is written
    screened = screened if screened is not None else load_screened(config.corpus)
    if screened.path is not None and is_url(str(config.corpus)):
        # Later steps find the history of runs where this one writes it.
        config = config.model_copy(update={"corpus": str(screened.path)})
    with joined(config.train.timeout_minutes) as world, ExitStack() as held:
        world.once(lambda: held.enter_context(training(out, resume)))
        plan = make_plan(config, screened, world.once(lambda: corpus_salt(out, resume)))
        within_target(plan)
        dtype = saved_dtype(config.train.save_dtype, plan.model.name)  # a base may be out of reach when a run ends
        if resume:
            world.once(lambda: check_resumable(plan, screened.path, out))
        ready = gather(config, plan, screened, valid, world, out / "checkpoints")
        if not resume:
            read = tokens_read(plan, screened, ready)
            world.once(lambda: begin(config, plan, screened, out, ready.options.valid is not None, read))
        with remembered(plan, screened.path, out, world.leads) as begun:
            fit(
                plan,
                ready.model,
                ready.tokenizer,
                ready.data,
                out,
                ready.options,
                units=ready.units,
                fillers=ready.fillers,
                resume=resume,
                spent=running(plan),
                notify=notify,
                begun=begun,
                world=world,
            )
            model = _whole(plan, ready.tokenizer, ready.model, world) if is_cut(config, world) else ready.model
            world.once(lambda: export(model, ready.tokenizer, out / "model", dtype))
            world.once(lambda: finish(out))
    return Run(out)


def _whole(plan: Any, tokenizer: Any, model: Any, world: Any) -> Any:
    """A model that was cut over the processes, put together again in process 0, one tensor after another."""
    from taciturn.training.distributed.fsdp import gathered

    found = initial_model(plan, tokenizer) if world.leads else None
    into = {} if found is None else found.state_dict()
    for name, tensor in model.state_dict().items():
        whole = gathered(tensor, world.leads)
        if world.leads:
            into[name].copy_(whole)
    return found
