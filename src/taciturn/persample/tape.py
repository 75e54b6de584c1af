"""What a pass over a batch leaves behind: one *use* for every time a trainable parameter took part in it.

A unit is what is clipped: a record, or several rows of the batch that belong to one user. Units are blocks of equal
size of the batch's rows, so a unit's positions are a view: [B, ..., d] → [U, (B/U)·T, d].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from taciturn.errors import UsageError
from taciturn.persample.sums import Sums


class Use(Protocol):
    """One use of a parameter. ``key`` is the parameter's name; G_u is the gradient of unit u through this use alone."""

    key: str

    def squared_norms(self) -> tuple[Tensor, Tensor]:
        """(‖G_u‖², Σ of the squared norms of the terms that G_u is a sum of), [U], float32. Called once, during the backward
        pass; may replace what is held by something smaller."""

    def gradients(self, u: int) -> dict[str, Tensor]:
        """G_u by parameter, float64: slow, for the few whose norm cancelled."""

    def forget(self, units_U: Tensor) -> None:
        """Let G_u be zero for the units that are True, whatever was held of them, infinities included."""

    def add_clipped(self, c_U: Tensor, into: Sums) -> None:
        """Add Σ_u c_u·G_u to ``into``."""


CANCELLED = 1 / 16
"""A squared norm below this share of its terms' has lost four bits of float32 and is computed again in float64."""


class UsedAgain(Exception):
    """A parameter whose first use was not kept is used again, so the norm of both is not known."""


@dataclass(slots=True)
class Tape:
    """rows: B, the batch's rows. units: U, a divisor of B. layers: names of all layers with something to train.

    kept: the keys whose uses are kept for the sum, None for all; of others only the norm is. summed: where a second pass
    takes uses to, once their factors are known.
    """

    rows: int
    units: int
    layers: tuple[str, ...]
    uses: list[Use] = field(default_factory=list)
    squared: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    slack: dict[str, float] = field(default_factory=dict)
    kept: frozenset[str] | None = None
    summed: Callable[[Use], None] | None = None
    seen: set[str] = field(default_factory=set)

    def add(self, use: Use) -> None:
        """Take the norm of a use while its tensors are warm, and keep the use for the sum. ``squared`` adds up, by the key
        of uses, what :meth:`Use.squared_norms` gives. Raises UsedAgain."""
        keys = keys_of(use)
        if self.summed is not None:
            self.summed(use)
            return
        again = not self.seen.isdisjoint(keys)
        self.seen.update(keys)
        if self.kept is not None and self.kept.isdisjoint(keys):
            if again:
                raise UsedAgain(use.key)
            norms, terms = use.squared_norms()
            for u in (norms < CANCELLED * terms).nonzero().flatten().tolist():
                norms[u] = sum(gradient.square().sum() for gradient in use.gradients(u).values())
            self.squared[use.key] = norms, norms
            return
        norms, terms = use.squared_norms()
        self.slack[use.key] = self.slack.get(use.key, 0.0) + getattr(use, "slack", 0.0)
        if use.key in self.squared:
            norms, terms = norms + self.squared[use.key][0], terms + self.squared[use.key][1]
        self.squared[use.key] = norms, terms
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


def widened(squared_U: Tensor, terms_U: Tensor, slack: float) -> Tensor:
    """(‖G‖ + slack·√terms)²: the squared norms of sums that may be that much longer."""
    if slack == 0:
        return squared_U
    return (squared_U.clamp_min(0).sqrt() + slack * terms_U.sqrt()).square()


def keys_of(use: Use) -> tuple[str, ...]:
    """The names of all parameters that a use is of: an LSTM's is of four."""
    return tuple(key for key in getattr(use, "keys", (use.key,)) if key)


def layer_of(key: str) -> str:
    """The name of the module that owns a parameter.

    >>> layer_of("transformer.h.0.attn.c_attn.weight")
    'transformer.h.0.attn.c_attn'
    """
    return key.rpartition(".")[0]
