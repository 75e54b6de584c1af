"""`transformers.TrainingArguments` in the words of a plan. What cannot be honoured is an error that names the field."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import ceil, nextafter
from typing import Any

from taciturn.errors import UsageError
from taciturn.mechanisms.config import OptimiserConfig, PrivateSteps, PublicSteps, parse
from taciturn.mechanisms.registry import mechanism
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.trainer.fields import HARMLESS, MAPPED, REFUSED
from taciturn.training.plan import Target

OPTIMISERS = {"adamw_torch": "adamw", "adamw_torch_fused": "adamw", "sgd": "sgd"}
REPORTERS = ("tensorboard", "wandb", "mlflow")
Table = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Translated:
    """What :func:`taciturn.plan` takes: the mechanism's ``options``, ``train``, ``seeds``, and some of ``model``."""

    options: Table
    train: Table
    seeds: Table
    model: Table


def translate(args: Any, name: str, screened: ScreenedCorpus, own: Mapping[str, Any]) -> Translated:
    """``args`` for the mechanism ``name``. own: its options that were given beside them, which go before.

    Raises UsageError naming each field that cannot be honoured.
    """
    refuse(args)
    if args.use_cpu and _cuda():
        raise UsageError("use_cpu: there is a GPU, and a run takes it; set CUDA_VISIBLE_DEVICES= to hide it")
    options = _options(args, name, screened, own)
    precision = {"dtype": "bf16" if args.bf16 else "fp16" if args.fp16 else "float32"}
    data = args.seed if args.data_seed is None else args.data_seed
    return Translated(
        options,
        _train(args),
        {"model": args.seed, "data": data},
        {**precision, "gradient_checkpointing": _checkpointing(args)},
    )


def refuse(args: Any) -> None:
    """Raises UsageError with each field that is not its default, and neither part of a plan nor of no consequence."""
    from transformers import TrainingArguments

    if not isinstance(args, TrainingArguments):
        raise UsageError(f"args: expected transformers.TrainingArguments, found {type(args).__name__}")
    plain, known = TrainingArguments(output_dir=args.output_dir), MAPPED.keys() | HARMLESS.keys()
    wrong = []
    for field in fields(args):
        if field.name in known or not hasattr(args, field.name):
            continue
        usual = plain if hasattr(plain, field.name) else type(args)(output_dir=args.output_dir)
        if getattr(args, field.name) != getattr(usual, field.name):
            why = REFUSED.get(field.name, "a field that is not known here, so nothing would come of it")
            wrong.append(f"{field.name} = {_shown(getattr(args, field.name))}: {why}")
    if wrong:
        raise UsageError("TrainingArguments that cannot be honoured: " + "; ".join(wrong))


def every(args: Any, field: str, steps: int) -> int:
    """``logging_steps`` or ``save_steps`` of a run of so many steps; below 1 they are a share of it, as in the Trainer."""
    asked: float = getattr(args, field)
    return max(1, ceil(asked * steps)) if asked < 1 else int(asked)


def strategy(args: Any, field: str) -> bool:
    """Whether something is done every so many steps. Raises UsageError for strategies that follow epochs or a measure."""
    asked = getattr(args, field).value
    if asked not in ("steps", "no"):
        raise UsageError(
            f"{field} = {asked!r}: expected 'steps' or 'no'; phases with and without noise share no epochs"
        )
    return bool(asked == "steps")


def _shown(value: Any) -> str:
    return str(getattr(value, "value", value))[:80]


def _cuda() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _options(args: Any, name: str, screened: ScreenedCorpus, own: Mapping[str, Any]) -> Table:
    """The options of the mechanism: a table for each phase, or one for all of it."""
    config = mechanism(name).Config
    kinds = {each: kind for each, field in config.model_fields.items() if (kind := _kind(field.annotation))}
    flat = _kind(config)
    if flat is None and not kinds:
        raise UsageError(
            f"TrainingArguments say nothing of {name}, which draws no records at a rate; use taciturn.plan"
        )
    batch = args.per_device_train_batch_size * args.gradient_accumulation_steps * int(os.environ.get("WORLD_SIZE", "1"))
    of = {"": own} if flat else {each: own.get(each) or {} for each in kinds}
    known = {"": flat} if flat else kinds
    sizes = {each: {**_size(args, kind, batch, of[each]), **of[each]} for each, kind in known.items()}
    noised, plain = _counts(name, screened, own, sizes, known)
    made = {}
    for each, kind in known.items():
        steps = plain
        if kind is PrivateSteps:
            of_epochs = max(1, round(args.num_train_epochs * noised / sizes[each]["batch"]))
            steps = of[each].get("steps", args.max_steps if args.max_steps > 0 else of_epochs)
            sizes[each]["steps"] = steps
        clip = args.max_grad_norm or None if kind is PublicSteps else None
        made[each] = {**sizes[each], "optimiser": _optimiser(args, steps, clip)}
    return _merged(made[""] if flat else made, own)


