"""A run: configuration in, folder out. Plan, train, export; the folder is all that later steps need.

run.toml       the configuration, complete          plan.json      what it came to: phases, events, steps
ledger.jsonl   every step's event                   metrics.jsonl  numbers per step
evidence.json  what the guarantee rests on          model/         the exported model
checkpoints/   (mode 0700) to resume from, with the  tensorboard/   events, on request
               lock and, until the end, the noise key
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taciturn.errors import DataError, MismatchError
from taciturn.mechanisms.config import existing, parse
from taciturn.mechanisms.corpus import encoded, held_out, task_of, without_targets
from taciturn.mechanisms.corpus_history import ENDED, not_rewound, remembered
from taciturn.mechanisms.cost import running
from taciturn.mechanisms.lock import training
from taciturn.mechanisms.planning import evidence_of, make_plan, within_target
from taciturn.mechanisms.registry import mechanism
from taciturn.mechanisms.settings import RunConfig, load_config, save_config
from taciturn.privacy.certificates.certificate import LEDGER
from taciturn.privacy.certificates.ledger_lines import is_finished
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.corpus.screened import load as load_screened
from taciturn.text.atomic import write_bytes, write_text
from taciturn.text.document import Record
from taciturn.training.plan import Plan

DEFAULT_MAX_LENGTH = 512
logger = logging.getLogger("taciturn")


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder. ``plan`` is what was run; ``finished`` says whether the model was exported and the run ended."""

    folder: Path

    @property
    def plan(self) -> dict[str, Any]:
        data = json.loads(existing(self.folder / "plan.json", "plan; is this a run folder?").read_text())
        assert isinstance(data, dict)
        return data

    @property
    def config(self) -> RunConfig:
        return load_config(self.folder / "run.toml")

    @property
    def finished(self) -> bool:
        return (self.folder / "model").is_dir() and is_finished(self.folder / LEDGER)

    @property
    def model_folder(self) -> Path:
        folder = self.folder / "model"
        if not folder.is_dir():
            raise DataError(f"{self.folder} holds no finished model: continue it with taciturn train --resume")
        return folder

    def model(self) -> tuple[Any, Any]:
        """(model, tokenizer), in evaluation mode."""
        from taciturn.models.hf import load_exported

        return load_exported(self.model_folder)


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
    from taciturn.training.distributed.processes import joined
    from taciturn.training.state.metrics import summary_writer

    if config.train.tensorboard:
        summary_writer()  # a missing extra is named before anything is written
    screened = screened if screened is not None else load_screened(config.corpus)
    with joined(config.train.timeout_minutes) as world, ExitStack() as held:
        world.once(lambda: held.enter_context(training(out, resume)))
        _train(config, out, screened, valid, resume, notify, world)
    return Run(out)


