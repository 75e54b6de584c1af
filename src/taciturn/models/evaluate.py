"""Perplexity of a model on held-out records, over all tokens and over the tokens outside annotated secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.models.loss import collate, microbatches, token_losses
from taciturn.models.tokens import Tokens, encode_all, mask_id
from taciturn.text.document import MASK, Record


@dataclass(frozen=True, slots=True)
class Utility:
    """Perplexities and the numbers of tokens they are taken over."""

    perplexity: float
    tokens: int
    perplexity_outside: float
    tokens_outside: int


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Records coded once, to be scored as often as wanted. outside[i]: which tokens of record i touch no gold span."""

    tokens: Tokens
    outside: tuple[NDArray[np.bool_], ...]
    mask: int

    @staticmethod
    def of(tokenizer: Any, records: Sequence[Record], max_length: int | None = None) -> HeldOut:
        tokens = encode_all(tokenizer, [record.body for record in records], max_length)
        outside = tuple(_outside(tokenizer, record, len(tokens[i])) for i, record in enumerate(records))
        return HeldOut(tokens, outside, mask_id(tokenizer))

    def utility(self, model: Any, token_budget: int = 16_384) -> Utility:
        """Score the records as they are (nothing masked). A token that touches a gold span by one character is inside
        it; end of text is outside."""
        total, total_outside, n, n_outside = 0.0, 0.0, 0, 0
        training = model.training
        model.eval()
        for rows in microbatches(np.arange(len(self.tokens)), self.tokens.lengths, token_budget):
            batch = collate(self.tokens, rows, self.mask, model.device)
            nll = token_losses(model, batch).double().cpu().numpy()
            scored = batch.weights.cpu().numpy() > 0
            for b, row in enumerate(rows):
                keep = self.outside[row][1 : nll.shape[1] + 1]
                line, on = nll[b, : len(keep)], scored[b, : len(keep)]
                total += float(line.sum())
                n += int(on.sum())
                total_outside += float(line[keep].sum())
                n_outside += int((on & keep).sum())
        model.train(training)
        return Utility(exp(total / max(n, 1)), n, exp(total_outside / max(n_outside, 1)), n_outside)


def utility(model: Any, tokenizer: Any, records: Sequence[Record], max_length: int | None = None) -> Utility:
    """Perplexities of ``model`` on ``records``; see :meth:`HeldOut.utility`."""
    return HeldOut.of(tokenizer, records, max_length).utility(model)


def _outside(tokenizer: Any, record: Record, length: int) -> NDArray[np.bool_]:
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
