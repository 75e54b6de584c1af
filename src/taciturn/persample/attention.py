"""`nn.MultiheadAttention`: its packed projection is an affine layer, used once, or once for each of query, key and value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from taciturn.errors import UsageError
from taciturn.persample.linear import Affine, Site
from taciturn.persample.tape import Tape


def fits(module: Any) -> bool:
    """Whether it is torch's, with records in the first dimension, one width for all and nothing added to the keys."""
    if type(module).forward is not nn.MultiheadAttention.forward:
        return False
    return bool(
        module.batch_first and module._qkv_same_embed_dim and module.bias_k is None and not module.add_zero_attn
    )


def recording(module: Any, keys: dict[str, str | None], tape: Tape) -> Callable[..., Any]:
    """Its forward; the output projection is a layer with a rule of its own."""
    site, heads = Site(tape, keys.get("in_proj_weight"), keys.get("in_proj_bias")), module.num_heads

    def packed(x: Tensor) -> tuple[Tensor, ...]:
        y = Affine.apply(x, module.in_proj_weight, module.in_proj_bias, site)
        return tuple(part.unflatten(2, (heads, -1)).transpose(1, 2) for part in y.chunk(3, 2))

    def run(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,  # noqa: ARG001 (a hint about attn_mask, which says it)
    ) -> tuple[Tensor, Tensor | None]:
        if query.dim() != 3:
            raise UsageError("MultiheadAttention: per-record gradients need records in one padded tensor [B, T, d]")
        q, k, v = packed(query) if query is key is value else (packed(x)[i] for i, x in enumerate((query, key, value)))
        mask = _mask(key_padding_mask, attn_mask, q, heads)
        p = module.dropout if module.training else 0.0
        weights = None
        if need_weights:
            scores = q @ k.transpose(2, 3) * q.shape[-1] ** -0.5
            weights = torch.softmax(scores if mask is None else scores + mask, -1)
            y = nn.functional.dropout(weights, p) @ v
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            y = nn.functional.scaled_dot_product_attention(q, k, v, mask, p)
        return module.out_proj(y.transpose(1, 2).flatten(2)), weights

    return run


def _mask(padding: Tensor | None, mask: Tensor | None, q: Tensor, heads: int) -> Tensor | None:
    """What is added to the scores, broadcast to [B, heads, T, S]. padding: [B, S]; mask: [T, S] or [B·heads, T, S]; where
    they are boolean, True is not attended to."""
    parts = []
    if padding is not None:
        parts.append(_added(padding, q)[:, None, None])
    if mask is not None:
        added = _added(mask, q)
        parts.append(added.unflatten(0, (-1, heads)) if mask.dim() == 3 else added)
    return sum(parts[1:], start=parts[0]) if parts else None


def _added(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype != torch.bool:
        return mask.to(like.dtype)
    return torch.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill_(mask, float("-inf"))
