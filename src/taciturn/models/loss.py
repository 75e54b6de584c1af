"""Per-record losses: one number per record, padding never scored, `<MASK>` never a target, the end of text always one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import exp
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taciturn.models.sequences import mask_id
from taciturn.models.tokens import Tokens, encode_all


@dataclass(frozen=True, slots=True)
class Batch:
    """input_ids, attention, targets, weights: all [B, T]. targets[:, t] is what the logits at t predict, weights how much
    that counts (0: not scored); for a causal model the last column is empty. labels: [B] for classification, −1 where a
    record is not scored; then targets and weights are not read. segments: [B, T], which text of a pair a token belongs to.
    at, words: of records put in a prompt, the position whose logits answer, [B], and what may be answered, ids [B, classes].
    """

    input_ids: Tensor
    attention: Tensor
    targets: Tensor
    weights: Tensor
    labels: Tensor | None = None
    segments: Tensor | None = None
    at: Tensor | None = None
    words: Tensor | None = None

    def __len__(self) -> int:
        return int(self.input_ids.shape[0])


def collate(tokens: Tokens, rows: NDArray[np.int64], mask: int, device: torch.device | str = "cpu") -> Batch:
    """Records ``rows`` padded on the right; the padding id is arbitrary, since nothing scores or attends to it. A causal
    model predicts the next token, one with ``tokens.masking`` the hidden ones."""
    lengths = tokens.sizes(rows)
    width = max(int(lengths.max()), 2)
    attention = np.arange(width)[None, :] < lengths[:, None]
    # Where each token of the batch lies in ``flat``, row by row: one look-up takes the place of a loop over records.
    where = np.arange(lengths.sum()) + np.repeat(tokens.offsets[rows] - np.cumsum(lengths) + lengths, lengths)

    def spread(values: NDArray[Any], dtype: type) -> NDArray[Any]:
        out: NDArray[Any] = np.zeros((len(rows), width + 1), dtype)
        out[:, :-1][attention] = values
        return out

    ids = spread(tokens.flat[where], np.int64)
    scored = spread(tokens.flat[where] != mask if tokens.scored is None else tokens.scored[where], np.float32)
    if tokens.scored is None:
        scored[:, 0] = 0
    segments = None if tokens.segments is None else spread(tokens.segments[where], np.int64)[:, :-1]
    shown, wanted, weights = ids[:, :-1], ids[:, 1:], scored[:, 1:]
    if tokens.masking is not None:
        wanted = shown
        shown, weights = tokens.masking.hide(shown, scored[:, :-1], lengths)
    answers, put = tokens.answers, partial(_put, device=torch.device(device))
    return Batch(
        put(shown),
        put(attention.astype(np.int64)),
        put(wanted),
        put(weights),
        None if tokens.labels is None else put(tokens.labels[rows]),
        None if segments is None else put(segments),
        None if answers is None else put(answers.at[rows]),
        None if answers is None else put(answers.words).expand(len(rows), -1),
    )


def _put(array: NDArray[Any], device: torch.device) -> Tensor:
    """On the device; to a GPU through pinned memory, so that nobody waits for the copy."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


PASS_COST = 128
"""What one forward and backward pass costs beside its tokens, in tokens; a trade between padding and passes."""


def microbatches(rows: NDArray[np.int64], sizes: NDArray[np.int64], token_budget: int) -> list[NDArray[np.int64]]:
    """Cut a logical batch into physical ones of at most ``token_budget`` padded tokens (or a single record).

    sizes: tokens of each of ``rows``. Records are sorted by length and cut where padded tokens plus PASS_COST per pass
    are fewest (dynamic programming); real text in batches of 32 would otherwise be more than half padding. The update is
    a sum over records, so neither the order nor the cut can change it.
    """
    order = np.argsort(sizes, kind="stable")
    rows, sizes = rows[order], sizes[order]
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


