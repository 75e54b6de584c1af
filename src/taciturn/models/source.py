"""Where a model comes from: our recurrent shapes, a `transformers` configuration, or published weights.

What does not fit (a task, an option, weights that are not there) is an error here: transformers would go on with weights
drawn at random, or leave an option out.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from transformers import AutoConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_MASKED_LM_MAPPING_NAMES

from taciturn.errors import UsageError, nearest
from taciturn.models import awd_lstm, gguf, lstm
from taciturn.models.families import WORKING
from taciturn.models.half import mark, read_as_published

Task = Literal["causal", "classify", "masked"]
OURS: dict[str, Any] = {"lstm": lstm.LSTMConfig, "awd-lstm": awd_lstm.AWDLSTMConfig}
AUTO = {
    "causal": transformers.AutoModelForCausalLM,
    "classify": transformers.AutoModelForSequenceClassification,
    "masked": transformers.AutoModelForMaskedLM,
}

UNREADABLE = (OSError, ValueError, KeyError, TypeError, AssertionError, struct.error)
"""What transformers and torch raise for files and shapes that are not a model's."""


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
        model = AUTO[task].from_config(config, dtype=torch.float32)  # whatever type its file names
    except UNREADABLE as error:
        raise cannot_load(spec, error) from error
    model.get_input_embeddings().padding_idx = None
    return model


def published_model(
    spec: str,
    overrides: Mapping[str, Any] | None = None,
    task: Task = "causal",
    labels: Sequence[str] = (),
    *,
    half: bool = False,
) -> tuple[Any, list[str]]:
    """(model, names of parameters its files do not hold): a new classifier's head; in a language model none may be. half: as
    :func:`taciturn.models.hf.load_model`."""
    try:
        name, source = gguf.locate(spec)
        config, unused = AutoConfig.from_pretrained(name, **source, **(overrides or {}), return_unused_kwargs=True)
        _refuse_unknown(unused.keys() - source.keys(), config)
        vars(config).pop("taciturn_base_bits", None)  # of the run that left the model, not of the one that begins
        config.update(_labels(task, labels))
        _refuse_misfit(config, task)
        with gguf.without_bar() if source else read_as_published(name) if half else nullcontext():
            model, info = AUTO[task].from_pretrained(
                name, config=config, **source, dtype=torch.float32, output_loading_info=True
            )
    except UNREADABLE as error:
        raise cannot_load(spec, error) from error
    mark(model)
    new = sorted(info["missing_keys"])
    if new and task != "classify":
        raise UsageError(
            f"model {spec!r} lacks weights of a {task} language model: {', '.join(new[:4])}{', …' if len(new) > 4 else ''}; "
            "name a model that was trained as one"
        )
    if source:
        model = gguf.dequantized(model, spec)
        gguf.check_read(model, spec)
    elif name != spec:  # a download: an adapter is put on the hub's model again, wherever that lies
        model.name_or_path = model.config._name_or_path = spec
    model.get_input_embeddings().padding_idx = (
        None  # often the end of text, which must be trained; padding never counts
    )
    return model, new


def shapes(spec: str, task: Task = "causal", labels: Sequence[str] = ()) -> Any:
    """A model of any size as shapes without weights, from its configuration alone; on the device "meta"."""
    with torch.device("meta"):
        if is_random(spec):
            return random_model(spec, None, task, labels)
        try:
            name, source = gguf.locate(spec)
            config = AutoConfig.from_pretrained(name, **source)
            config.update(_labels(task, labels))
            _refuse_misfit(config, task)
            return AUTO[task].from_config(config, dtype=torch.float32)
        except UNREADABLE as error:
            raise cannot_load(spec, error) from error


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
    if getattr(config, "is_encoder_decoder", False):
        raise UsageError(f"{kind} reads one text and writes another, and there is no task of that form here. {WORKING}")
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


def cannot_load(spec: str, error: Exception) -> UsageError:
    """What to raise for a model whose files or shape are not readable."""
    folder = (
        spec.startswith((".", "/", "~")) or spec.endswith("/") or spec.count("/") > 1
    )  # no name on a hub is like this
    if folder and not Path(spec).expanduser().exists():
        return UsageError(f"model {spec!r}: no such folder; expected one with config.json and *.safetensors")
    said = str(error).splitlines() or [""]
    ours = ", ".join(map(repr, OURS))
    expected = f"{ours}, a config.json with model_type, a model folder, a .gguf file, or a hub name in reach"
    if "architecture" in said[0] and gguf.is_file(spec):
        expected = f"a file of one of the architectures {', '.join(gguf.architectures())}"
    return UsageError(f"model {spec!r} cannot be loaded: expected {expected} ({type(error).__name__}: {said[0][:200]})")
