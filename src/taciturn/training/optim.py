"""Optimisers and learning-rate schedules from a phase's configuration; plain PyTorch and `transformers` objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from taciturn.errors import UsageError
from taciturn.training.schedules import Optimiser


def build(config: Optimiser, model: nn.Module) -> torch.optim.Optimizer:
    """SGD, Adam or AdamW over the trainable parameters; weight decay spares vectors (biases, norms), as is usual.

    Adam and AdamW run in PyTorch's fused form: one pass over the weights instead of a dozen, and no temporaries.
    Raises UsageError when every parameter is frozen.
    """
    trainable = [p for p in model.parameters() if p.requires_grad]
    if not trainable:
        raise UsageError("the model has no trainable parameter: unfreeze one (requires_grad_(True)) or add an adapter")
    matrices, vectors = [p for p in trainable if p.dim() > 1], [p for p in trainable if p.dim() <= 1]
    groups: list[dict[str, Any]] = [
        {"params": params, "weight_decay": decay}
        for params, decay in ((matrices, config.weight_decay), (vectors, 0.0))
        if params
    ]
    if config.name == "sgd":
        return torch.optim.SGD(groups, lr=config.lr, momentum=config.momentum, nesterov=config.nesterov)
    kind: type[torch.optim.Adam] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[config.name]
    return kind(groups, lr=config.lr, betas=config.betas, eps=config.eps, fused=True)


def schedule(config: Optimiser, steps: int) -> Callable[[int], float]:
    """The learning rate of update t (from 0) of ``steps``: a pure function, so that a resumed run needs no state.

    The curve is that of ``transformers.get_scheduler``, with two differences. "constant" warms up when ``warmup`` is
    above 0 (there it ignores the warm-up). A warm-up that starts at rate 0 is read one step ahead: update t of w has
    (t + 1)/w of the rate where `transformers` gives it t/w and wastes the first one, which here may have cost privacy.

    Raises UsageError when the options do not fit the schedule.
    """
    from transformers import get_scheduler

    warm = int(config.warmup * steps)
    name = "constant_with_warmup" if config.schedule == "constant" else config.schedule
    nothing = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=config.lr)
    try:
        made = get_scheduler(name, nothing, warm, steps, dict(config.schedule_options or {}))
    except (TypeError, ValueError) as error:
        raise UsageError(f"schedule {config.schedule!r} cannot be built from its options: {error}") from None
    share = made.lr_lambdas[0]
    ahead = int(warm > 0 and share(0) == 0)
    return lambda t: config.lr * float(share(t + ahead if t < warm else t))
