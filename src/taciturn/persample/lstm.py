"""One LSTM layer. Its pre-activation is an affine map of [x_t; h_{t−1}; 1; 1], so with gate gradients D_UT(4H) all four
parameters share one Gram matrix: ‖G_u‖² = ⟨DDᵀ, XXᵀ + HHᵀ + 2·11ᵀ⟩ (two biases add two constant inputs).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from taciturn.persample.linear import gram_product
from taciturn.persample.sums import Sums
from taciturn.persample.tape import Tape

Keys = tuple[str | None, str | None, str | None, str | None]
"""Names of (W_ih, W_hh, b_ih, b_hh); None for a frozen one, which adds neither norm nor sum."""


@dataclass(slots=True)
class LSTMUse:
    """x_UTd, h_UTH (the states entering each step) and d_UT4H (gate gradients) of one pass."""

    key: str
    keys: Keys
    x: Tensor
    h: Tensor
    d: Tensor

    def squared_norms(self) -> tuple[Tensor, Tensor]:
        w_ih, w_hh, *biases = self.keys
        inputs = [x for key, x in ((w_ih, self.x), (w_hh, self.h)) if key]
        total = sum(1.0 for b in biases if b) * self.d.sum(1).square().sum(1)
        parts = sum(1.0 for b in biases if b) * self.d.square().sum((1, 2))
        if inputs:
            norms, each = gram_product(torch.cat(inputs, 2), self.d)
            total, parts = total + norms, parts + each
        return total, parts

    def gradients(self, u: int) -> dict[str, Tensor]:
        x, h, d = (z[u].double() for z in (self.x, self.h, self.d))
        every = (d.t() @ x, d.t() @ h, d.sum(0), d.sum(0))
        return {key: G for key, G in zip(self.keys, every, strict=True) if key}

    def forget(self, units_U: Tensor) -> None:
        self.d = self.d.masked_fill(units_U[:, None, None], 0)
        self.x, self.h = (z.masked_fill(units_U[:, None, None], 0) for z in (self.x, self.h))

    def add_clipped(self, c_U: Tensor, into: Sums) -> None:
        d = (self.d * c_U[:, None, None]).flatten(0, 1)
        w_ih, w_hh, b_ih, b_hh = self.keys
        if w_ih:
            into.add_product(w_ih, d.t(), self.x.flatten(0, 1))
        if w_hh:
            into.add_product(w_hh, d.t(), self.h.flatten(0, 1))
        for key in (b_ih, b_hh):
            if key:
                into.add(key, d.sum(0))


class LSTM(torch.autograd.Function):
    """A one-layer, one-direction, batch-first LSTM (gate order i, f, g, o as in PyTorch), time-major inside.

    Forward: one product for all W_ih·x_t, then a loop over the recurrent part. Backward: every local derivative at once,
    and a loop that holds one product per step.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        h0: Tensor,
        c0: Tensor,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor,
        b_hh: Tensor,
        keys: Keys,
        tape: Tape,
    ) -> tuple[Tensor, Tensor, Tensor]:
        B, T, _ = x.shape
        H = w_hh.shape[1]
        xs = x.float().transpose(0, 1).contiguous()
        gates = torch.addmm(b_ih + b_hh, xs.view(T * B, -1), w_ih.t()).view(T, B, 4 * H)
        hs, cs, tc = xs.new_empty(T + 1, B, H), xs.new_empty(T + 1, B, H), xs.new_empty(T, B, H)
        hs[0], cs[0] = h0, c0
        recurrent_t = w_hh.t()
        for t in range(T):
            gates[t].addmm_(hs[t], recurrent_t)
            a = gates[t].view(B, 4, H)
            a[:, :2].sigmoid_()
            a[:, 2].tanh_()
            a[:, 3].sigmoid_()
            torch.mul(a[:, 1], cs[t], out=cs[t + 1]).addcmul_(a[:, 0], a[:, 2])
            torch.tanh(cs[t + 1], out=tc[t])
            torch.mul(a[:, 3], tc[t], out=hs[t + 1])
        ctx.save_for_backward(xs, w_ih, w_hh, gates, hs, cs, tc)
        ctx.keys, ctx.tape = keys, tape
        return hs[1:].transpose(0, 1), hs[T].clone(), cs[T].clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        gy, gh_last, gc_last = grads
        xs, w_ih, w_hh, gates, hs, cs, tc = ctx.saved_tensors
        T, B, H = tc.shape
        a = gates.view(T, B, 4, H)
        i, f, g, o = a.unbind(2)
        local = torch.empty_like(a)
        torch.mul(g, i * (1 - i), out=local[:, :, 0])
        torch.mul(cs[:-1], f * (1 - f), out=local[:, :, 1])
        torch.mul(i, 1 - g * g, out=local[:, :, 2])
        torch.mul(tc, o * (1 - o), out=local[:, :, 3])
        cell = o * (1 - tc * tc)
        d = torch.empty_like(a)
        flat = d.view(T, B, 4 * H)
        gy = gy.transpose(0, 1)
        dc, dh = gc_last.clone(), gy[T - 1] + gh_last
        for t in range(T - 1, -1, -1):
            dc.addcmul_(dh, cell[t])
            torch.mul(local[t, :, :3], dc.unsqueeze(1), out=d[t, :, :3])
            torch.mul(local[t, :, 3], dh, out=d[t, :, 3])
            dc.mul_(f[t])
            dh = torch.addmm(gy[t - 1], flat[t], w_hh) if t else flat[0] @ w_hh
        key = next((k for k in ctx.keys if k), None)
        if key:
            name, tape = key, ctx.tape
            x_U, h_U, d_U = (tape.by_unit(z.transpose(0, 1), name) for z in (xs, hs[:-1], flat))
            tape.add(LSTMUse(key, ctx.keys, x_U, h_U, d_U))
        gx = None
        if ctx.needs_input_grad[0]:
            gx = (flat.view(T * B, -1) @ w_ih).view(T, B, -1).transpose(0, 1)
        return gx, dh, dc, None, None, None, None, None, None
