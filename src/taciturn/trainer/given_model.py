"""A model object as the beginning of a run: kept in a folder, which the plan then names like any other."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch

from taciturn.errors import MismatchError, UsageError
from taciturn.models.lora import ALL, is_adapted
from taciturn.text.urls import without_folders

BASE = "base"


def settings(model: Any, coder: Any, folder: Path) -> dict[str, Any]:
    """What a plan says of ``model``, an object or a name, and of the tokenizer ``coder``, if it is to be kept in ``folder``.

    Raises UsageError for a model of no task, or one that carries an adapter.
    """
    made: dict[str, Any] = {"name": model, "tokenizer": "auto"}
    if not isinstance(model, str):
        if is_adapted(model):
            raise UsageError("model: it carries an adapter; give the model below it, and peft_config=LoraConfig(…)")
        made = {"name": str(folder), "tokenizer": "auto", **_task(model)}
        if frozen := [name for name, p in model.named_parameters() if not p.requires_grad]:
            made["frozen"] = tuple(frozen)
        if coder is None:
            raise UsageError("processing_class: a model that is an object needs its tokenizer too")
    if isinstance(coder, str):
        made["tokenizer"] = coder
    elif coder is not None and isinstance(model, str):
        made["tokenizer"] = str(folder)  # else it lies beside the model, which is where "auto" looks
    return made


def hub(model: Any) -> dict[str, Any]:
    """What a card may say of an object's origin: its name, if it came from a hub."""
    name = getattr(getattr(model, "config", None), "_name_or_path", "") or ""
    return {"base_model": name} if name and without_folders(name) == name and not Path(name).exists() else {}


def keep(model: Any, coder: Any, folder: Path) -> None:
    """Write what is an object into ``folder``, whole or not at all. Raises MismatchError where the run there, which is to go
    on, began with another model."""
    objects = [each for each in (model, coder) if each is not None and not isinstance(each, str)]
    if (folder.parent / "plan.json").exists():
        if not isinstance(model, str):
            _require_same(model, folder)
        return
    if not objects:
        return
    shutil.rmtree(folder, ignore_errors=True)
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for each in objects:
        each.save_pretrained(str(partial))
    partial.rename(folder)


def take_back(model: Any, trained: Any) -> None:
    """Give the object the weights that its run ended with; rows that `<MASK>` added come along."""
    rows = trained.get_input_embeddings().weight.shape[0]
    if rows != model.get_input_embeddings().weight.shape[0]:
        model.resize_token_embeddings(rows, mean_resizing=False)
    model.load_state_dict(trained.state_dict())
    model.eval()


def adapter(config: Any) -> dict[str, Any] | None:
    """A `peft.LoraConfig` as a plan's table. Raises UsageError naming a field that would not be honoured."""
    if config is None:
        return None
    from peft import LoraConfig

    if type(config) is not LoraConfig:
        raise UsageError(f"peft_config: expected peft.LoraConfig, found {type(config).__name__}")
    taken = {"r", "lora_alpha", "lora_dropout", "target_modules", "modules_to_save"}
    told = taken | {"task_type", "peft_type", "fan_in_fan_out", "base_model_name_or_path", "inference_mode", "revision"}
    given, plain = vars(config), vars(LoraConfig())
    wrong = sorted(key for key, value in given.items() if key not in told and value != plain.get(key))
    if wrong:
        raise UsageError(f"peft_config: {', '.join(wrong)} cannot be honoured; known are {', '.join(sorted(taken))}")
    targets = config.target_modules
    if targets is not None and not isinstance(targets, str):
        chosen: Any = tuple(sorted(targets))
    elif targets in (None, *ALL):
        chosen = ALL[0]
    else:
        raise UsageError(
            f"peft_config: target_modules {targets!r} is a pattern; expected a list of names or 'all-linear'"
        )
    return {
        "r": config.r,
        "alpha": config.lora_alpha,
        "dropout": config.lora_dropout,
        "targets": chosen,
        "modules_to_save": tuple(config.modules_to_save or ()),
    }


def _task(model: Any) -> dict[str, Any]:
    from taciturn.models.source import AUTO

    for task, auto in AUTO.items():
        known = auto._model_mapping
        if type(model.config) in known and known[type(model.config)] is type(model):
            labels = tuple(model.config.id2label[i] for i in range(model.config.num_labels))
            return {"task": task, **({"labels": labels} if task == "classify" else {})}
    raise UsageError(
        f"model: {type(model).__name__} is not what transformers' Auto classes load for a causal language model, a "
        "classifier or a masked model; a module of one's own: taciturn.PrivateSteps"
    )


def _require_same(model: Any, folder: Path) -> None:
    """Raises MismatchError where ``folder`` holds another model."""
    kept = type(model).from_pretrained(str(folder), dtype="auto").state_dict()
    now = model.state_dict()
    if kept.keys() != now.keys() or any(not torch.equal(t.cpu(), kept[name]) for name, t in now.items()):
        raise MismatchError(
            f"model: {folder.parent} was begun with other weights; give the model it began with, or another output_dir"
        )
