"""Linear layers of a base that was published in bfloat16: read, and kept where they stay frozen, at half the memory, and bit
for bit what they would be in float32."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, cached_file


class HalfLinear(nn.Linear):
    """A frozen layer whose weight is kept as bfloat16: a product under autocast takes it as it is, another one widened."""

    compute_dtype = torch.float32  # of an adapter that peft puts on it

    def forward(self, input: Tensor) -> Tensor:  # torch's name
        weight = self.weight if torch.is_autocast_enabled(input.device.type) else self.weight.to(input.dtype)
        return nn.functional.linear(input, weight, self.bias)


class HalfConv1D(Conv1D):
    """The same of transformers' transposed layer."""

    compute_dtype = torch.float32

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight if torch.is_autocast_enabled(x.device.type) else self.weight.to(x.dtype)
        rows = x.reshape(-1, x.shape[-1])
        return torch.addmm(self.bias, rows, weight).view(*x.shape[:-1], self.nf)


_HALF: dict[type[nn.Module], type[nn.Module]] = {nn.Linear: HalfLinear, Conv1D: HalfConv1D}
_WHOLE = {half: whole for whole, half in _HALF.items()}


@contextmanager
def read_as_published(name: str) -> Iterator[None]:
    """Meanwhile `from_pretrained` in float32 reads the weights of linear layers as bfloat16, if all numbers in the files of
    the model are; :func:`mark` what it gave. A base in float32 alone would take twice its files in memory."""
    if not _published_half(name):
        yield
        return
    plain = PreTrainedModel._get_dtype_plan

    def plan(self: Any, dtype: torch.dtype) -> dict[str, torch.dtype]:
        return {**plain(self, dtype), **{f"^{re.escape(each)}$": torch.bfloat16 for each in _linear(self)}}

    PreTrainedModel._get_dtype_plan = plan
    try:
        yield
    finally:
        PreTrainedModel._get_dtype_plan = plain


def _linear(model: Any) -> Iterator[str]:
    """Names of the weights of linear layers, but for a head that is the embedding."""
    head = model.get_output_embeddings() if getattr(model.config, "tie_word_embeddings", False) else None
    for name, module in model.named_modules():
        if type(module) in _HALF and module is not head:
            yield f"{name}.weight"


def _published_half(name: str) -> bool:
    """Whether the weights lie in files of which every number is a bfloat16. Files that cannot be read are the loader's to
    speak of."""
    from safetensors import SafetensorError, safe_open

    try:
        try:
            index = json.loads(Path(str(cached_file(name, SAFE_WEIGHTS_INDEX_NAME))).read_text("utf-8"))
            parts = sorted(set(index["weight_map"].values()))
        except OSError:
            parts = [SAFE_WEIGHTS_NAME]
        for part in parts:
            with safe_open(cached_file(name, part), "pt") as file:
                if any(file.get_slice(key).get_dtype() in ("F16", "F32", "F64") for key in file.keys()):  # noqa: SIM118
                    return False
    except (OSError, ValueError, KeyError, TypeError, SafetensorError):
        return False
    return hasattr(PreTrainedModel, "_get_dtype_plan")


def mark(model: nn.Module) -> None:
    """After reading: layers with bfloat16 weights compute as such, and other parameters are float32."""
    for module in model.modules():
        for p in module._parameters.values():
            if p is None or p.dtype != torch.bfloat16:
                continue
            if type(module) in _HALF and p is module.weight:
                module.__class__ = _HALF[type(module)]
            elif type(module) not in _WHOLE or p is not module.weight:
                p.data = p.data.float()


def halve_frozen(model: nn.Module) -> int:
    """Keep the weights of frozen linear layers as bfloat16 where that loses nothing, as those of a base that was published
    so, and no others; the bytes that saves. Embeddings stay, and so does a weight that two layers share."""
    shared = Counter(p for module in model.modules() for p in module._parameters.values() if p is not None)
    saved = 0
    for module in model.modules():
        weight: Any = module._parameters.get("weight")
        if type(module) in _WHOLE and (weight.requires_grad or shared[weight] > 1):
            widen_half(module)
        if type(module) not in _HALF or weight is None or weight.requires_grad or shared[weight] > 1:
            continue
        half = weight.detach().to(torch.bfloat16)
        if weight.dtype != torch.float32 or not (weight.is_meta or torch.equal(half.float(), weight)):
            continue
        module.weight = nn.Parameter(half, requires_grad=False)
        module.__class__ = _HALF[type(module)]
        saved += half.nbytes
    return saved


def widen_half(module: nn.Module) -> None:
    """Make it a plain layer again, if its weight is kept as bfloat16; trained if that was."""
    if type(module) in _WHOLE:
        weight: Any = module.weight
        weight.data = weight.data.float()  # still shared with whom it was
        module.__class__ = _WHOLE[type(module)]
