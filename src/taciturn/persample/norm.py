"""Layer normalisation: weight and bias are vectors, so per-record gradients (B×d) are simply kept."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from taciturn.persample.linear import VectorUse, by_record, sum_positions


class LayerNorm(torch.autograd.Function):
    """Forward as `nn.LayerNorm` over the last axis; backward records the two vectors."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: nn.Parameter, bias: nn.Parameter | None, eps: float, tape: list[Any]
    ) -> Tensor:
        y, mean, rstd = torch.native_layer_norm(x, (x.shape[-1],), weight, bias, eps)
        ctx.save_for_backward(x, weight, mean, rstd)
        ctx.weight, ctx.bias, ctx.tape = weight, bias, tape
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g = grads[0]
        x, weight, mean, rstd = ctx.saved_tensors
        gx, _, _ = torch.ops.aten.native_layer_norm_backward(
            g, x, (x.shape[-1],), mean, rstd, weight, ctx.bias, [True, False, False]
        )
        if ctx.weight.requires_grad:
            ctx.tape.append(VectorUse(ctx.weight, sum_positions(by_record(g * (x - mean) * rstd))))
        if ctx.bias is not None and ctx.bias.requires_grad:
            ctx.tape.append(VectorUse(ctx.bias, sum_positions(by_record(g))))
        return gx, None, None, None, None
