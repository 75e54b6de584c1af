"""Perplexity of a model on held-out records, over all tokens and over the tokens outside annotated secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np

from taciturn.models.loss import collate, microbatches, token_losses
from taciturn.models.tokens import encode_all, mask_id
from taciturn.text.document import MASK, Record


@dataclass(frozen=True, slots=True)
class Utility:
    """Perplexities and the numbers of tokens they are taken over."""

    perplexity: float
    tokens: int
    perplexity_outside: float
    tokens_outside: int

    def to_json(self) -> dict[str, float | int]:
        return {
            "perplexity": self.perplexity,
            "tokens": self.tokens,
            "perplexity_outside_secrets": self.perplexity_outside,
            "tokens_outside_secrets": self.tokens_outside,
        }


def utility(
    model: Any, tokenizer: Any, records: Sequence[Record], max_length: int | None = None, token_budget: int = 16_384
) -> Utility:
    """Score ``records`` as they are (nothing masked). A token that touches a gold span by one character is inside it;
    end of text is outside."""
    tokens = encode_all(tokenizer, [record.body for record in records], max_length)
    outside = [_outside(tokenizer, record, len(tokens[i])) for i, record in enumerate(records)]
    mask = mask_id(tokenizer)
    total, total_outside, n, n_outside = 0.0, 0.0, 0, 0
    training = model.training
    model.eval()
    for rows in microbatches(np.arange(len(tokens)), tokens.lengths, token_budget):
        batch = collate(tokens, rows, mask, model.device)
        nll = token_losses(model, batch).double().cpu().numpy()
        scored = batch.weights.cpu().numpy() > 0
        for b, row in enumerate(rows):
            keep = outside[row][1 : nll.shape[1] + 1]
            line, on = nll[b, : len(keep)], scored[b, : len(keep)]
            total += float(line.sum())
            n += int(on.sum())
            total_outside += float(line[keep].sum())
            n_outside += int((on & keep).sum())
    model.train(training)
    return Utility(exp(total / max(n, 1)), n, exp(total_outside / max(n_outside, 1)), n_outside)


def _outside(tokenizer: Any, record: Record, length: int) -> np.ndarray:
    """True for tokens of the record's sequence that touch no gold span, [length]."""
    keep = np.ones(length, bool)
    if not record.gold:
        return keep
    position, at = 1, 0  # after the start token; code points read so far
    for i, piece in enumerate(record.body.split(MASK)):
        if i:
            position, at = position + 1, at + len(MASK)
        coded = tokenizer(
            piece, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True, verbose=False
        )
        for start, end in coded["offset_mapping"]:
            if position < length:
                keep[position] = not any(start + at < g.end and g.start < max(end, start + 1) + at for g in record.gold)
            position += 1
        at += len(piece)
    return keep
