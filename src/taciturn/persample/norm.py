"""Layer and root-mean-square normalisation: weight and bias are vectors, so per-unit gradients (U×d) are simply kept."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from taciturn.persample.linear import KeptUse, Site, sum_positions


class LayerNorm(torch.autograd.Function):
    """Forward as `nn.LayerNorm` over the last axis, scaled by ``plus`` + w, in float32 under autocast; backward records the
    two vectors."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, eps: float, plus: int, site: Site) -> Tensor:
        x, weight = x.float(), weight + plus if plus else weight
        y, mean, rstd = torch.native_layer_norm(x, (x.shape[-1],), weight, bias, eps)
        ctx.save_for_backward(x, weight, mean, rstd)
        ctx.bias, ctx.site = bias, site
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g, site = grads[0].float(), ctx.site
        x, weight, mean, rstd = ctx.saved_tensors
        gx = None
        if ctx.needs_input_grad[0]:
            gx = torch.ops.aten.native_layer_norm_backward(
                g, x, (x.shape[-1],), mean, rstd, weight, ctx.bias, [True, False, False]
            )[0]
        if site.weight:
            _vector(site, site.weight, (x - mean).mul_(rstd).mul_(g))
        if site.bias:
            _vector(site, site.bias, g)
        return gx, None, None, None, None, None


class RMSNorm(torch.autograd.Function):
    """y = w·x·(mean(x²) + eps)^(−½) (Zhang & Sennrich 2019, eq. 4), with ``plus`` + w for w, in float32; the result has the
    input's type."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float, plus: int, site: Site) -> Tensor:
        x32, weight = x.float(), weight + plus if plus else weight
        rstd = torch.linalg.vecdot(x32, x32).div_(x.shape[-1]).add_(eps).rsqrt_()[..., None]
        ctx.save_for_backward(x, weight, rstd)
        ctx.site = site
        y: Tensor = (x32 * rstd).mul_(weight)
        return y.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g, site = grads[0].float(), ctx.site
        x, weight, rstd = ctx.saved_tensors
        normed = x.float() * rstd
        gx = None
        if ctx.needs_input_grad[0]:
            gw = g * weight
            inner = torch.linalg.vecdot(gw, normed).div_(x.shape[-1])[..., None]
            gx = gw.addcmul_(normed, inner, value=-1).mul_(rstd)
        if site.weight:
            _vector(site, site.weight, normed.mul_(g))
        return gx, None, None, None, None


def _vector(site: Site, key: str, per_position: Tensor) -> None:
    site.tape.add(KeptUse(key, sum_positions(site.tape.by_unit(per_position, key))))
