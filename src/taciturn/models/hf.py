"""Models by name: the LSTM, any causal language model of `transformers` by folder or hub name, or one from a config."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging

from taciturn.errors import DataError, UsageError
from taciturn.models import lstm
from taciturn.models.tokens import mask_id, save_tokenizer

logging.disable_progress_bar()  # one display per run: taciturn's own


def load_model(spec: str, tokenizer: Any, seed: int = 0, overrides: dict[str, Any] | None = None) -> Any:
    """A causal language model ready to train, in float32.

    spec: ``lstm`` (200/200 unless ``overrides`` says otherwise), ``*.json`` (a `transformers` config: random weights), or
    a folder / hub name (weights as published). The embedding grows when `<MASK>` is new to the tokenizer, and its row
    starts as the mean of the others, so an untrained mask does not look like a rare word.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    overrides = overrides or {}
    torch.manual_seed(seed)
    if spec == "lstm":
        return lstm.LSTMForCausalLM(
            lstm.LSTMConfig(**{"vocab_size": len(tokenizer), **_special(tokenizer), **overrides})
        )
    try:
        if spec.endswith(".json"):
            raw = json.loads(Path(spec).read_text())
            raw.update(overrides, vocab_size=len(tokenizer), **_special(tokenizer))
            config = AutoConfig.for_model(raw.pop("model_type"), **raw)
            return AutoModelForCausalLM.from_config(config)
        model = AutoModelForCausalLM.from_pretrained(spec, dtype=torch.float32, **overrides)
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(
            f"model {spec!r} cannot be loaded: expected 'lstm', a config.json with model_type, a model folder, or a hub "
            f"name in reach ({type(error).__name__}: {str(error).splitlines()[0][:200]})"
        ) from error
    _grow(model, tokenizer)
    return model


def context_length(model: Any) -> int | None:
    """Longest sequence the model can read, None when there is no limit (recurrent)."""
    for name in ("n_positions", "max_position_embeddings"):
        value = getattr(model.config, name, None)
        if value:
            return int(value)
    return None


def export(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write a folder that plain ``AutoModelForCausalLM.from_pretrained`` loads (the LSTM after ``import taciturn``)."""
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    model.save_pretrained(str(partial))
    save_tokenizer(tokenizer, partial)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


def load_exported(folder: Path) -> tuple[Any, Any]:
    """(model, tokenizer) of a folder written by :func:`export`, or of any model folder that has both."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if not (folder / "config.json").is_file():
        raise DataError(f"{folder} is not a model folder: expected config.json and *.safetensors in it")
    model = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32)
    return model.eval(), AutoTokenizer.from_pretrained(str(folder))


def _special(tokenizer: Any) -> dict[str, Any]:
    return {"eos_token_id": tokenizer.eos_token_id, "bos_token_id": tokenizer.bos_token_id}


def _grow(model: Any, tokenizer: Any) -> None:
    rows = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) <= rows:
        return
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    with torch.no_grad():
        for module in {model.get_input_embeddings(), model.get_output_embeddings()} - {None}:
            module.weight[rows:] = module.weight[:rows].mean(0)
            if getattr(module, "bias", None) is not None:
                module.bias[rows:] = module.bias[:rows].mean(0)
    assert mask_id(tokenizer) < len(tokenizer)
