"""The number type of matrix products in training. Weights that are trained, norms, clipped sums and noise stay float32."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

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
