"""How well a model does on held-out records: perplexity over all tokens and outside annotated secrets, or accuracy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from taciturn.models.loss import Batch, class_logits, collate, microbatches, token_losses
from taciturn.models.sequences import mask_id, touched
from taciturn.models.tasks import encode_task
from taciturn.models.tokens import Tokens
from taciturn.text.document import Record


@dataclass(frozen=True, slots=True)
class Utility:
    """Perplexities and the numbers of tokens they are taken over; of a classifier, over the labels of records.

    accuracy: the share of labels a classifier gets right, None for other models.
    """

    perplexity: float
    tokens: int
    perplexity_outside: float
    tokens_outside: int
    accuracy: float | None = None


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Records coded once, to be scored as often as wanted. outside[i]: which tokens of record i touch no gold span."""

    tokens: Tokens
    outside: tuple[NDArray[np.bool_], ...]
    mask: int

    @staticmethod
    def of(tokenizer: Any, records: Sequence[Record], max_length: int | None = None, **task: Any) -> HeldOut:
        """task: as :func:`taciturn.models.tasks.encode_task` takes it; labels are the records' own."""
        texts, labels = [record.body for record in records], [record.label for record in records]
        tokens = encode_task(tokenizer, texts, max_length, labels=labels, **task)
        outside = tuple(_outside(tokenizer, record, len(tokens[i])) for i, record in enumerate(records))
        return HeldOut(tokens, outside, mask_id(tokenizer))

    def utility(
        self,
        model: Any,
        token_budget: int = 16_384,
        share: tuple[int, int] = (0, 1),
        total: Callable[[NDArray[np.float64]], NDArray[np.float64]] = lambda sums: sums,
    ) -> Utility:
        """Score the records as they are (nothing masked). A token that touches a gold span by one character is inside
        it; end of text is outside.

        share: this process and the number of processes, which score as many passes each; total: adds up what they found.
        """
        sums = np.zeros(5)
        training = model.training
        model.eval()
        parts = microbatches(np.arange(len(self.tokens)), self.tokens.lengths, token_budget)
        for first in range(0, len(parts), share[1]):
            at = first + share[0]
            found = self._found(model, parts[at % len(parts)])
            if at < len(parts):  # else a pass too many: one through a model cut over processes takes them all
                sums += found
        model.train(training)
        nll_sum, n, total_outside, n_outside, right = map(float, total(sums))
        accuracy = None if self.tokens.labels is None else right / max(n, 1)
        return Utility(
            exp(nll_sum / max(n, 1)), int(n), exp(total_outside / max(n_outside, 1)), int(n_outside), accuracy
        )

    def _found(self, model: Any, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Σ nll, targets, the same two outside gold spans, right labels: of some records."""
        batch = collate(self.tokens, rows, self.mask, model.device)
        if batch.labels is not None:
            nll, count, hits = _classified(model, batch)
            return np.array([nll, count, nll, count, hits])
        sums = np.zeros(5)
        shift = 1 if self.tokens.masking is None else 0  # a causal model scores a token at the one before
        nlls = token_losses(model, batch).double().cpu().numpy()
        scored = batch.weights.cpu().numpy() > 0
        for b, row in enumerate(rows):
            keep = self.outside[row][shift : nlls.shape[1] + shift]
            line, on = nlls[b, : len(keep)], scored[b, : len(keep)]
            sums += line.sum(), on.sum(), line[keep].sum(), (on & keep).sum(), 0
        return sums


def utility(model: Any, tokenizer: Any, records: Sequence[Record], max_length: int | None = None) -> Utility:
    """Perplexities of ``model`` on ``records``; see :meth:`HeldOut.utility`."""
    return HeldOut.of(tokenizer, records, max_length).utility(model)


def _classified(model: Any, batch: Batch) -> tuple[float, int, int]:
    """(Σ −log p(label), how many labels, how many are the likeliest class) of a batch."""
    assert batch.labels is not None
    with torch.no_grad():
        logits = class_logits(model, batch)
    nll = torch.nn.functional.cross_entropy(logits, batch.labels, ignore_index=-1, reduction="sum")
    return float(nll), int((batch.labels >= 0).sum()), int((logits.argmax(-1) == batch.labels).sum())


def _outside(tokenizer: Any, record: Record, length: int) -> NDArray[np.bool_]:
    """True for tokens of the record's sequence that touch no gold span, [length]."""
    return ~touched(tokenizer, record.body, ((span.start, span.end) for span in record.gold), length)
