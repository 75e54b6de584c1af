"""The obvious loop: one unit at a time by ordinary autograd, clipped and added."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from taciturn.persample.capture import captured
from taciturn.persample.clip import clipped_sum
from taciturn.persample.sums import Sums

Forward = Callable[[nn.Module, slice], torch.Tensor]


def on(x: torch.Tensor) -> Forward:
    return lambda model, rows: model(x[rows])


def compare(model: nn.Module, forward: Forward, rows: int, C: float = 0.7, units: int | None = None) -> None:
    """``forward(model, rows)`` gives the losses of those rows; equality of norms and clipped sums with a loop."""
    size = rows // (units or rows)
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    want: dict[str, torch.Tensor] = {}
    norms = []
    for u in range(units or rows):
        model.zero_grad(set_to_none=True)
        forward(model, slice(u * size, (u + 1) * size)).sum().backward()
        grads = {n: p.grad.double() for n, p in trained.items() if p.grad is not None}
        norm = torch.sqrt(sum(g.square().sum() for g in grads.values()))
        norms.append(norm)
        for n, g in grads.items():
            want[n] = want.get(n, 0) + g * min(1.0, C / float(norm))
    model.zero_grad(set_to_none=True)
    sums = Sums()
    with captured(model, rows, units) as tape:
        losses = forward(model, slice(0, rows)).view(-1, size).sum(1)
        found = clipped_sum(model, tape, losses, C, sums)
    torch.testing.assert_close(found.double(), torch.stack(norms).double(), rtol=2e-5, atol=1e-7)
    assert set(sums) == set(trained)
    for n, g in want.items():
        torch.testing.assert_close(sums[n].double(), g, rtol=1e-4, atol=2e-6 * C * rows)


class Block(nn.Module):
    """One layer and a readout that needs no gradient."""

    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.layer = layer
        self.register_buffer("readout", torch.randn(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        y = y[0] if isinstance(y, tuple) else y
        return torch.tanh(y @ self.readout).reshape(len(y), -1).sum(1)
