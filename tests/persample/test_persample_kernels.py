"""How many kernels a step starts beside its products, counted on the CPU: on a GPU a small one costs as much as a large."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from taciturn.models.loss import CrossEntropy
from taciturn.persample import clip
from taciturn.persample.capture import captured
from taciturn.persample.clip import clipped_sum
from taciturn.persample.sums import Sums


class Kernels(TorchDispatchMode):
    """Counts operations whose result does not lie where an input does: views cost no kernel."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


def of_the_norms(layers: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Kernels by which the norms of ``layers`` layers with bias become those of records."""
    model = nn.Sequential(*(nn.Linear(6, 6) for _ in range(layers)))
    counted, inner = Kernels(), clip._squared_norms

    def norms(tape: Any) -> Any:
        with counted:
            return inner(tape)

    with monkeypatch.context() as patch, captured(model, 3) as tape:
        patch.setattr(clip, "_squared_norms", norms)
        clipped_sum(model, tape, model(torch.randn(3, 4, 6)).square().mean((1, 2)), 1.0, Sums())
    return counted.count


def test_norms_of_more_layers_are_put_together_by_as_many_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_the_norms(2, monkeypatch) == of_the_norms(24, monkeypatch) < 20


@pytest.mark.parametrize("block", [CrossEntropy.BLOCK, CrossEntropy.ON_A_GPU])
def test_kernels_of_the_loss_are_a_dozen_a_block(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """GPT-2's words, four records of 512 tokens: two blocks of a GPU's size, 103 of a processor's."""
    monkeypatch.setattr(CrossEntropy, "BLOCK", block)
    with torch.device("meta"), Kernels() as counted:
        logits = torch.empty(4, 512, 50257, requires_grad=True)
        losses = CrossEntropy.apply(logits * 1, torch.empty(4, 512, dtype=torch.int64), torch.empty(4, 512))
        losses.sum().backward()
    blocks = -(-2048 // (block // 50257))
    assert blocks == (2 if block == CrossEntropy.ON_A_GPU else 103)
    assert counted.count <= 13 * blocks + 20
