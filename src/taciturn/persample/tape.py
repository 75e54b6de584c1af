"""What a pass over a batch leaves behind: one *use* for every time a trainable parameter took part in it.

A unit is what is clipped: a record, or several rows of the batch that belong to one user. Units are blocks of equal
size of the batch's rows, so a unit's positions are a view: [B, ..., d] → [U, (B/U)·T, d].
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from taciturn.errors import UsageError
from taciturn.persample.sums import Sums


class Use(Protocol):
    """One use of a parameter. ``key`` is the parameter's name; G_u is the gradient of unit u through this use alone."""

    key: str

    def squared_norms(self) -> Tensor:
        """‖G_u‖², [U], float32. Called once, during the backward pass; may replace what is held by something smaller."""

    def add_clipped(self, c_U: Tensor, into: Sums) -> None:
        """Add Σ_u c_u·G_u to ``into``."""


@dataclass(slots=True)
class Tape:
    """rows: B, the batch's rows. units: U, a divisor of B. layers: names of all layers with something to train."""

    rows: int
    units: int
    layers: tuple[str, ...]
    uses: list[Use] = field(default_factory=list)
    squared: dict[str, Tensor] = field(default_factory=lambda: defaultdict(lambda: torch.zeros(())))

    def add(self, use: Use) -> None:
        """Take the norm of a use while its tensors are warm, and keep the use for the sum."""
        layer = layer_of(use.key)
        self.squared[layer] = self.squared[layer].to((n := use.squared_norms()).device) + n
        self.uses.append(use)

    def by_unit(self, x: Tensor, name: str) -> Tensor:
        """[B, ..., d] (or [B·T, d] in the same order) as [U, positions, d].

        Raises UsageError naming the parameter when the rows cannot be told apart.
        """
        if x.shape[0] != self.rows and not (x.dim() == 2 and x.shape[0] % self.rows == 0):
            raise UsageError(
                f"{name} saw an input of shape {tuple(x.shape)} in a batch of {self.rows} rows: the model broadcasts an "
                "input or mixes records, so their gradients cannot be told apart; freeze it or choose another model"
            )
        return x.reshape(self.units, -1, x.shape[-1])


def layer_of(key: str) -> str:
    """The name of the module that owns a parameter.

    >>> layer_of("transformer.h.0.attn.c_attn.weight")
    'transformer.h.0.attn.c_attn'
    """
    return key.rpartition(".")[0]
