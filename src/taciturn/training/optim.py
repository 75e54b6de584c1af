"""Optimisers and learning-rate schedules from a phase's configuration; plain PyTorch objects."""

from __future__ import annotations

from math import cos, pi

import torch
from torch import nn

from taciturn.training.plan import Optimiser


def build(config: Optimiser, model: nn.Module) -> torch.optim.Optimizer:
    """SGD or AdamW over the trainable parameters; weight decay spares vectors (biases, norms), as is usual."""
    trainable = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trainable if p.dim() > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in trainable if p.dim() <= 1], "weight_decay": 0.0},
    ]
    if config.name == "sgd":
        return torch.optim.SGD(groups, lr=config.lr, momentum=config.momentum)
    return torch.optim.AdamW(groups, lr=config.lr)


def learning_rate(config: Optimiser, step: int, steps: int) -> float:
    """The rate of update ``step`` (from 0) of ``steps``: linear warm-up, then constant, linear or cosine to 0."""
    warm = int(config.warmup * steps)
    if step < warm:
        return config.lr * (step + 1) / warm
    left = 1 - (step - warm) / max(1, steps - warm)
    shape = {"constant": 1.0, "linear": left, "cosine": 0.5 * (1 + cos(pi * (1 - left)))}
    return config.lr * shape[config.schedule]