class CrossEntropy(torch.autograd.Function):
    """Σ_t w_t · nll_t per record, in blocks of rows that stay in cache. The forward pass leaves the probabilities where the
    logits were and the backward pass turns those into the gradient: logits are held once, and nothing of their size is
    allocated. logits [B, T, V], targets [B, T], weights [B, T]."""

    BLOCK = 2**20
    ON_A_GPU = 2**26  # there a block costs eight kernels, and no cache holds one

    @staticmethod
    def forward(ctx: Any, logits_BTV: Tensor, target_BT: Tensor, weight_BT: Tensor) -> Tensor:
        V = logits_BTV.shape[-1]
        z, y = logits_BTV.reshape(-1, V), target_BT.reshape(-1, 1)
        nll = torch.empty(len(z), 1, device=z.device)
        blocks = max(1, (CrossEntropy.ON_A_GPU if z.is_cuda else CrossEntropy.BLOCK) // V)
        for rows, at, n in zip(*(t.split(blocks) for t in (z, y, nll)), strict=True):
            e = rows.float()  # itself in float32; under autocast only what is stored is rounded
            p = e.softmax(1)  # one call, in half the time of exp and sum
            torch.sub(e.amax(1, keepdim=True), e.gather(1, at), out=n)
            n.sub_(p.amax(1, keepdim=True).log())  # Σ exp(z − max z) = 1 / max p
            rows.copy_(p)
        ctx.saved = (z, y, weight_BT, logits_BTV.shape, blocks)
        return (nll.view_as(weight_BT) * weight_BT).sum(1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        p, y, weight_BT, shape, blocks = ctx.saved
        ctx.saved = None
        scale = (weight_BT * grads[0][:, None]).reshape(-1, 1)
        for rows, at, w in zip(*(t.split(blocks) for t in (p, y, scale)), strict=True):
            rows.mul_(w).scatter_add_(1, at, w.neg().to(rows.dtype))
        return p.view(shape), None, None


def run_model(model: Any, batch: Batch) -> Tensor:
    """The logits of a batch, [B, T, V] or of a classifier [B, classes]; a model that knows one kind of segment, or none,
    is not told which text a token belongs to, and one that only looks back not where the padding on the right is: without
    a mask its attention takes the fast kernel, and what it says of padding is never read."""
    more = {}
    if batch.segments is not None and (getattr(model.config, "type_vocab_size", None) or 0) > 1:
        more = {"token_type_ids": batch.segments}
    read = batch.labels is None or batch.at is not None  # at each token; a classifier's head may ask for the mask
    attention = None if read and looks_back(model) else batch.attention
    logits: Tensor = model(input_ids=batch.input_ids, attention_mask=attention, **more).logits
    T = batch.input_ids.shape[1]
    return logits[:, -T:] if logits.dim() == 3 and logits.shape[1] > T else logits  # a trained prompt stands before


def looks_back(model: Any) -> bool:
    """Whether all attention of a model is causal, by what its layers say of themselves."""
    said = [module.is_causal for module in model.modules() if isinstance(getattr(module, "is_causal", None), bool)]
    return bool(said) and all(said) and not getattr(model.config, "is_encoder_decoder", False)


def class_logits(model: Any, batch: Batch) -> Tensor:
    """A classifier's logits, or of a language model those of the labels' words where the prompt is answered:
    [B, classes], float32."""
    logits = run_model(model, batch)
    if batch.at is not None and batch.words is not None:
        logits = logits[torch.arange(len(batch), device=logits.device), batch.at].gather(1, batch.words)
    elif logits.dim() == 3:  # a pass of nothing that is scored has no place where it is answered
        logits = logits[:, 0]
    return logits.float()


def record_losses(model: Any, batch: Batch) -> Tensor:
    """Σ over a record's targets of weight · −log p(target), [B]; for classification −log p(label), 0 where there is none.
    Differentiable once (the logits are consumed)."""
    if batch.labels is not None:
        logits = class_logits(model, batch)
        return torch.nn.functional.cross_entropy(logits, batch.labels, reduction="none", ignore_index=-1)
    logits = run_model(model, batch)
    return CrossEntropy.apply(logits, batch.targets, batch.weights)  # type: ignore[no-any-return]


def token_losses(model: Any, batch: Batch) -> Tensor:
    """−log p of every target, [B, T]; positions that are not targets are 0. For evaluation and attacks."""
    with torch.no_grad():
        logits = run_model(model, batch)
        nll = torch.empty_like(batch.weights)
        for b in range(len(batch)):  # row by row: a float32 copy of [B, T, V] would double the memory
            z = logits[b].float()
            nll[b] = -z.log_softmax(-1).gather(-1, batch.targets[b][:, None]).squeeze(-1)
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
