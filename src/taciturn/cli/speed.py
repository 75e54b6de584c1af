"""How much a machine can train in an hour, from a few seconds of matrix products and a formula."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import sqrt
from typing import Any

WITHIN = 3.0
"""Training reaches between a third of what products alone would give and all of it; the estimate is the middle, and right
within this factor."""
SECONDS = 0.8
"""Spent on each product."""


@dataclass(frozen=True, slots=True)
class Size:
    """A model, as far as its cost goes. weights: in matrix products, the output head among them, the embedding not. layers,
    width: of attention, 0 without it. context: tokens of a record. rows: of its products at once, few where steps wait for
    one another."""

    name: str
    weights: int
    layers: int
    width: int
    context: int
    rows: int

    @property
    def flops(self) -> float:
        """Floating-point operations a token of training: 6 a weight, forward 2 and backward 4, and attention's 6 · layers ·
        context · width (Kaplan et al. 2020, section 2.1)."""
        return 6.0 * self.weights + 6.0 * self.layers * self.context * self.width


SIZES = (
    Size("lstm (200 × 1, V = 8,192)", 4 * 200 * (200 + 200) + 200 * 8192, 0, 0, 64, 64),
    Size("SmolLM2-135M", 134_515_008, 30, 576, 512, 1024),
    Size("gpt2", 12 * 12 * 768**2 + 768 * 50_257, 12, 768, 512, 1024),
    Size("Llama-3.2-1B", 1_235_746_816, 16, 2048, 512, 1024),
)
"""What people ask about: the weights are those of the published configurations."""


FORMULA = (
    "tokens an hour = 3600 · operations a second / (6 · weights + 6 · layers · context · width), forward 2 and backward 4 a "
    "weight (Kaplan et al. 2020, section 2.1), of which training gets a third to all; a step with noise costs about what a "
    "plain one does, small models lose more to Python"
)


def gflops(rows: int, width: int, device: Any) -> float:
    """10⁹ floating-point operations a second of a product of (rows, width) and (width, width) in float32: 2 · rows · width²
    each, the fastest of several stretches, so that other work on the machine counts little."""
    import torch

    left, right = torch.randn(rows, width, device=device), torch.randn(width, width, device=device)
    best, times = 0.0, 1
    begun = time.perf_counter()
    while time.perf_counter() - begun < SECONDS:
        at = time.perf_counter()
        for _ in range(times):
            left @ right
        if left.is_cuda:
            torch.cuda.synchronize()
        taken = time.perf_counter() - at
        best = max(best, 2e-9 * rows * width * width * times / taken)
        times = times if taken > 0.02 else 2 * times
    return best


def tokens_per_hour(size: Size, speed: float) -> float:
    """At ``speed`` 10⁹ operations a second, of which training gets a share of 1/√3 in the middle of its range.

    >>> round(tokens_per_hour(SIZES[2], 100.0), -4)
    270000.0
    """
    return 3600 * speed * 1e9 / sqrt(WITHIN) / size.flops


def measure(device: Any) -> dict[str, Any]:
    """Speeds of wide and narrow products, and for each model tokens an hour with their range."""
    wide, narrow = gflops(512, 768, device), gflops(64, 512, device)
    models = {}
    for size in SIZES:
        middle = tokens_per_hour(size, wide if size.rows >= 1024 else narrow)
        models[size.name] = {
            "tokens_per_hour": middle,
            "from": middle / sqrt(WITHIN),
            "to": middle * sqrt(WITHIN),
            "flops_per_token": size.flops,
        }
    return {
        "gflops_wide": wide,
        "gflops_narrow": narrow,
        "models": models,
        "formula": FORMULA,
    }
