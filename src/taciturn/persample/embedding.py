"""Embeddings: a unit's gradient adds g_t to row id_t, so only positions that share an id meet in the norm:
‖G_u‖² = Σ_{s,t} [id_s = id_t] ⟨g_s, g_t⟩."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from taciturn.persample.linear import Site, gram_product
from taciturn.persample.sums import Sums


@dataclass(slots=True)
class EmbeddingUse:
    """One look-up: ids_UT into a table of ``rows`` with output gradient g_UTd."""

    key: str
    ids: Tensor
    g: Tensor
    rows: int

    def squared_norms(self) -> tuple[Tensor, Tensor]:
        return gram_product(None, self.g, self.ids)

    def gradients(self, u: int) -> dict[str, Tensor]:
        table = torch.zeros(self.rows, self.g.shape[2], dtype=torch.float64, device=self.g.device)
        return {self.key: table.index_add_(0, self.ids[u], self.g[u].double())}

    def forget(self, units_U: Tensor) -> None:
        self.g = self.g.masked_fill(units_U[:, None, None], 0)

    def add_clipped(self, c_U: Tensor, into: Sums) -> None:
        scaled = (self.g * c_U[:, None, None]).float().flatten(0, 1)
        into.add_rows(self.key, self.rows, self.ids.reshape(-1), scaled)


class Lookup(torch.autograd.Function):
    """Forward as `nn.Embedding`; backward leaves (ids, g) on the tape."""

    @staticmethod
    def forward(ctx: Any, ids: Tensor, weight: Tensor, padding_idx: int | None, site: Site) -> Tensor:
        ctx.ids, ctx.rows, ctx.padding_idx, ctx.site = ids, weight.shape[0], padding_idx, site
        return nn.functional.embedding(ids, weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, ...]:
        tape, key = ctx.site.tape, ctx.site.weight
        g = tape.by_unit(grads[0], key)
        ids = ctx.ids.reshape(tape.units, -1)
        if ctx.padding_idx is not None:  # as nn.Embedding: the padding row has no gradient
            g = g * (ids != ctx.padding_idx)[:, :, None]
        tape.add(EmbeddingUse(key, ids, g, ctx.rows))
        return None, None, None, None
