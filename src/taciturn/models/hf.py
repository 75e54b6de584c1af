"""Models by name: our recurrent ones, any of `transformers` by folder, hub name or GGUF file, or one from a config."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, get_args

import torch
import transformers
from transformers import AutoConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_MASKED_LM_MAPPING_NAMES
from transformers.utils import logging

from taciturn.errors import DataError, UsageError, nearest
from taciturn.models import awd_lstm, gguf, lora, lstm
from taciturn.models.tokens import save_tokenizer

logging.disable_progress_bar()  # one display per run: taciturn's own

Task = Literal["causal", "classify", "masked"]
OURS: dict[str, Any] = {"lstm": lstm.LSTMConfig, "awd-lstm": awd_lstm.AWDLSTMConfig}
AUTO = {
    "causal": transformers.AutoModelForCausalLM,
    "classify": transformers.AutoModelForSequenceClassification,
    "masked": transformers.AutoModelForMaskedLM,
}

UNREADABLE = (OSError, ValueError, KeyError, TypeError, AssertionError, struct.error)
"""What transformers and torch raise for files and shapes that are not a model's."""


def load_model(
    spec: str,
    tokenizer: Any,
    seed: int = 0,
    overrides: Mapping[str, Any] | None = None,
    *,
    task: Task = "causal",
    labels: Sequence[str] = (),
    adapter: lora.Lora | None = None,
    frozen: Sequence[str] = (),
    gradient_checkpointing: bool = False,
) -> Any:
    """A model ready to train, in float32.

    spec: ``lstm`` or ``awd-lstm``, ``*.json`` (a `transformers` config: random weights), a folder, a hub name, or a GGUF
    file. overrides: fields of its configuration. labels: the classes, for task ``classify``. frozen: patterns of parameter
    names that are not trained. Raises UsageError for a model, option or pattern that does not fit.

    The embedding grows when `<MASK>` is new to the tokenizer, and its row starts as the mean of the others, so an
    untrained mask does not look like a rare word. A masked model keeps its own mask token beside it: that one is what it
    learns to fill in, `<MASK>` is what stays hidden. Padding needs no token of its own anywhere.
    """
    torch.manual_seed(seed)
    if is_random(spec):
        if adapter is not None:
            raise UsageError(
                f"lora on {spec!r}: an adapter belongs to published weights; name a model folder or a hub name"
            )
        new: list[str] = []
        model = random_model(spec, overrides, task, labels, tokenizer)
    else:
        model, new = published_model(spec, overrides, task, labels)
        grow(model, tokenizer)
    if adapter is not None:
        model = lora.add(model, adapter, task, new=new)
    freeze(model, frozen)
    if gradient_checkpointing:
        checkpoint_activations(model)
    return model


def is_random(spec: str) -> bool:
    """Whether a name stands for a shape rather than for weights."""
    return spec in OURS or spec.endswith(".json")


def random_model(
    spec: str,
    overrides: Mapping[str, Any] | None = None,
    task: Task = "causal",
    labels: Sequence[str] = (),
    tokenizer: Any = None,
) -> Any:
    """A model of the shape ``spec`` names, weights drawn from torch's random state; its vocabulary is ``tokenizer``'s, or
    the configuration's own without one."""
    try:
        raw = {"model_type": OURS[spec].model_type} if spec in OURS else json.loads(Path(spec).read_text())
        kind = raw.pop("model_type")
        default = AutoConfig.for_model(kind)
        _refuse_unknown((overrides or {}).keys() - vars(default).keys(), default)
        options = {**raw, **(overrides or {}), **_labels(task, labels)}
        if tokenizer is not None:
            options |= _special(tokenizer, AutoConfig.for_model(kind, **options))
        config = AutoConfig.for_model(kind, **options)
        _refuse_misfit(config, task)
        model = AUTO[task].from_config(config)
    except UNREADABLE as error:
        raise _cannot_load(spec, error) from error
    model.get_input_embeddings().padding_idx = None
    return model


def published_model(
    spec: str, overrides: Mapping[str, Any] | None = None, task: Task = "causal", labels: Sequence[str] = ()
) -> tuple[Any, list[str]]:
    """(model, names of parameters its files do not hold): a new classifier's head; in a language model none may be."""
    try:
        name, source = gguf.locate(spec)
        config, unused = AutoConfig.from_pretrained(name, **source, **(overrides or {}), return_unused_kwargs=True)
        _refuse_unknown(unused.keys() - source.keys(), config)
        config.update(_labels(task, labels))
        _refuse_misfit(config, task)
        with gguf.without_bar() if source else nullcontext():
            model, info = AUTO[task].from_pretrained(
                name, config=config, **source, dtype=torch.float32, output_loading_info=True
            )
    except UNREADABLE as error:
        raise _cannot_load(spec, error) from error
    new = sorted(info["missing_keys"])
    if new and task != "classify":
        raise UsageError(
            f"model {spec!r} lacks weights of a {task} language model: {', '.join(new[:4])}{', …' if len(new) > 4 else ''}; "
            "name a model that was trained as one"
        )
    if source:
        model = gguf.plain(model, spec)
    model.get_input_embeddings().padding_idx = (
        None  # often the end of text, which must be trained; padding never counts
    )
    return model, new


def grow(model: Any, tokenizer: Any) -> None:
    """Give ids beyond the embedding a row, the mean of the others, in the head as well."""
    rows = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) <= rows:
        return
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    model.get_input_embeddings().padding_idx = None
    with torch.no_grad():
        for module in {model.get_input_embeddings(), model.get_output_embeddings()} - {None}:
            module.weight[rows:] = module.weight[:rows].mean(0)
            if getattr(module, "bias", None) is not None:
                module.bias[rows:] = module.bias[:rows].mean(0)


