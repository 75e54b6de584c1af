"""Experts of a mixture, y_j = W_{e(j)}·x_j: weights are stacked [E, p, d], and routing gives each of a unit's J positions
(tokens times experts per token) one of them. Only positions of one expert meet in the norm:
‖G_u‖² = Σ_{i,j} [e_i = e_j] ⟨x_i, x_j⟩⟨g_i, g_j⟩.

Routing is by token, so it mixes no records; a capacity of tokens for each expert would (isolated.py refuses that).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from taciturn.persample.embedding import EmbeddingUse
from taciturn.persample.linear import Site, autocast_dtype, gram_product
from taciturn.persample.sums import Sums
from taciturn.persample.tape import Tape

FORM = ("has_gate", "has_bias", "is_transposed", "has_post_expert_norm")
"""What transformers says about a class of experts whose forward it may replace (`use_experts_implementation`)."""


@dataclass(slots=True)
class ExpertsUse:
    """x_UJd, g_UJp and the expert ids_UJ of one use of a stack of E weights. ``transposed``: stored d×p, else p×d."""

    key: str
    x: Tensor
    g: Tensor
    ids: Tensor
    experts: int
    transposed: bool

    def squared_norms(self) -> tuple[Tensor, Tensor]:
        return gram_product(self.x, self.g, self.ids)

    def gradients(self, u: int) -> dict[str, Tensor]:
        left, right = (self.x[u], self.g[u]) if self.transposed else (self.g[u], self.x[u])
        return {self.key: self._stacked(left.double(), right.double(), self.ids[u])}

    def forget(self, units_U: Tensor) -> None:
        gone = units_U[:, None, None]
        self.x, self.g = self.x.masked_fill(gone, 0), self.g.masked_fill(gone, 0)

    def add_clipped(self, c_U: Tensor, into: Sums) -> None:
        x, g = self.x.float().flatten(0, 1), (self.g * c_U[:, None, None]).float().flatten(0, 1)
        into.add(self.key, self._stacked(*((x, g) if self.transposed else (g, x)), self.ids.flatten()))

    def _stacked(self, left: Tensor, right: Tensor, ids: Tensor) -> Tensor:
        rows = [(ids == e).nonzero()[:, 0] for e in range(self.experts)]
        return torch.stack([left[at].t() @ right[at] for at in rows])


class ExpertLinear(torch.autograd.Function):
    """x [n, d] by the experts ids [n] of weight [E, p, d] (+ bias [E, p]); n is batch·positions·experts per token."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, ids: Tensor, weight: Tensor, bias: Tensor | None, site: Site) -> Tensor:
        x = x.to(autocast_dtype(x))
        w = weight.to(x.dtype)
        order = ids.argsort(stable=True)
        counts = (ids[:, None] == torch.arange(len(w), device=ids.device)).sum(0)
        ctx.save_for_backward(x, ids, weight, order, counts)
        ctx.site = site
        y: Tensor = _in_groups(x, w if site.transposed else w.mT, order, counts)
        return y if bias is None else y + bias.to(x.dtype)[ids]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g, site = grads[0], ctx.site
        x, ids, weight, order, counts = ctx.saved_tensors
        gx = None
        if ctx.needs_input_grad[0]:
            w = weight.to(g.dtype)
            gx = _in_groups(g, w.mT if site.transposed else w, order, counts)
        g_U, ids_U = site.tape.by_unit(g, site.name), ids.reshape(site.tape.units, -1)
        if site.weight:
            x_U = site.tape.by_unit(x, site.weight)
            site.tape.add(ExpertsUse(site.weight, x_U, g_U, ids_U, len(weight), site.transposed))
        if site.bias:
            site.tape.add(EmbeddingUse(site.bias, ids_U, g_U, len(weight)))
        return gx, None, None, None, None


def _in_groups(x: Tensor, weight: Tensor, order: Tensor, counts: Tensor) -> Tensor:
    y: Tensor = grouped_product(x[order], weight, counts)
    return y[order.argsort()]


@torch.library.custom_op("taciturn::grouped_product", mutates_args=())
def grouped_product(x: Tensor, weight: Tensor, counts: Tensor) -> Tensor:
    """The first ``counts[0]`` rows of x [n, d] times weight[0], the next ``counts[1]`` times weight[1], and so on: [n, p].
    An operation of its own, since how the rows are cut is known from numbers, which a count of memory does not have."""
    out = x.new_empty(len(x), weight.shape[2])
    sizes = counts.tolist()
    for rows, to, w in zip(x.split(sizes), out.split(sizes), weight, strict=True):
        torch.mm(rows, w, out=to)
    return out


@grouped_product.register_fake
def _shape(x: Tensor, weight: Tensor, counts: Tensor) -> Tensor:  # noqa: ARG001
    return x.new_empty(x.shape[0], weight.shape[2])


def fits(module: Any) -> bool:
    """Whether transformers says what its experts compute."""
    stacked = [getattr(module, name, None) for name in (_up(module), "down_proj")]
    known = all(hasattr(module, name) for name in FORM) and not getattr(module, "_is_expert_parallel", False)
    return known and all(isinstance(w, Tensor) and w.dim() == 3 for w in stacked)


def recording(module: Any, keys: dict[str, str | None], tape: Tape) -> Callable[..., Any]:
    """Its forward, as transformers' `batched_mm_experts_forward`."""

    def linear(name: str) -> Callable[[Tensor, Tensor], Tensor]:
        site = Site(tape, keys.get(name), keys.get(f"{name}_bias"), module.is_transposed)
        weight, bias = getattr(module, name), getattr(module, f"{name}_bias") if module.has_bias else None
        return lambda x, ids: ExpertLinear.apply(x, ids, weight, bias, site)

    def run(hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
        up, down = linear(_up(module)), linear("down_proj")
        K, ids = top_k_index.shape[-1], top_k_index.reshape(-1)
        h = up(hidden_states.repeat_interleave(K, 0), ids)
        y = down(module._apply_gate(h) if module.has_gate else module.act_fn(h), ids)
        if module.has_post_expert_norm:
            y = module.post_expert_norm(y)
        mixed: Tensor = (y * top_k_weights.reshape(-1, 1)).unflatten(0, (-1, K)).sum(1)
        return mixed.to(hidden_states.dtype)

    return run


def _up(module: Any) -> str:
    return "gate_up_proj" if getattr(module, "has_gate", True) else "up_proj"
