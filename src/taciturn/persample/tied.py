"""Parameters used more than once (a head tied to the embedding): the cross terms of the norm, exactly.

‖G_1 + G_2‖² = ‖G_1‖² + ‖G_2‖² + 2⟨G_1, G_2⟩; leaving the last term out under-estimates the norm and breaks the bound.
"""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor

from taciturn.persample.embedding import EmbeddingUse
from taciturn.persample.linear import AffineUse, VectorUse

Use = AffineUse | EmbeddingUse | VectorUse


def cross_terms(uses: list[Use]) -> Tensor | float:
    """2·Σ_{i<j} ⟨G_i, G_j⟩ per record, [B], over all uses of one parameter; 0.0 for a single use."""
    return sum((2.0 * inner(a, b) for a, b in combinations(uses, 2)), start=0.0)


def inner(a: Use, b: Use) -> Tensor:
    """⟨G_a, G_b⟩ per record, [B], for two uses of the same parameter."""
    if isinstance(a, VectorUse) and isinstance(b, VectorUse):
        return (a.g * b.g).flatten(1).sum(1)
    if isinstance(a, EmbeddingUse) and isinstance(b, EmbeddingUse):
        same = a.ids[:, :, None] == b.ids[:, None, :]
        return (torch.bmm(a.g, b.g.transpose(1, 2)) * same).sum((1, 2))
    if isinstance(a, AffineUse) and isinstance(b, AffineUse):
        ax, ag = (a.x, a.g) if a.transposed == b.transposed else (a.g, a.x)
        return (torch.bmm(ax, b.x.transpose(1, 2)) * torch.bmm(ag, b.g.transpose(1, 2))).sum((1, 2))
    if isinstance(a, AffineUse) and isinstance(b, EmbeddingUse):
        a, b = b, a
    if isinstance(a, EmbeddingUse) and isinstance(b, AffineUse):
        # Row id_s of the affine gradient is Σ_t g_t[id_s]·x_t, so ⟨G_e, G_h⟩ = Σ_{s,t} g_t[id_s]·⟨x_t, e_s⟩.
        rows, columns = (b.x, b.g) if b.transposed else (b.g, b.x)
        at_ids = rows.gather(2, a.ids[:, None, :].expand(-1, rows.shape[1], -1))
        return (at_ids * torch.bmm(columns, a.g.transpose(1, 2))).sum((1, 2))
    raise TypeError(f"no inner product between {type(a).__name__} and {type(b).__name__}")
