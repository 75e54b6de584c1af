"""Weights that follow those of training: a moving average, and a mixture with those of the beginning. Both only read what
updates have released: no privacy cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from taciturn.persample.capture import trainable_names


def decay_at(decay: float, updates: int) -> float:
    """min(decay, (1 + t)/(10 + t)) after t updates: the average forgets the initial weights even in a short run
    (the ``num_updates`` of TensorFlow's ExponentialMovingAverage).

    >>> [round(decay_at(0.999, t), 3) for t in (1, 100, 100_000)]
    [0.182, 0.918, 0.999]
    """
    return min(decay, (1 + updates) / (10 + updates))


class Average:
    """a ← d·a + (1 − d)·w after every update, over the trainable tensors; frozen ones and buffers are the model's own.

    ``weights``: by name, at least float32, as (1 − d)·w is lost in half precision. Memory: one more copy of what trains.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = {name: _wide(p.detach()).clone() for name, p in _trainable(model).items()}

    @torch.no_grad()
    def update(self, model: nn.Module, updates: int) -> None:
        """Take the weights after update number ``updates`` (from 1) in."""
        now = [_wide(p.detach()) for p in _trainable(model).values()]
        get_ema_multi_avg_fn(decay_at(self.decay, updates))(list(self.weights.values()), now, updates)

    @torch.no_grad()
    def apply(self, model: nn.Module) -> None:
        """Make the average the weights of ``model``, in place."""
        for name, p in _trainable(model).items():
            p.copy_(self.weights[name])

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """``model`` with the average as its weights; they come back to the bit."""
        kept = {name: p.detach().clone() for name, p in _trainable(model).items()}
        self.apply(model)
        try:
            yield
        finally:
            with torch.no_grad():
                for name, p in _trainable(model).items():
                    p.copy_(kept[name])


@torch.no_grad()
def keep_near(model: nn.Module, average: Average | None, begun: nn.Module, kept: float) -> None:
    """θ ← (1 − α)·θ₀ + α·θ with α = ``kept``, of what is trained and of its average; θ₀ are the weights of ``begun``
    (WiSE-FT, Wortsman et al. 2022, section 3)."""
    if kept == 1:
        return
    first = _trainable(begun)
    for name, p in _trainable(model).items():
        p.lerp_(first[name], 1 - kept)
        if average is not None:
            average.weights[name].lerp_(_wide(first[name]), 1 - kept)


def _trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: p for p, name in trainable_names(model).items()}


def _wide(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.element_size() < 4 else tensor