def _kind(annotation: Any) -> type[PrivateSteps] | type[PublicSteps] | None:
    for kind in (PrivateSteps, PublicSteps):
        if isinstance(annotation, type) and issubclass(annotation, kind):
            return kind
    return None


def _size(args: Any, kind: Any, batch: int, own: Mapping[str, Any]) -> Table:
    """Of one phase, all but its steps with noise and its optimiser."""
    if kind is PrivateSteps:
        if not args.max_grad_norm:
            raise UsageError("max_grad_norm: noised steps clip the gradient of each record, so it must be above 0")
        return {"batch": batch, "clip": args.max_grad_norm}
    epochs = own.get("epochs", args.num_train_epochs)
    if "epochs" not in own and args.max_steps > 0:
        raise UsageError(
            f"max_steps = {args.max_steps} counts noised steps; say how often text without noise is read too, by the option "
            "of that phase, e.g. public={'epochs': 1} of crt; or give num_train_epochs alone"
        )
    if epochs != int(epochs):
        raise UsageError(f"num_train_epochs = {epochs}: text without noise is read in whole epochs")
    return {"batch_size": batch, "epochs": int(epochs)}


def _counts(
    name: str, screened: ScreenedCorpus, own: Mapping[str, Any], sizes: Mapping[str, Table], kinds: Mapping[str, Any]
) -> tuple[int, int]:
    """Units that noised steps draw from, and steps without noise: read off a plan that has one noised step."""
    one = {"steps": 1, "noise_multiplier": 1.0}
    tables = {each: {**table, **(one if kinds[each] is PrivateSteps else {})} for each, table in sizes.items()}
    module = mechanism(name)
    probe = parse(module.Config, {**own, **tables.get("", tables)}, f"options of {name}")
    made = module.plan(screened, probe, Target(None, 1e-5))
    noised = max((phase.records for phase in made.phases if phase.private and phase.moves), default=0)
    return noised, sum(made.steps_of(phase) for phase in made.phases if not phase.private)


def _optimiser(args: Any, steps: int, clip: float | None) -> Table:
    """steps: of the phase; clip: of the mean gradient."""
    name = OPTIMISERS.get(args.optim.value)
    if name is None:
        raise UsageError(f"optim = {args.optim.value!r}: expected one of {', '.join(OPTIMISERS)}")
    adam = {"betas": (args.adam_beta1, args.adam_beta2), "eps": args.adam_epsilon} if name == "adamw" else {}
    made = {"name": name, "lr": args.learning_rate, "weight_decay": args.weight_decay, **adam}
    made |= {"schedule": args.lr_scheduler_type.value, "schedule_options": args.lr_scheduler_kwargs or None}
    made |= {"warmup": _warmup(args.warmup_steps, steps), "max_grad_norm": clip}
    return dict(parse(OptimiserConfig, made, "TrainingArguments").model_dump())


def _warmup(asked: float, steps: int) -> float:
    """The share of a phase's steps that warms up.

    >>> int(_warmup(29, 100) * 100), _warmup(0.1, 100)
    (29, 0.1)
    """
    if asked < 1:
        return float(asked)
    if asked >= steps:
        raise UsageError(f"warmup_steps = {asked:g}: expected less than the steps of a phase, of which one has {steps}")
    share = asked / steps
    return share if int(share * steps) == int(asked) else nextafter(share, 1.0)


def _checkpointing(args: Any) -> bool:
    # Before transformers 5.2x activation_checkpointing had its older name alone.
    on = getattr(args, "activation_checkpointing", None) or args.gradient_checkpointing
    how = getattr(args, "activation_checkpointing_kwargs", None) or args.gradient_checkpointing_kwargs
    if how not in (None, {}, {"use_reentrant": False}):
        raise UsageError(f"gradient_checkpointing_kwargs: expected use_reentrant = False alone, found {sorted(how)}")
    return bool(on)


def _train(args: Any) -> Table:
    """How to run. ``save_steps`` is read later, when the number of steps is known."""
    for name in args.report_to:
        if name not in REPORTERS:
            raise UsageError(f"report_to: {name!r} is unknown, expected some of {', '.join(REPORTERS)}")
    strategy(args, "logging_strategy")
    strategy(args, "save_strategy")
    made: Table = {"report_to": tuple(args.report_to), "timeout_minutes": args.ddp_timeout / 60}
    if args.save_total_limit is not None:
        made["keep"] = args.save_total_limit
    return made


def _merged(ours: Mapping[str, Any], own: Mapping[str, Any]) -> Table:
    """``ours``, over which goes what was given, table by table."""
    made = dict(ours)
    for key, value in own.items():
        both = isinstance(value, Mapping) and isinstance(made.get(key), Mapping)
        made[key] = _merged(made[key], value) if both else value
    return made
