"""What a plan needs before its first step: tokenizer, model, records as tokens, units, and how to run."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from taciturn.mechanisms.config import parse
from taciturn.mechanisms.corpus import encoded, held_out, public_texts, task_of
from taciturn.mechanisms.registry import mechanism
from taciturn.mechanisms.settings import RunConfig
from taciturn.mechanisms.targets import DEFAULT_MAX_LENGTH, lone_masks, without_targets
from taciturn.mechanisms.values import filler_of, public_values, slots_of
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.text.document import Record
from taciturn.training.plan import Plan

logger = logging.getLogger("taciturn")


@dataclass(frozen=True, slots=True)
class Materials:
    """What :func:`taciturn.training.engine.fit` takes beside the plan. data: tokens by phase. units: rows of each unit, of
    phases whose units are not records. fillers: what puts a table's values into the masks of a phase."""

    model: Any
    tokenizer: Any
    data: Mapping[str, Any]
    units: Mapping[str, Any]
    fillers: Mapping[str, Any]
    options: Any


def gather(
    config: RunConfig, plan: Plan, screened: ScreenedCorpus, valid: Sequence[Record] | None, world: Any, folder: Path
) -> Materials:
    """Load and encode what ``plan`` reads. folder: a private one, on whose disk tokens are kept. Raises UsageError and
    DataError for what it could not train on or prove, before anything is written that stays: records without a target, a
    model in which records touch each other."""
    from taciturn.models.held_out import HeldOut
    from taciturn.models.hf import context_length
    from taciturn.models.sequences import mask_id
    from taciturn.models.template import set_template
    from taciturn.models.tokenizers import load_tokenizer
    from taciturn.training.check import require_isolation
    from taciturn.training.distributed.loading import loaded_once
    from taciturn.training.engine import Options
    from taciturn.training.frozen.cache import require_front
    from taciturn.training.frozen.store import store

    tokenizer = load_tokenizer(plan.model.tokenizer, plan.model.name, public_texts(plan, screened))
    set_template(tokenizer, plan.model.chat_template)
    if is_cut(config, world):
        model = loaded_once(lambda: initial_model(plan, tokenizer), world)
    else:
        model = initial_model(plan, tokenizer).to(world.device)
    limit = plan.model.max_length or min(context_length(model) or DEFAULT_MAX_LENGTH, DEFAULT_MAX_LENGTH)
    trained = [phase for phase in plan.phases if phase.moves]
    data = {phase.name: encoded(tokenizer, plan, phase, screened, limit, folder) for phase in trained}
    for phase in trained:  # before a step is paid for
        aimless = data[phase.name].aimless(mask_id(tokenizer))
        if said := without_targets(phase, aimless, partial(lone_masks, phase, screened)):
            logger.warning(said)
    module = mechanism(config.mechanism)
    chosen = parse(module.Config, config.options, f"options of {config.mechanism}")
    counted = {phase.name: slots_of(plan, phase, screened) for phase in plan.phases if not phase.moves}
    known = public_values(chosen, screened)
    fillers = {
        phase.name: filler_of(tokenizer, plan, phase, screened, limit, known)
        for phase in trained
        if phase.fill is not None and phase.fill.table is not None
    }
    if config.train.frozen_cache is not None:
        require_front(model, plan.model.task == "classify")
        with store(Path(config.train.frozen_cache)):  # a file that is another's is known now
            pass
    look = partial(require_isolation, plan, model, data)  # fit looks too, but by then the folder is written
    world.once(look) if is_cut(config, world) else look()
    for name, tokens in data.items():
        if tokens.truncated:
            logger.warning(
                "%d records of phase %s are longer than %d tokens and were cut", tokens.truncated, name, limit
            )
    if valid is None:
        valid = held_out(config.train, screened.manifest.unit)
    units = module.units(screened, chosen) if hasattr(module, "units") else {}
    how = config.train
    options = Options(
        how.token_budget,
        how.checkpoint_steps,
        how.checkpoint_minutes,
        how.keep,
        how.evaluations,
        HeldOut.of(tokenizer, valid, limit, **task_of(plan)) if valid else None,
        how.report_to,
        how.shard,
        None if how.frozen_cache is None else Path(how.frozen_cache),
    )
    return Materials(model, tokenizer, {**data, **counted}, units, fillers, options)


def is_cut(config: RunConfig, world: Any) -> bool:
    """Whether the model is cut over the processes of the run."""
    return bool(config.train.shard and world.size > 1)


def initial_model(plan: Plan, tokenizer: Any) -> Any:
    """The model a plan begins with."""
    from taciturn.models.four_bit import quantize_frozen
    from taciturn.models.hf import load_model

    model = load_model(
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
        half=plan.model.dtype == "bf16",
    )
    if plan.model.base_bits == 4:
        quantize_frozen(model)
    return model
