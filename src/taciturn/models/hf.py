"""Models ready to train, and models written for others to load."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from transformers import AutoConfig
from transformers.utils import logging

from taciturn.errors import DataError, UsageError, nearest
from taciturn.models import lora
from taciturn.models.gguf import locate
from taciturn.models.half import halve_frozen, widen_half
from taciturn.models.prompt import Prompt
from taciturn.models.saved_dtype import save
from taciturn.models.sequences import mask_id
from taciturn.models.source import AUTO, Task, is_random, published_model, random_model
from taciturn.models.tokenizers import save_tokenizer

logging.disable_progress_bar()  # one display per run: taciturn's own

KEPT = "taciturn_prompt"
"""The field of a saved configuration that holds a prompt."""


def load_model(
    spec: str,
    tokenizer: Any,
    seed: int = 0,
    overrides: Mapping[str, Any] | None = None,
    *,
    task: Task | Literal["prompt"] = "causal",
    labels: Sequence[str] = (),
    prompt: Prompt | None = None,
    adapter: lora.Lora | None = None,
    frozen: Sequence[str] = (),
    gradient_checkpointing: bool = False,
    half: bool = False,
) -> Any:
    """A model ready to train, in float32.

    spec: ``lstm`` or ``awd-lstm``, ``*.json`` (a `transformers` config: random weights), a folder, a hub name, or a GGUF
    file. overrides: fields of its configuration. labels: the classes, for task ``classify``. Task ``prompt`` is a masked
    language model if the tokenizer has a mask token, else a causal one; prompt: what is kept in its configuration for
    :func:`saved_task`. frozen: patterns of parameter names that are not trained. half: frozen linear layers of a base that
    was published in bfloat16 are kept so (:mod:`taciturn.models.half`), and never held in float32. Raises UsageError for a
    model, option or pattern that does not fit.

    The embedding grows when `<MASK>` is new to the tokenizer, and its row starts as the mean of the others, so an
    untrained mask does not look like a rare word. A masked model keeps its own mask token beside it: that one is what it
    learns to fill in, `<MASK>` is what stays hidden. Padding needs no token of its own anywhere.
    """
    if task == "prompt":
        more: dict[str, Any] = {
            "adapter": adapter,
            "frozen": frozen,
            "gradient_checkpointing": gradient_checkpointing,
            "half": half,
        }
        return _answering(spec, tokenizer, seed, overrides, prompt, **more)
    torch.manual_seed(seed)
    if is_random(spec):
        if adapter is not None:
            raise UsageError(
                f"lora on {spec!r}: an adapter belongs to published weights; name a model folder or a hub name"
            )
        new: list[str] = []
        model = random_model(spec, overrides, task, labels, tokenizer)
    else:
        frozen_layers = adapter is not None or bool(frozen)
        model, new = published_model(spec, overrides, task, labels, half=half and frozen_layers)
        resize_embeddings(model, tokenizer)
    if adapter is not None:
        model = lora.add(model, adapter, task, new=new)
    freeze(model, frozen)
    if half:
        halve_frozen(model)
    if gradient_checkpointing:
        checkpoint_activations(model)
    return model


def _answering(
    spec: str, tokenizer: Any, seed: int, overrides: Mapping[str, Any] | None, prompt: Prompt | None, **more: Any
) -> Any:
    """A language model that answers prompts."""
    kind: Task = "causal" if tokenizer.mask_token_id is None else "masked"
    try:
        model = load_model(spec, tokenizer, seed, overrides, task=kind, **more)
    except UsageError as error:
        has = "no mask token" if kind == "causal" else "a mask token"
        raise UsageError(f"task prompt: the tokenizer has {has}, so a {kind} model is wanted: {error}") from error
    if prompt is not None:
        kept = {"template": prompt.template, "labels": list(prompt.words), "words": list(prompt.words.values())}
        setattr(model.config, KEPT, kept)
    return model


def resize_embeddings(model: Any, tokenizer: Any) -> None:
    """Give ids beyond the embedding a row, the mean of the others, in the head as well; `<MASK>` that of the model's own
    mask token, where it has one (JFT, A.2)."""
    rows = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) <= rows:
        return
    for module in {model.get_output_embeddings()} - {None}:
        widen_half(module)  # a mean has more digits
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    model.get_input_embeddings().padding_idx = None
    with torch.no_grad():
        for module in {model.get_input_embeddings(), model.get_output_embeddings()} - {None}:
            module.weight[rows:] = module.weight[:rows].mean(0)
            if getattr(module, "bias", None) is not None:
                module.bias[rows:] = module.bias[:rows].mean(0)
            if tokenizer.mask_token_id is not None and mask_id(tokenizer) >= rows:
                module.weight[mask_id(tokenizer)] = module.weight[tokenizer.mask_token_id]


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
    model.disable_input_require_grads()  # what peft asks for on behalf of the reentrant kind


def context_length(model: Any) -> int | None:
    """Longest sequence the model can read, None when there is no limit (recurrent)."""
    config = model.config
    for name in ("n_positions", "max_position_embeddings"):
        if limit := getattr(config, name, None):
            table = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
            offset = getattr(table, "padding_idx", None)  # RoBERTa's positions start after its padding id
            return int(limit) if offset is None else int(limit) - offset - 1
    return None


def export(model: Any, tokenizer: Any, folder: Path, dtype: torch.dtype = torch.float32) -> None:
    """Write a folder that plain ``from_pretrained`` loads (our own models after ``import taciturn``).

    A model with an adapter is written twice: merged, and the adapter alone under ``adapter/``, to be put on its base.
    dtype: of the weights in the files; the adapter's are float32.
    """
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    adapted = lora.is_adapted(model)
    save(lora.merge(model, dtype) if adapted else model, str(partial), dtype)
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


def load_named(spec: str) -> tuple[Any, Any]:
    """(model, tokenizer) of a causal language model with weights by a hub name or a .gguf file, in evaluation mode."""
    if is_random(spec):
        raise UsageError(
            f"model {spec!r} is a shape without weights: name a run, a model folder, a .gguf file or a hub name"
        )
    model, _ = published_model(spec)
    name, source = locate(spec)
    return model.eval(), transformers.AutoTokenizer.from_pretrained(name, **source)


def load_adapted(folder: Path, base: str | None = None) -> Any:
    """The base and the adapter of a folder written by :func:`export`, put together again. base: where the base lies, if
    it is a folder or file, which the adapter does not say; in as many bits as it had in training."""
    config = _config(folder)
    task = task_of(config)
    labels = _labels(config) if task == "classify" else ()
    whole, _ = published_model(base or lora.base_of(folder / "adapter"), None, task, labels)
    resize_embeddings(whole, transformers.AutoTokenizer.from_pretrained(str(folder / "adapter")))
    return lora.attach(whole, folder / "adapter", getattr(config, "taciturn_base_bits", None))


def task_of(config: Any) -> Task:
    """What a saved model does, from the class it was saved as."""
    name = (config.architectures or [""])[0]
    return "classify" if "SequenceClassification" in name else "masked" if "MaskedLM" in name else "causal"


def saved_task(config: Any) -> dict[str, Any]:
    """What :func:`taciturn.models.tasks.encode_task` needs to know to use a saved model as it was trained."""
    if kept := getattr(config, KEPT, None):
        return {
            "task": "prompt",
            "prompt": Prompt(kept["template"], dict(zip(kept["labels"], kept["words"], strict=True))),
        }
    task = task_of(config)
    return {"task": task, "names": _labels(config)} if task == "classify" else {"task": task}


def _labels(config: Any) -> tuple[str, ...]:
    """The classes in the order of the logits; a configuration's file sorts its numbers as words."""
    return tuple(config.id2label[i] for i in range(config.num_labels))


def _config(folder: Path) -> Any:
    if not (folder / "config.json").is_file():
        raise DataError(f"{folder} is not a model folder: expected config.json and *.safetensors in it")
    return AutoConfig.from_pretrained(str(folder))
