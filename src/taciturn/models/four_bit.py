"""Frozen linear layers in 4 bits: NormalFloat in blocks of 64 with a float32 scale each (Dettmers et al. 2023, QLoRA,
section 3), by `bitsandbytes`. A weight is made whole where a product needs it, forwards and backwards, and let go of."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from taciturn.errors import MissingExtra, UsageError
from taciturn.models.half import HalfLinear, widen_half

BLOCK = 64
"""Weights that share a scale."""


class _Product(torch.autograd.Function):
    """x·Wᵀ + b; the backward pass makes W whole again, since holding it would take the memory that 4 bits save."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, layer: FourBitLinear) -> Tensor:
        kind = x.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
        ctx.layer, ctx.dtype = layer, x.dtype
        bias = None if layer.bias is None else layer.bias.to(dtype)
        return nn.functional.linear(x.to(dtype), layer.whole(dtype), bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return (grads[0] @ ctx.layer.whole(grads[0].dtype)).to(ctx.dtype), None


class FourBitLinear(nn.Module):
    """A linear layer, though not of torch's class, as nobody may take ``weight`` for its matrix.

    weight: two numbers a byte, uint8 [p·d/2, 1]; scales: the largest magnitude of each block, float32 [p·d/64].
    """

    in_features: int
    out_features: int
    weight: nn.Parameter
    scales: nn.Parameter
    bias: nn.Parameter | None

    def whole(self, dtype: torch.dtype) -> Tensor:
        """The weight that the layer multiplies by, [p, d]."""
        from bitsandbytes.functional import QuantState, dequantize_4bit

        # A row a block: by rows of another length its CPU kernel (0.50) takes the wrong scales.
        rows = torch.Size((self.scales.numel(), BLOCK))
        how = QuantState(self.scales, rows, dtype=dtype, blocksize=BLOCK, quant_type="nf4")
        found: Tensor = dequantize_4bit(self.weight, how)
        return found.view(self.out_features, self.in_features)

    def forward(self, input: Tensor) -> Tensor:  # torch's name
        return _Product.apply(input, self)  # type: ignore[no-any-return]


def quantize_frozen(model: Any) -> None:
    """Keep frozen linear layers in 4 bits, but for the head, a weight that two layers share, and layers whose inputs are no
    whole blocks. Embeddings, norms, what is trained, and layers of another kind (stacked experts, transformers' Conv1D) stay
    as they are.

    Raises MissingExtra without bitsandbytes, UsageError where there is no such layer.
    """
    if find_spec("bitsandbytes") is None:
        raise MissingExtra("bitsandbytes", "4bit")
    shared = Counter(p for module in model.modules() for p in module._parameters.values() if p is not None)
    layers = [
        module
        for name, module in model.named_modules()
        if type(module) in (nn.Linear, HalfLinear)
        and module.in_features % BLOCK == 0
        and ".lora_" not in name  # of an adapter that is not the active one
        and module is not model.get_output_embeddings()
        and not any(p.requires_grad or shared[p] > 1 for p in module.parameters(recurse=False))
    ]
    if not layers:
        raise UsageError("base_bits = 4 keeps frozen linear layers in 4 bits, and this model has none: add lora")
    for layer in layers:
        _quantize(layer)
    model.config.taciturn_base_bits = 4  # so that an exported adapter finds the base it was trained on


def widen_frozen(model: nn.Module) -> None:
    """Undo :func:`quantize_frozen` and :func:`~taciturn.models.half.halve_frozen`, before weights are added to."""
    for module in model.modules():
        if isinstance(module, FourBitLinear):
            widen(module)
        widen_half(module)


def widen(layer: FourBitLinear) -> None:
    """Make it a plain layer again, in float32."""
    weight = layer.whole(torch.float32)
    layer.__class__ = nn.Linear  # type: ignore[assignment]
    layer.weight = nn.Parameter(weight, requires_grad=False)
    del layer.scales


def _quantize(layer: Any) -> None:
    weight = layer.weight.detach()
    if weight.is_meta:  # shapes alone
        size = prod(weight.shape)
        packed = torch.empty(size // 2, 1, dtype=torch.uint8, device="meta")
        scales = torch.empty(size // BLOCK, device="meta")
    else:
        from bitsandbytes.functional import quantize_4bit

        packed, state = quantize_4bit(weight.float().contiguous(), blocksize=BLOCK, quant_type="nf4")
        scales = state.absmax
    layer.weight = nn.Parameter(packed, requires_grad=False)
    layer.scales = nn.Parameter(scales, requires_grad=False)
    layer.__class__ = FourBitLinear
