"""Affine layers, y = x·W (+ b): the norm of a unit's gradient without forming it, where that is cheaper.

With input x_UTd and output gradient g_UTp the gradient of unit u is G_u = x_uᵀ g_u, and
‖G_u‖² = ⟨x_u x_uᵀ, g_u g_uᵀ⟩ (ghost norm: Goodfellow 2015; for sequences Li et al. 2022, eq. 5). Two T×T Gram matrices
cost T²(d+p) against T·d·p for G_u, and x_u, g_u hold T(d+p) numbers against d·p: the same test decides time and memory
(book-keeping: Bu et al. 2023, section 3). A single unit always keeps G_u, since that is the sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from taciturn.persample import products
from taciturn.persample.sums import Sums
from taciturn.persample.tape import Tape

TILE, ON_A_GPU = 128, 256
"""Gram matrices are symmetric: in tiles of this many positions only the upper triangle is computed."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where a layer stands: the tape of the pass, and the names of its parameters (None: frozen or absent)."""

    tape: Tape
    weight: str | None
    bias: str | None = None
    transposed: bool = False

    @property
    def name(self) -> str:
        return self.weight or self.bias or "?"


@dataclass(slots=True)
class AffineUse:
    """x_UTd, g_UTp of one use of a weight, or the kept gradients. ``transposed``: stored d×p (Conv1D), else p×d."""

    key: str
    x: Tensor | None
    g: Tensor | None
    transposed: bool
    kept: Tensor | None = field(default=None)

    def squared_norms(self) -> tuple[Tensor, Tensor]:
        assert self.x is not None
        assert self.g is not None
        (U, T, d), p = self.x.shape, self.g.shape[2]
        if U > 1 and T * (d + p) <= d * p:
            return gram_product(self.x, self.g)
        left, right = (self.x, self.g) if self.transposed else (self.g, self.x)
        self.kept = products.batched(left.transpose(1, 2), right)
        self.x = self.g = None
        return exactly(self.kept.flatten(1).square().sum(1))

    @property
    def slack(self) -> float:
        """By what share of √(Σ squared norms of its terms) the part that is added may be longer than c·G_u: Σ_t ‖x_t‖‖g_t‖
        is at most √T times that (Cauchy and Schwarz)."""
        if self.x is None or self.g is None or not (products.splits(self.x) and products.splits(self.g)):
            return 0.0
        T = self.x.shape[1]
        return products.lost_in_sum(T) * sqrt(T)

    def gradients(self, u: int) -> dict[str, Tensor]:
        if self.kept is not None:
            return {self.key: self.kept[u].double()}
        rows, columns = self.sides()
        return {self.key: rows[u].double().t() @ columns[u].double()}

    def forget(self, units_U: Tensor) -> None:
        gone = units_U[:, None, None]
        if self.kept is not None:
            self.kept = self.kept.masked_fill(gone, 0)
        else:
            assert self.x is not None
            assert self.g is not None
            self.x, self.g = self.x.masked_fill(gone, 0), self.g.masked_fill(gone, 0)

    def sides(self) -> tuple[Tensor, Tensor]:
        """The factors of G_u = leftᵀ·right in the weight's own orientation."""
        assert self.x is not None
        assert self.g is not None
        return (self.x, self.g) if self.transposed else (self.g, self.x)

    def add_clipped(self, c_U: Tensor, into: Sums) -> None:
        if self.kept is not None:
            total = self.kept[0].mul_(c_U) if len(c_U) == 1 else (c_U @ self.kept.flatten(1)).view(self.kept.shape[1:])
            into.add(self.key, total)
            return
        left, right = self.sides()
        if left.shape[2] <= right.shape[2]:  # scale the narrower side
            left = left * c_U.view(-1, 1, 1)
        else:
            right = right * c_U.view(-1, 1, 1)
        into.add_product(self.key, left.flatten(0, 1).t(), right.flatten(0, 1))