def freeze(model: Any, patterns: Sequence[str]) -> None:
    """Stop training the parameters whose names match a pattern such as ``transformer.wte.*`` or ``*.bias``."""
    names = dict(model.named_parameters())
    for pattern in patterns:
        found = [p for name, p in names.items() if fnmatchcase(name, pattern)]
        if not found:
            raise UsageError(f"frozen {pattern!r} matches no parameter: {nearest(pattern, names)[:300]}")
        for p in found:
            p.requires_grad_(False)


def checkpoint_activations(model: Any) -> None:
    """Recompute activations in the backward pass instead of keeping them."""
    if not model.supports_gradient_checkpointing:
        raise UsageError(f"gradient_checkpointing: {type(model).__name__} has no layers it can recompute; leave it out")
    model.gradient_checkpointing_enable({"use_reentrant": False})


def context_length(model: Any) -> int | None:
    """Longest sequence the model can read, None when there is no limit (recurrent)."""
    config = model.config
    for name in ("n_positions", "max_position_embeddings"):
        if limit := getattr(config, name, None):
            table = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
            offset = getattr(table, "padding_idx", None)  # RoBERTa's positions start after its padding id
            return int(limit) if offset is None else int(limit) - offset - 1
    return None


def export(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write a folder that plain ``from_pretrained`` loads (our own models after ``import taciturn``).

    A model with an adapter is written twice: merged, and the adapter alone under ``adapter/``, to be put on its base.
    """
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    adapted = lora.is_adapted(model)
    (lora.merge(model) if adapted else model).save_pretrained(str(partial))
    if adapted:
        lora.save(model, tokenizer, partial / "adapter")
    save_tokenizer(tokenizer, partial)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


def load_exported(folder: Path) -> tuple[Any, Any]:
    """(model, tokenizer) of a folder written by :func:`export`, or of any model folder that has both."""
    task = task_of(_config(folder))
    model = AUTO[task].from_pretrained(str(folder), dtype=torch.float32)
    return model.eval(), transformers.AutoTokenizer.from_pretrained(str(folder))


def load_adapted(folder: Path) -> Any:
    """The base and the adapter of a folder written by :func:`export`, put together again."""
    config = _config(folder)
    task = task_of(config)
    labels = list(config.id2label.values()) if task == "classify" else ()
    base, _ = published_model(lora.base_of(folder / "adapter"), None, task, labels)
    grow(base, transformers.AutoTokenizer.from_pretrained(str(folder / "adapter")))
    return lora.attach(base, folder / "adapter")


def task_of(config: Any) -> Task:
    """What a saved model does, from the class it was saved as."""
    name = (config.architectures or [""])[0]
    return "classify" if "SequenceClassification" in name else "masked" if "MaskedLM" in name else "causal"


def _config(folder: Path) -> Any:
    if not (folder / "config.json").is_file():
        raise DataError(f"{folder} is not a model folder: expected config.json and *.safetensors in it")
    return AutoConfig.from_pretrained(str(folder))


def _special(tokenizer: Any, shape: Any) -> dict[str, Any]:
    """Vocabulary and special ids of a model of ``shape`` that is made for ``tokenizer``.

    Some families have a padding id. Where the tokenizer has none that text cannot contain, it is one row more than the
    vocabulary. RoBERTa counts positions from it, so its table gets as many rows more.
    """
    pad = tokenizer.pad_token_id
    ids = {"vocab_size": len(tokenizer), "eos_token_id": tokenizer.eos_token_id, "bos_token_id": tokenizer.bos_token_id}
    if getattr(shape, "pad_token_id", None) is None:
        return ids
    if pad is None or pad == tokenizer.eos_token_id:
        pad = len(tokenizer)
        ids |= {"vocab_size": pad + 1}
        if shape.model_type in ("roberta", "xlm-roberta", "camembert"):
            ids |= {"max_position_embeddings": shape.max_position_embeddings + pad}
    return {**ids, "pad_token_id": pad}


def _labels(task: Task, labels: Sequence[str]) -> dict[str, Any]:
    if task != "classify":
        return {}
    if len(labels) < 2:
        raise UsageError(f"task classify needs at least two labels, found {len(labels)}")
    return {"id2label": dict(enumerate(labels)), "label2id": {label: i for i, label in enumerate(labels)}}


def _refuse_misfit(config: Any, task: Task) -> None:
    """A model read in a way it was not made for gives numbers, and wrong ones."""
    kind = config.model_type
    encoder = kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(config, "is_decoder", False)
    if task == "causal" and encoder:
        raise UsageError(f"{kind} reads text from both sides and cannot be a causal language model: choose task masked")
    if task == "classify" and kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and not encoder:
        raise UsageError(
            f"{kind} classifies by the last token whose id is not padding, and padding has no id here: choose an encoder "
            "such as bert, roberta or distilbert, or awd-lstm"
        )


def _refuse_unknown(keys: set[str], config: Any) -> None:
    if keys:
        known = [name for name in vars(config) if not name.startswith("_")]
        raise UsageError(f"{config.model_type} has no option {min(keys)!r}: {nearest(min(keys), known)}")


def _cannot_load(spec: str, error: Exception) -> UsageError:
    said = str(error).splitlines() or [""]
    return UsageError(
        f"model {spec!r} cannot be loaded: expected {', '.join(map(repr, OURS))}, a config.json with model_type, a model "
        f"folder, a .gguf file, or a hub name in reach ({type(error).__name__}: {said[0][:200]})"
    )


assert set(AUTO) == set(get_args(Task))
