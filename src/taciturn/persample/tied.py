"""Parameters used more than once (a head tied to the embedding): the cross terms of the norm, exactly.

‖G_1 + G_2‖² = ‖G_1‖² + ‖G_2‖² + 2⟨G_1, G_2⟩; leaving the last term out under-estimates the norm and breaks the bound.
"""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor

from taciturn.persample import products
from taciturn.persample.embedding import EmbeddingUse
from taciturn.persample.linear import AffineUse, KeptUse
from taciturn.persample.tape import Use


def cross_terms(uses: list[Use], units: int) -> Tensor | float:
    """2·Σ_{i<j} ⟨G_i, G_j⟩ per unit, [U], over all uses of one parameter (where factors go to tensor cores, the most that it
    can be); 0.0 for a single use."""
    return sum((2.0 * inner(a, b, units) for a, b in combinations(uses, 2)), start=0.0)


def inner(a: Use, b: Use, units: int) -> Tensor:
    """⟨G_a, G_b⟩ per unit, [U], for two uses of the same parameter."""
    if isinstance(a, KeptUse) and isinstance(b, KeptUse):
        return (a.g * b.g).reshape(units, -1).sum(1)
    if isinstance(a, EmbeddingUse) and isinstance(b, EmbeddingUse):
        same = a.ids[:, :, None] == b.ids[:, None, :]
        return _total(products.bounded(a.g, b.g), (same.float(), None))
    if isinstance(a, AffineUse) and isinstance(b, EmbeddingUse):
        a, b = b, a
    if isinstance(a, EmbeddingUse) and isinstance(b, AffineUse):
        return _lookup_affine(a, b)
    if isinstance(a, AffineUse) and isinstance(b, AffineUse) and a.kept is None and b.kept is None:
        (al, ar), (bl, br) = a.sides(), b.sides()
        return _total(products.bounded(al, bl), products.bounded(ar, br))
    if isinstance(a, AffineUse) and isinstance(b, AffineUse) and a.kept is not None and b.kept is not None:
        return (a.kept.flatten(1) * b.kept.flatten(1)).sum(1)
    return torch.stack([_product(a, b, u) for u in range(units)])  # the slow way, for odd pairs


def _product(a: Use, b: Use, u: int) -> Tensor:
    return (a.gradients(u)[a.key] * b.gradients(u)[b.key]).sum().float()


def _lookup_affine(e: EmbeddingUse, h: AffineUse) -> Tensor:
    """⟨G_e, G_h⟩ = Σ_s ⟨g_s, row id_s of G_h⟩, and row id of G_h is Σ_t left_t[id]·right_t."""
    if h.kept is not None:
        rows = h.kept.gather(1, e.ids[:, :, None].expand(-1, -1, h.kept.shape[2]))
        return (rows * e.g).sum((1, 2))
    left, right = h.sides()
    at_ids = left.gather(2, e.ids[:, None, :].expand(-1, left.shape[1], -1))
    return _total((at_ids.float(), None), products.bounded(right, e.g))


def _total(a: products.Bounded, b: products.Bounded) -> Tensor:
    return (a[0] * b[0]).sum((1, 2)) + products.excess(a, b)
