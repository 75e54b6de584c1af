"""The recurrent half of a GRU layer. What W_ih and b_ih do is an affine layer of its own, before the loop; here are W_hh and
b_hh, whose pre-activation gradients D_UT(3H) and inputs h_{t−1} make an affine layer as well."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from taciturn.persample.linear import AffineUse, KeptUse, Site, sum_positions


class GRU(torch.autograd.Function):
    """States [B, T, H] of gates_BT3H = W_ih·x + b_ih (order r, z, n) and a first state [B, H]:
    n = tanh(a_n + r∘(W_hn·h + b_hn)), h' = (1−z)∘n + z∘h (Cho et al. 2014, as in PyTorch)."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, h0: Tensor, w_hh: Tensor, b_hh: Tensor, site: Site) -> Tensor:
        B, T, _ = gates.shape
        H = w_hh.shape[1]
        hs, rzn, own = (gates.new_empty(T, B, k * H) for k in (1, 3, 1))
        h = h0
        for t in range(T):
            a = torch.addmm(b_hh, h, w_hh.t())
            rz = (gates[:, t, : 2 * H] + a[:, : 2 * H]).sigmoid_()
            r, z = rz.chunk(2, 1)
            n = torch.addcmul(gates[:, t, 2 * H :], r, a[:, 2 * H :]).tanh_()
            h = torch.lerp(n, h, z)
            hs[t], rzn[t], own[t] = h, torch.cat((rz, n), 1), a[:, 2 * H :]
        ctx.save_for_backward(h0, w_hh, hs, rzn, own)
        ctx.site = site
        return hs.transpose(0, 1).contiguous()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        h0, w_hh, hs, rzn, own = ctx.saved_tensors
        (T, B, H), gy = hs.shape, grads[0].transpose(0, 1)
        before = torch.cat((h0[None], hs[:-1]))
        r, z, n = rzn.split(H, 2)
        d_in, d_h = gy.new_empty(T, B, 3 * H), gy.new_empty(T, B, 3 * H)
        dh = torch.zeros_like(h0)
        for t in range(T - 1, -1, -1):
            dh = dh + gy[t]
            d_n = dh * (1 - z[t]) * (1 - n[t] * n[t])
            d_r = d_n * own[t] * r[t] * (1 - r[t])
            d_z = dh * (before[t] - n[t]) * z[t] * (1 - z[t])
            d_in[t] = torch.cat((d_r, d_z, d_n), 1)
            d_h[t] = torch.cat((d_r, d_z, d_n * r[t]), 1)
            dh = torch.addmm(dh * z[t], d_h[t], w_hh)
        site = ctx.site
        if site.weight or site.bias:
            d_U = site.tape.by_unit(d_h.transpose(0, 1), site.name)
            if site.weight:
                h_U = site.tape.by_unit(before.transpose(0, 1), site.name)
                site.tape.add(AffineUse(site.weight, h_U, d_U, False))
            if site.bias:
                site.tape.add(KeptUse(site.bias, sum_positions(d_U)))
        return d_in.transpose(0, 1), dh, None, None, None
