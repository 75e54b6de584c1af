"""Which optimisers and learning-rate schedules a plan may name, and how they go together. Nothing here knows torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Ge, Gt, Lt

from taciturn.errors import UsageError, nearest

Share = Annotated[float, Ge(0), Lt(1)]

OPTIMISERS = ("adam", "adamw", "sgd")

SCHEDULES: dict[str, tuple[str, ...]] = {
    "constant": (),
    "constant_with_warmup": (),
    "cosine": ("num_cycles",),
    "cosine_with_restarts": ("num_cycles",),
    "cosine_with_min_lr": ("num_cycles", "min_lr", "min_lr_rate"),
    "cosine_warmup_with_min_lr": ("num_cycles", "min_lr", "min_lr_rate", "warmup_lr_rate"),
    "inverse_sqrt": ("timescale",),
    "linear": (),
    "polynomial": ("lr_end", "power"),
    "warmup_stable_decay": ("num_decay_steps", "warmup_type", "decay_type", "min_lr_ratio", "num_cycles"),
}
"""Schedules by their names in `transformers`, and the options each takes."""

FEEDBACK = ("greedy", "reduce_lr_on_plateau")
"""Schedules that follow a measured loss: a resumed run could not repeat them, and a private loss may not steer a run."""


@dataclass(frozen=True, slots=True)
class Optimiser:
    """name: sgd (with ``momentum``, ``nesterov``), adam or adamw (with ``betas``, ``eps``).

    schedule: a name in :data:`SCHEDULES` over the phase's steps, with ``schedule_options``; ``warmup`` is the share of
    the steps that warms up, for "constant" too. max_grad_norm: of the mean gradient in plain phases; a private phase has
    its own clipping. Raises UsageError naming the nearest known name.
    """

    name: str = "adamw"
    lr: Annotated[float, Gt(0)] = 1e-3
    momentum: Share = 0.0
    weight_decay: Annotated[float, Ge(0)] = 0.0
    schedule: str = "constant"
    warmup: Share = 0.0
    max_grad_norm: Annotated[float, Gt(0)] | None = None
    nesterov: bool = False
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: Annotated[float, Gt(0)] = 1e-8
    schedule_options: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.name not in OPTIMISERS:
            raise UsageError(f"optimiser {self.name!r} is unknown: {nearest(self.name, OPTIMISERS)}")
        if self.name != "sgd" and (self.momentum or self.nesterov):
            raise UsageError(f"momentum and nesterov belong to sgd; {self.name} has betas")
        if self.nesterov and not self.momentum:
            raise UsageError("nesterov needs a momentum above 0")
        if self.schedule in FEEDBACK:
            raise UsageError(
                f"schedule {self.schedule!r} follows a measured loss; a schedule here is a function of the step alone: "
                + ", ".join(SCHEDULES)
            )
        if self.schedule not in SCHEDULES:
            raise UsageError(f"schedule {self.schedule!r} is unknown: {nearest(self.schedule, SCHEDULES)}")
        for option in self.schedule_options or {}:
            if option not in SCHEDULES[self.schedule]:
                known = SCHEDULES[self.schedule]
                hint = nearest(option, known) if known else "it takes none"
                raise UsageError(f"schedule {self.schedule!r} has no option {option!r}: {hint}")
