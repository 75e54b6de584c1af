"""Affine layers, y = x·W (+ b): the norm of a record's gradient without forming it, where that is cheaper.

With input x_BTd and output gradient g_BTp the gradient of record b is G_b = x_bᵀ g_b, and
‖G_b‖² = ⟨x_b x_bᵀ, g_b g_bᵀ⟩ (ghost norm: Goodfellow 2015; for sequences Li et al. 2022, eq. 5). Two T×T Gram matrices
cost T(d+p) per entry against d·p for G_b itself, so short records use Gram matrices and long ones keep G_b.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(slots=True)
class AffineUse:
    """One use of an affine weight in a forward pass. ``transposed``: the weight is stored d×p (Conv1D), else p×d."""

    weight: nn.Parameter
    x: Tensor
    g: Tensor
    transposed: bool
    kept: Tensor | None = field(default=None)

    def squared_norms(self) -> Tensor:
        T, d, p = self.x.shape[1], self.x.shape[2], self.g.shape[2]
        if T * (d + p) <= d * p:
            return (gram(self.x) * gram(self.g)).sum((1, 2))
        left, right = (self.x, self.g) if self.transposed else (self.g, self.x)
        self.kept = torch.bmm(left.transpose(1, 2), right)
        return self.kept.flatten(1).square().sum(1)

    def clipped_sum(self, c: Tensor) -> Tensor:
        if self.kept is not None:
            return (c @ self.kept.flatten(1)).view_as(self.weight)
        x, g = self.x, self.g
        if x.shape[2] <= g.shape[2]:  # scale the narrower side
            x = x * c[:, None, None]
        else:
            g = g * c[:, None, None]
        x, g = x.flatten(0, 1), g.flatten(0, 1)
        return x.t() @ g if self.transposed else g.t() @ x


@dataclass(slots=True)
class VectorUse:
    """A parameter small enough to keep its per-record gradients, g_Bd: biases and norm weights."""

    weight: nn.Parameter
    g: Tensor

    def squared_norms(self) -> Tensor:
        return self.g.flatten(1).square().sum(1)

    def clipped_sum(self, c: Tensor) -> Tensor:
        return (c @ self.g.flatten(1)).view_as(self.weight)


class Affine(torch.autograd.Function):
    """Forward as the layer's own; backward returns the input gradient only and records (x, g)."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: nn.Parameter, bias: nn.Parameter | None, transposed: bool, tape: list[Any]
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.bias, ctx.weight, ctx.transposed, ctx.tape = bias, weight, transposed, tape
        if not transposed:
            return nn.functional.linear(x, weight, bias)
        rows = x.reshape(-1, x.shape[-1])
        y = rows @ weight if bias is None else torch.addmm(bias, rows, weight)
        return y.view(*x.shape[:-1], weight.shape[1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g = grads[0]
        x, weight = ctx.saved_tensors
        x3, g3 = by_record(x), by_record(g)
        if ctx.weight.requires_grad:
            ctx.tape.append(AffineUse(ctx.weight, x3, g3, ctx.transposed))
        if ctx.bias is not None and ctx.bias.requires_grad:
            ctx.tape.append(VectorUse(ctx.bias, sum_positions(g3)))
        gx = None
        if ctx.needs_input_grad[0]:
            gx = g @ weight.t() if ctx.transposed else g @ weight
        return gx, None, None, None, None


def by_record(x: Tensor) -> Tensor:
    """[B, ..., d] as [B, T, d]; a layer applied to one vector per record has T = 1."""
    return x[:, None] if x.dim() == 2 else x.flatten(1, -2)


def sum_positions(x_BTd: Tensor) -> Tensor:
    """Σ_t x_btd as a batched product: summing the middle axis directly is slow on CPU."""
    ones = x_BTd.new_ones(1, 1, 1).expand(x_BTd.shape[0], 1, x_BTd.shape[1])
    return torch.bmm(ones, x_BTd).squeeze(1)


def gram(x_BTd: Tensor) -> Tensor:
    """Inner products of a record's positions, [B, T, T]."""
    return torch.bmm(x_BTd, x_BTd.transpose(1, 2))