@dataclass(slots=True)
class KeptUse:
    """A parameter whose gradients are kept for each unit, g [U, *its shape]: biases, norm weights, small modules."""

    key: str
    g: Tensor

    def squared_norms(self) -> tuple[Tensor, Tensor]:
        return exactly(self.g.reshape(len(self.g), -1).square().sum(1))

    def gradients(self, u: int) -> dict[str, Tensor]:
        return {self.key: self.g[u].double()}

    def forget(self, units_U: Tensor) -> None:
        self.g = self.g.masked_fill(units_U.view(-1, *[1] * (self.g.dim() - 1)), 0)

    def add_clipped(self, c_U: Tensor, into: Sums) -> None:
        into.add(self.key, (c_U @ self.g.reshape(len(self.g), -1)).view(self.g.shape[1:]))


class Affine(torch.autograd.Function):
    """Forward as the layer's own; backward returns the input gradient only and leaves (x, g) on the tape."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, site: Site) -> Tensor:
        dtype = autocast_dtype(x)
        x = x.to(dtype).contiguous()
        ctx.save_for_backward(x, weight)
        ctx.site = site
        w, b = weight.to(dtype), None if bias is None else bias.to(dtype)
        w = w if site.transposed else w.t()
        rows = x.view(-1, x.shape[-1])
        y = rows @ w if b is None else torch.addmm(b, rows, w)
        shape = [*x.shape[:-1], w.shape[1]]
        return torch.ops.aten._unsafe_view(y, shape)  # type: ignore[no-any-return]  # no view: some models add in place

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g, site = grads[0], ctx.site
        x, weight = ctx.saved_tensors
        gx = None
        if ctx.needs_input_grad[0]:
            w = weight.to(g.dtype)
            gx = g @ w.t() if site.transposed else g @ w
        g_U = site.tape.by_unit(g, site.name)
        if site.bias:
            site.tape.add(KeptUse(site.bias, sum_positions(g_U)))
        if site.weight:
            site.tape.add(AffineUse(site.weight, site.tape.by_unit(x, site.weight), g_U, site.transposed))
        return gx, None, None, None


def autocast_dtype(x: Tensor) -> torch.dtype:
    """The type autocast gives a matrix product of ``x``: its own type where autocast is off."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


def sum_positions(x_UTd: Tensor) -> Tensor:
    """Σ_t x_utd in float32, as a batched product: summing the middle axis directly is slow on CPU."""
    ones = x_UTd.new_ones(1, 1, 1).expand(x_UTd.shape[0], 1, x_UTd.shape[1])
    return products.batched(ones, x_UTd).squeeze(1)


def exactly(norms_U: Tensor) -> tuple[Tensor, Tensor]:
    """Squared norms of gradients that are held as they will be added: nothing of them can have cancelled."""
    return norms_U, norms_U


def gram_product(x_UTd: Tensor | None, g_UTp: Tensor, same_UT: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """(⟨x_u x_uᵀ, g_u g_uᵀ⟩, its diagonal Σ_t ‖x_t‖²‖g_t‖²), both [U]; without x its products are one, and with ``same_UT``
    (ids) only positions of equal ids meet. Where the first is far below the second, positions cancelled, and its rounding
    error is of the second's size. Where factors go to tensor cores it is the largest that it can be (products.py)."""
    total = g_UTp.new_zeros(g_UTp.shape[0], dtype=torch.float32)
    diagonal = torch.zeros_like(total)
    tile = ON_A_GPU if g_UTp.device.type == "cuda" else TILE
    g, x, ids = (() if z is None else z.split(tile, 1) for z in (g_UTp, x_UTd, same_UT))
    for i in range(len(g)):
        for j in range(i, len(g)):
            gg = products.bounded(g[i], g[j])
            xx = products.bounded(x[i], x[j]) if x else (torch.ones_like(gg[0]), None)
            if ids:
                same = ids[i].unsqueeze(2) == ids[j].unsqueeze(1)
                xx = xx[0].mul_(same), None if xx[1] is None else xx[1].mul_(same)
            found = torch.linalg.vecdot(gg[0].flatten(1), xx[0].flatten(1)) + products.excess(gg, xx)
            total += found * (1 if i == j else 2)
            if i == j:
                diagonal += torch.linalg.vecdot(gg[0].diagonal(dim1=1, dim2=2), xx[0].diagonal(dim1=1, dim2=2))
    return total, diagonal
