"""The number type of matrix products in training. Weights that are trained, norms, clipped sums and noise stay float32."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers.pytorch_utils import Conv1D

from taciturn.models.four_bit import FourBitLinear, widen

Precision = Literal["float32", "bf16", "fp16"]


def autocast_type(precision: Precision) -> torch.dtype | None:
    """What `torch.autocast` is to use, None where it is off."""
    return {"float32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]


SHORT = 256
"""Positions up to which attention that is learned stays float32 on a CPU."""


@contextmanager
def autocast(device: str, kind: torch.dtype | None, *, recomputed: bool = False) -> Iterator[None]:
    """Matrix products in ``kind`` on a type of device. On a CPU attention over SHORT positions at most stays float32: what
    torch has for it in bfloat16 takes longer backwards, the more so the shorter records are (docs/benchmarks.md).
    recomputed: whether activations are computed again in the backward pass, where nothing would know of that; then
    attention is as torch has it.
    """
    with ExitStack() as stack:
        stack.enter_context(torch.autocast(device, kind, enabled=kind is not None))
        if kind is not None and device == "cpu" and not recomputed:
            stack.enter_context(_ShortAttention())
        yield


class _ShortAttention(TorchFunctionMode):
    def __torch_function__(
        self,
        function: Callable[..., Any],
        _types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        if function is nn.functional.scaled_dot_product_attention:
            read = [*args[:3], *(named[name] for name in ("query", "key", "value") if name in named)]
            if any(each.requires_grad for each in read) and max(each.shape[-2] for each in read) <= SHORT:
                with torch.autocast("cpu", enabled=False):
                    made: Tensor = function(*map(_wide, args), **{name: _wide(value) for name, value in named.items()})
                return made.to(torch.get_autocast_dtype("cpu"))
        return function(*args, **named)


def _wide(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.is_floating_point() else value


class HalfLinear(nn.Linear):
    """A frozen layer whose weight is kept as bfloat16: a product under autocast takes it as it is, another one widened."""

    def forward(self, input: Tensor) -> Tensor:  # torch's name
        weight = self.weight if torch.is_autocast_enabled(input.device.type) else self.weight.to(input.dtype)
        return nn.functional.linear(input, weight, self.bias)


class HalfConv1D(Conv1D):
    """The same of transformers' transposed layer."""

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight if torch.is_autocast_enabled(x.device.type) else self.weight.to(x.dtype)
        rows = x.reshape(-1, x.shape[-1])
        return torch.addmm(self.bias, rows, weight).view(*x.shape[:-1], self.nf)


_HALF: dict[type[nn.Module], type[nn.Module]] = {nn.Linear: HalfLinear, Conv1D: HalfConv1D}
_WHOLE = {half: whole for whole, half in _HALF.items()}


def halve_frozen(model: nn.Module) -> int:
    """Keep the weights of frozen linear layers as bfloat16 where that loses nothing, as those of a base that was published
    so; the bytes that saves. Embeddings stay, and so does a weight that two layers share."""
    shared = Counter(p for module in model.modules() for p in module._parameters.values() if p is not None)
    saved = 0
    for module in model.modules():
        weight: Any = module._parameters.get("weight")
        if type(module) not in _HALF or weight is None or weight.requires_grad or shared[weight] > 1:
            continue
        half = weight.detach().to(torch.bfloat16)
        if weight.dtype != torch.float32 or not (weight.is_meta or torch.equal(half.float(), weight)):
            continue
        module.weight = nn.Parameter(half, requires_grad=False)
        module.__class__ = _HALF[type(module)]
        saved += half.nbytes
    return saved


def widen_frozen(model: nn.Module) -> None:
    """Undo :func:`halve_frozen` and :func:`~taciturn.models.four_bit.quantize_frozen`, before weights are added to."""
    for module in model.modules():
        if isinstance(module, FourBitLinear):
            widen(module)
        if type(module) in _WHOLE:
            weight: Any = module.weight
            module.weight = nn.Parameter(weight.detach().float(), requires_grad=False)
            module.__class__ = _WHOLE[type(module)]
