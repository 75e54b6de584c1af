"""The number type of the weights in a run's files: that of its base, so that whoever loads them needs as much memory.

A run trains in float32. Its weights are rounded when the model is written, after the last step, and so before files are
certified, attacked or copied: a function of what is released anyway. Checkpoints and adapters stay float32.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor
from transformers import AutoConfig

from taciturn.models.gguf import locate
from taciturn.models.source import UNREADABLE, cannot_load, is_random

SavedDtype = Literal["base", "float32", "bf16"]


def saved_dtype(asked: SavedDtype, spec: str) -> torch.dtype:
    """What ``asked`` means for a model that begins as ``spec``.

    base: bfloat16 where the base's configuration names it, as `from_pretrained(dtype="auto")` reads it, else float32. A
    float16 base gives float32 too: a trained weight or activation may lie outside its range, which ends at 65,504.
    Raises UsageError for a base that cannot be read.
    """
    if asked == "bf16":
        return torch.bfloat16
    if asked == "float32" or is_random(spec):
        return torch.float32
    try:
        name, source = locate(spec)
        published = AutoConfig.from_pretrained(name, **source).dtype
    except UNREADABLE as error:
        raise cannot_load(spec, error) from error
    return torch.bfloat16 if published == torch.bfloat16 else torch.float32


def stays_whole(model: Any, name: str) -> bool:
    """Whether the family of ``model`` keeps this module or parameter in float32."""
    return any(f".{part}." in f".{name}." for part in getattr(model, "_keep_in_fp32_modules_strict", None) or ())


def rounded(model: Any, dtype: torch.dtype) -> dict[str, Tensor]:
    """The state of ``model`` with its floating-point tensors in ``dtype``, but for those that its family keeps in float32.
    Weights that are tied stay one tensor; a tensor that has the type already is not copied."""
    state: dict[str, Tensor] = model.state_dict()
    result: dict[str, Tensor] = {}
    made: dict[Any, Tensor] = {}  # by place in memory, which is taken as long as `state` holds the tensor
    for name, tensor in state.items():
        kept = not tensor.is_floating_point() or stays_whole(model, name)
        place = (tensor.data_ptr(), tensor.shape, tensor.stride())
        result[name] = made.setdefault(place, tensor if kept else tensor.to(dtype))
    return result


def save(model: Any, folder: str, dtype: torch.dtype) -> None:
    """Write ``model``, which stays as it is, with weights in ``dtype``, as its configuration's file then says."""
    model.save_pretrained(folder, state_dict=rounded(model, dtype))
    before, model.config.dtype = model.config.dtype, dtype
    model.config.save_pretrained(folder)
    model.config.dtype = before
