"""One LSTM layer. Its pre-activation is an affine map of [x_t; h_{t−1}; 1; 1], so with gate gradients D_BT(4H) all four
parameters share one Gram matrix: ‖G_b‖² = ⟨DDᵀ, XXᵀ + HHᵀ + 2·11ᵀ⟩ (two biases add two constant inputs)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from taciturn.persample.linear import gram


@dataclass(slots=True)
class LSTMUse:
    """x_BTd, h_BTH (the states entering each step) and d_BT4H (gate gradients) of one pass.

    ``trainable`` says which of (W_ih, W_hh, b_ih, b_hh) are; a frozen one adds neither norm nor sum.
    """

    weights: tuple[nn.Parameter, nn.Parameter, nn.Parameter, nn.Parameter]
    x: Tensor
    h: Tensor
    d: Tensor
    trainable: tuple[bool, bool, bool, bool] = field(default=(True, True, True, True))

    def squared_norms(self) -> Tensor:
        inner = self.x.new_full((1, 1, 1), float(self.trainable[2] + self.trainable[3]))
        if self.trainable[0]:
            inner = inner + gram(self.x)
        if self.trainable[1]:
            inner = inner + gram(self.h)
        return (gram(self.d) * inner).sum((1, 2))

    def clipped_sums(self, c: Tensor) -> list[tuple[nn.Parameter, Tensor]]:
        d = (self.d * c[:, None, None]).flatten(0, 1)
        bias = d.sum(0)
        sums = [d.t() @ self.x.flatten(0, 1), d.t() @ self.h.flatten(0, 1), bias, bias.clone()]
        return [(w, s) for w, s, on in zip(self.weights, sums, self.trainable, strict=True) if on]


class LSTM(torch.autograd.Function):
    """A one-layer, one-direction, batch-first LSTM (gate order i, f, g, o as in PyTorch), time-major inside.

    Forward: one product for all W_ih·x_t, then a loop over the recurrent part. Backward: every local derivative at once,
    and a loop that holds one product per step.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, h0: Tensor, c0: Tensor, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, tape: list[Any]
    ) -> tuple[Tensor, Tensor, Tensor]:
        B, T, _ = x.shape
        H = w_hh.shape[1]
        xs = x.transpose(0, 1).contiguous()
        gates = torch.addmm(b_ih + b_hh, xs.view(T * B, -1), w_ih.t()).view(T, B, 4 * H)
        hs, cs, tc = x.new_empty(T + 1, B, H), x.new_empty(T + 1, B, H), x.new_empty(T, B, H)
        hs[0], cs[0] = h0, c0
        w_hh_t = w_hh.t()
        for t in range(T):
            gates[t].addmm_(hs[t], w_hh_t)
            a = gates[t].view(B, 4, H)
            a[:, :2].sigmoid_()
            a[:, 2].tanh_()
            a[:, 3].sigmoid_()
            torch.mul(a[:, 1], cs[t], out=cs[t + 1]).addcmul_(a[:, 0], a[:, 2])
            torch.tanh(cs[t + 1], out=tc[t])
            torch.mul(a[:, 3], tc[t], out=hs[t + 1])
        ctx.save_for_backward(xs, w_ih, w_hh, gates, hs, cs, tc)
        ctx.weights, ctx.tape = (w_ih, w_hh, b_ih, b_hh), tape
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
        trainable = tuple(w.requires_grad for w in ctx.weights)
        if any(trainable):
            ctx.tape.append(
                LSTMUse(ctx.weights, xs.transpose(0, 1), hs[:-1].transpose(0, 1), flat.transpose(0, 1), trainable)
            )
        gx = None
        if ctx.needs_input_grad[0]:
            gx = (flat.view(T * B, -1) @ w_ih).view(T, B, -1).transpose(0, 1)
        return gx, dh, dc, None, None, None, None, None
