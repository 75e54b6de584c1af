"""Embeddings: a record's gradient adds g_t to row id_t, so only positions that share an id meet in the norm:
‖G_b‖² = Σ_{s,t} [id_s = id_t] ⟨g_s, g_t⟩."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from taciturn.persample.linear import gram


@dataclass(slots=True)
class EmbeddingUse:
    """One look-up: ids_BT into weight_Vd with output gradient g_BTd."""

    weight: nn.Parameter
    ids: Tensor
    g: Tensor

    def squared_norms(self) -> Tensor:
        same = self.ids[:, :, None] == self.ids[:, None, :]
        return (gram(self.g) * same).sum((1, 2))

    def clipped_sum(self, c: Tensor) -> Tensor:
        total = torch.zeros_like(self.weight)
        scaled = (self.g * c[:, None, None]).flatten(0, 1)
        return total.index_add_(0, self.ids.reshape(-1), scaled)


class Lookup(torch.autograd.Function):
    """Forward as `nn.Embedding`; backward records (ids, g)."""

    @staticmethod
    def forward(ctx: Any, ids: Tensor, weight: nn.Parameter, tape: list[Any]) -> Tensor:
        ctx.ids, ctx.weight, ctx.tape = ids, weight, tape
        return nn.functional.embedding(ids, weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None]:
        ids, g = ctx.ids, grads[0]
        ctx.tape.append(EmbeddingUse(ctx.weight, ids.reshape(ids.shape[0], -1), g.flatten(1, -2)))
        return None, None, None