def _train(
    config: RunConfig,
    out: Path,
    screened: ScreenedCorpus,
    valid: Sequence[Record] | None,
    resume: bool,
    notify: Callable[[Any], None],
    world: Any,
) -> None:
    from taciturn.models.held_out import HeldOut
    from taciturn.models.hf import context_length, export
    from taciturn.models.template import set_template
    from taciturn.models.tokens import load_tokenizer, mask_id
    from taciturn.training.check import require_isolation
    from taciturn.training.distributed.fsdp import gathered
    from taciturn.training.engine import Options, fit
    from taciturn.training.state.releases import finish

    plan = make_plan(config, screened, world.once(lambda: _salt(out, resume)))
    within_target(plan)
    if resume:
        world.once(lambda: _goes_on(plan, screened.path, out))
    tokenizer = load_tokenizer(plan.model.tokenizer, plan.model.name, _public_texts(plan, screened))
    set_template(tokenizer, plan.model.chat_template)
    model = _load(plan, tokenizer)
    cut = config.train.shard and world.size > 1
    if not cut:
        model.to(world.device)
    limit = plan.model.max_length or min(context_length(model) or DEFAULT_MAX_LENGTH, DEFAULT_MAX_LENGTH)
    data = {phase.name: encoded(tokenizer, plan, phase, screened, limit) for phase in plan.phases}
    for phase in plan.phases:  # before a step is paid for
        if said := without_targets(phase, screened, data[phase.name], mask_id(tokenizer)):
            logger.warning(said)
    require_isolation(plan, model, data)  # fit asks too, but by then the folder is written
    for name, tokens in data.items():
        if tokens.truncated:
            logger.warning(
                "%d records of phase %s are longer than %d tokens and were cut", tokens.truncated, name, limit
            )
    if valid is None:
        valid = held_out(config.train, screened.manifest.unit)
    if not resume:
        world.once(lambda: _begin(config, plan, screened, out, bool(valid)))
    module = mechanism(config.mechanism)
    chosen = parse(module.Config, config.options, f"options of {config.mechanism}")
    units = module.units(screened, chosen) if hasattr(module, "units") else {}
    options = Options(
        config.train.token_budget,
        config.train.checkpoint_steps,
        config.train.checkpoint_minutes,
        config.train.keep,
        config.train.evaluations,
        HeldOut.of(tokenizer, valid, limit, **task_of(plan)) if valid else None,
        config.train.tensorboard,
        config.train.shard,
    )
    with remembered(plan, screened.path, out, world.leads) as begun:
        fit(
            plan,
            model,
            tokenizer,
            data,
            out,
            options,
            units=units,
            resume=resume,
            spent=running(plan),
            notify=notify,
            begun=begun,
            world=world,
        )
        if cut:
            weights = gathered(model.state_dict(), world.leads)
            if world.leads:  # a model that is whole again
                model = _load(plan, tokenizer)
                model.load_state_dict(weights)
        world.once(lambda: export(model, tokenizer, out / "model"))
        world.once(lambda: finish(out))


def _load(plan: Plan, tokenizer: Any) -> Any:
    """The model a plan begins with."""
    from taciturn.models.hf import load_model

    return load_model(
        plan.model.name,
        tokenizer,
        plan.seeds.model,
        plan.model.options,
        task=plan.model.task,
        labels=plan.model.labels,
        prompt=task_of(plan)["prompt"],
        adapter=plan.model.lora,
        frozen=plan.model.frozen,
        gradient_checkpointing=plan.model.gradient_checkpointing,
    )


def _begin(config: RunConfig, plan: Plan, screened: ScreenedCorpus, out: Path, validated: bool) -> None:
    """Write what a run is, before its first step."""
    save_config(config, out / "run.toml")
    write_text(out / "plan.json", json.dumps(plan.to_json(), indent=1, sort_keys=True))
    evidence = evidence_of(config, plan, screened, validated)
    write_text(out / "evidence.json", json.dumps(evidence.to_json(), indent=1, sort_keys=True))


def _public_texts(plan: Plan, screened: ScreenedCorpus) -> list[str]:
    return screened.texts("public") if plan.model.tokenizer.startswith("bpe:") else []


def _salt(out: Path, resume: bool) -> bytes:
    """The secret salt of a run's corpus key, kept beside the checkpoints (mode 0600); made for a new run."""
    if not resume and (out / "plan.json").exists():
        raise DataError(f"{out} already holds a run: continue it with --resume, or name another folder")
    path = out / "checkpoints" / "corpus.salt"
    if not resume:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_bytes(path, os.urandom(32), 0o600)
    return existing(path, "run to resume").read_bytes()


def _goes_on(plan: Plan, corpus: Path | None, out: Path) -> None:
    """Refuse to resume what is another run, has ended, or was put back to an earlier state."""
    _same_plan(plan, out)
    if is_finished(out / LEDGER):
        from taciturn.training.state.noise_key import destroy_key

        destroy_key(out / "checkpoints")  # a process that was killed as its run ended may have left it
        raise DataError(f"{out}: this run has ended. {ENDED}")
    not_rewound(plan, corpus, out)


def _same_plan(plan: Plan, out: Path) -> None:
    before = Run(out).plan
    now = json.loads(json.dumps(plan.to_json()))
    changed = sorted(key for key in now.keys() | before.keys() if now.get(key) != before.get(key))
    if changed:
        raise MismatchError(
            f"{out} was begun with another {', '.join(changed)}: resume needs the corpus, configuration and seeds the run "
            "began with; train into a new folder instead"
        )
