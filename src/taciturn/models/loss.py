"""Per-record losses: one number per record, padding never scored, `<MASK>` never a target, the end of text always one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taciturn.models.tokens import Tokens, encode_all, mask_id, targets


@dataclass(frozen=True, slots=True)
class Batch:
    """input_ids, attention: [B, T]; weights: [B, T−1], the weight of predicting input_ids[:, 1:] (0: not a target)."""

    input_ids: Tensor
    attention: Tensor
    weights: Tensor

    def __len__(self) -> int:
        return int(self.input_ids.shape[0])


def collate(tokens: Tokens, rows: NDArray[np.int64], mask: int, device: torch.device | str = "cpu") -> Batch:
    """Records ``rows`` padded on the right; the padding id is arbitrary, since nothing scores or attends to it."""
    lengths = tokens.lengths[rows]
    width = max(int(lengths.max()), 2)
    ids = np.zeros((len(rows), width), np.int64)
    scored = np.zeros((len(rows), width), np.float32)
    for b, row in enumerate(rows):
        sequence = tokens[row]
        ids[b, : len(sequence)] = sequence
        scored[b, : len(sequence)] = targets(sequence, mask)
    attention = np.arange(width)[None, :] < lengths[:, None]
    return Batch(
        torch.from_numpy(ids).to(device),
        torch.from_numpy(attention.astype(np.int64)).to(device),
        torch.from_numpy(scored[:, 1:]).to(device),
    )


PASS_COST = 128
"""What one forward and backward pass costs beside its tokens, in tokens; a trade between padding and passes."""


def microbatches(rows: NDArray[np.int64], lengths: NDArray[np.int64], token_budget: int) -> list[NDArray[np.int64]]:
    """Cut a logical batch into physical ones of at most ``token_budget`` padded tokens (or a single record).

    Records are sorted by length and cut where padded tokens plus PASS_COST per pass are fewest (dynamic programming);
    real text in batches of 32 would otherwise be more than half padding. The update is a sum over records, so neither
    the order nor the cut can change it.
    """
    rows = rows[np.argsort(lengths[rows], kind="stable")]
    sizes = lengths[rows]
    n = len(rows)
    cost = np.zeros(n + 1)
    cut = np.zeros(n + 1, np.int64)
    for i in range(1, n + 1):
        longest = int(sizes[i - 1])
        first = max(0, min(i - 1, i - token_budget // max(longest, 1)))
        starts = np.arange(first, i)
        totals = cost[first:i] + (i - starts) * longest + PASS_COST
        best = int(totals.argmin())
        cost[i], cut[i] = totals[best], starts[best]
    out: list[NDArray[np.int64]] = []
    i = n
    while i:
        out.append(rows[cut[i] : i])
        i = int(cut[i])
    return out[::-1]


class _CrossEntropy(torch.autograd.Function):
    """Σ_t w_t · nll_t per record, in rows that stay in cache; the backward pass overwrites the logits it was given."""

    ROWS = 64

    @staticmethod
    def forward(ctx: Any, logits_BTV: Tensor, target_BT: Tensor, weight_BT: Tensor) -> Tensor:
        V = logits_BTV.shape[-1]
        z, y = logits_BTV.reshape(-1, V), target_BT.reshape(-1, 1)
        lse = torch.cat([rows.float().logsumexp(1) for rows in z.split(_CrossEntropy.ROWS)])
        ctx.saved = (z, y, lse, weight_BT, logits_BTV.shape)
        nll = lse - z.gather(1, y).squeeze(1).float()
        return (nll.view_as(weight_BT) * weight_BT).sum(1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        z, y, lse, weight_BT, shape = ctx.saved
        ctx.saved = None
        scale = (weight_BT * grads[0][:, None]).reshape(-1)
        R = _CrossEntropy.ROWS
        for i, rows in enumerate(z.split(R)):
            part = slice(i * R, (i + 1) * R)
            rows.sub_(lse[part, None]).exp_()
            rows.scatter_add_(1, y[part], rows.new_full((rows.shape[0], 1), -1.0))
            rows.mul_(scale[part, None])
        return z.view(shape), None, None


def record_losses(model: Any, batch: Batch) -> Tensor:
    """Σ over a record's targets of weight · −log p(token), shape [B]; differentiable once (the logits are consumed)."""
    logits = model(input_ids=batch.input_ids, attention_mask=batch.attention).logits
    return _CrossEntropy.apply(logits[:, :-1], batch.input_ids[:, 1:], batch.weights)  # type: ignore[no-any-return]


def token_losses(model: Any, batch: Batch) -> Tensor:
    """−log p of every target, [B, T−1]; positions that are not targets are 0. For evaluation and attacks."""
    with torch.no_grad():
        logits = model(input_ids=batch.input_ids, attention_mask=batch.attention).logits[:, :-1]
        y = batch.input_ids[:, 1:]
        nll = torch.empty_like(batch.weights)
        for b in range(len(batch)):  # row by row: a float32 copy of [B, T, V] would double the memory
            z = logits[b].float()
            nll[b] = z.logsumexp(-1) - z.gather(-1, y[b][:, None]).squeeze(-1)
        return nll * batch.weights


def score(
    model: Any, tokenizer: Any, texts: Sequence[str], max_length: int | None = None, token_budget: int = 16_384
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(Σ nll, number of targets) per text; the value of a text does not depend on the others."""
    tokens = encode_all(tokenizer, texts, max_length)
    mask = mask_id(tokenizer)
    nll, count = np.zeros(len(tokens)), np.zeros(len(tokens), np.int64)
    training = model.training
    model.eval()
    for rows in microbatches(np.arange(len(tokens)), tokens.lengths, token_budget):
        batch = collate(tokens, rows, mask, model.device)
        nll[rows] = token_losses(model, batch).sum(1, dtype=torch.float64).cpu().numpy()
        count[rows] = batch.weights.sum(1).long().cpu().numpy()
    model.train(training)
    return nll, count


def perplexity(model: Any, tokenizer: Any, texts: Sequence[str], max_length: int | None = None) -> float:
    """exp of the mean negative log-likelihood per target token; end of text counts, padding and `<MASK>` do not."""
    nll, count = score(model, tokenizer, texts, max_length)
    return exp(nll.sum() / max(int(count.sum()), 1))
