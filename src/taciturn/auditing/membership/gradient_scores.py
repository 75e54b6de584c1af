"""A white-box attack on one's own training: which records' gradients are in what the weights moved by?

Nasr et al. 2023 and Steinke et al. 2023 give the auditor the gradients of canaries; here it has the weights before and after
training. To first order these moved by −s(Σ_i b_i·g_i + noise), with a fair coin b_i and a clipped gradient g_i for each
canary. The linear estimate of b with the least mean square error is (G·Gᵀ + 4σ²)⁻¹·G·(movement − its mean), where G has the
rows g_i (Gauss and Markov, with prior variance ¼). G is never formed: G·u is a derivative of the losses along u, Gᵀ·a one
backward pass, and conjugate gradients need only these. A bad estimate costs power; the bound on ε stays valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taciturn.auditing.membership.scores import Model, Scores
from taciturn.errors import UsageError
from taciturn.models.hf import context_length
from taciturn.models.loss import collate, microbatches, record_losses, run_model
from taciturn.models.sequences import mask_id
from taciturn.models.tokens import Tokens, encode_all
from taciturn.persample.capture import captured
from taciturn.persample.clip import clipped_sum
from taciturn.persample.sums import Sums
from taciturn.training.passes import scored

Vector = list[Tensor]
"""One tensor a parameter that moved."""

BUDGET = 2**24
"""Logits of one pass."""


def gradient_scores(
    before: Model,
    after: Model,
    texts: Sequence[str],
    others: Sequence[str] | None = None,
    known: Sequence[str] = (),
    *,
    clip: float = 0.0,
    noise: float = 1.0,
    iterations: int = 8,
) -> Scores:
    """How much of each text's clipped gradient is in the movement of the weights, [N]; higher says "it was there".

    before, after: the model as training began, and as it ended. others: what stood in a text's place when its coin fell the
    other way (its secret masked); nothing at all by default. known: some of what else was trained on, such as public text:
    its mean gradient is taken out. clip: C, 0 to take all gradients as longer than it. noise: σ of
    the whole run in units of C, σ/√(steps) for full batches; a guess costs sensitivity, never validity.

    Raises UsageError for models of different shapes, for weights that did not move, and for a layer without a rule for
    per-record gradients.
    """
    canaries = Directions.of(before, after, texts, others, clip)
    if not len(canaries):
        return np.zeros(0)
    seen = -canaries.along(canaries.moved)
    columns = [canaries.along(canaries.gathered(np.ones(len(canaries))))]  # its coefficient is the unknown s, times ½
    if known:
        columns.append(canaries.along(canaries.mean_gradient(before[1], known)))
    matrix = np.stack(columns, 1)
    parts, *_ = np.linalg.lstsq(matrix, seen, rcond=None)
    return _solved(canaries, (seen - matrix @ parts) / max(abs(parts[0]), 1e-300), 4 * noise**2, iterations)


def _solved(canaries: Directions, right: Scores, ridge: float, iterations: int) -> Scores:
    """(G·Gᵀ + ridge)⁻¹·right by conjugate gradients (Hestenes and Stiefel 1952)."""
    x, residual = np.zeros_like(right), right.copy()
    direction, size = residual.copy(), float(residual @ residual)
    start = size
    for _ in range(iterations):
        if size <= 1e-4 * start:
            break
        image = canaries.along(canaries.gathered(direction)) + ridge * direction
        step = size / float(direction @ image)
        x, residual = x + step * direction, residual - step * image
        size, last = float(residual @ residual), size
        direction = residual + size / last * direction
    return x


class Directions:
    """The canaries' gradients as a linear map: rows of norm at most 1 each, differences of two for pairs."""

    def __init__(
        self, model: Any, tokens: Tokens, mask: int, moved: dict[str, Tensor], clip: float, count: int
    ) -> None:
        self._model, self._tokens, self._mask, self._count = model, tokens, mask, count
        self._names = list(moved)
        self.moved: Vector = [each.double() for each in moved.values()]
        self._parts = _passes(tokens, model)
        norms = self._norms()
        self._factors = np.divide(1.0, np.maximum(norms, clip), out=np.zeros_like(norms), where=norms > 0)
        self._fine = deepcopy(model).double()  # differences of losses need the digits

    @classmethod
    def of(
        cls, before: Model, after: Model, texts: Sequence[str], others: Sequence[str] | None, clip: float
    ) -> Directions:
        if others is not None and len(others) != len(texts):
            raise UsageError(
                f"gradient attack: expected one other text for each, found {len(others)} for {len(texts)} texts"
            )
        model, tokenizer = deepcopy(before[0]).float().eval(), before[1]
        moved = weight_differences(model, after[0])
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name in moved)
        tokens = encode_all(tokenizer, [*texts, *(others or ())], context_length(model))
        return cls(model, tokens, mask_id(tokenizer), moved, clip, len(texts))

    def __len__(self) -> int:
        return self._count

    def along(self, vector: Vector) -> Scores:
        """G·vector, [N]: the change of each loss along it, by a central difference in double precision."""
        largest = max(float(each.abs().max()) for each in vector)
        if not largest:
            return np.zeros(self._count)
        h = 1e-4 / largest
        parameters = dict(self._fine.named_parameters())
        ends = []
        for step in (h, -2 * h):
            for name, each in zip(self._names, vector, strict=True):
                parameters[name].data.add_(each, alpha=step)
            ends.append(self._losses())
        for name, each in zip(self._names, vector, strict=True):
            parameters[name].data.add_(each, alpha=h)
        slopes = (ends[0] - ends[1]) / (2 * h) * self._factors
        return self._signed(slopes)

    def gathered(self, weights: Scores) -> Vector:
        """Gᵀ·weights."""
        each = weights if len(self._tokens) == self._count else np.concatenate([weights, -weights])
        return self._backward(self._tokens, each * self._factors)

    def _backward(self, tokens: Tokens, factors: Scores) -> Vector:
        """∇ Σ factor · mean loss, over the texts."""
        weights = torch.from_numpy(factors.astype(np.float32)).to(self._model.device)
        self._model.zero_grad(set_to_none=True)
        for rows in _passes(tokens, self._model):
            batch = collate(tokens, rows, self._mask, self._model.device)
            losses = record_losses(self._model, batch) / scored(batch).clamp_min(1.0)
            (losses * weights[torch.from_numpy(rows)]).sum().backward()
        parameters = dict(self._model.named_parameters())
        grads = [(name, parameters[name].grad) for name in self._names]
        return [torch.zeros_like(parameters[n]).double() if g is None else g.double() for n, g in grads]

    def mean_gradient(self, tokenizer: Any, texts: Sequence[str]) -> Vector:
        """∇ of the mean over texts of their mean losses."""
        tokens = encode_all(tokenizer, texts, context_length(self._model))
        return self._backward(tokens, np.full(len(tokens), 1 / len(tokens)))

    def _signed(self, values: Scores) -> Scores:
        n = self._count
        return values if len(values) == n else values[:n] - values[n:]

    @torch.inference_mode()
    def _losses(self) -> Scores:
        """Mean nll per target of every text, in double precision."""
        out = np.zeros(len(self._tokens))
        for rows in self._parts:
            batch = collate(self._tokens, rows, self._mask, self._model.device)
            logits = run_model(self._fine, batch)
            nll = logits.logsumexp(-1) - logits.gather(-1, batch.targets[..., None]).squeeze(-1)
            weights = batch.weights.double()
            out[rows] = ((nll * weights).sum(1) / weights.sum(1).clamp_min(1.0)).cpu().numpy()
        return out

    def _norms(self) -> Scores:
        """‖∇ mean loss‖ of every text."""
        out = np.zeros(len(self._tokens))
        for rows in self._parts:
            batch = collate(self._tokens, rows, self._mask, self._model.device)
            self._model.zero_grad(set_to_none=True)
            with captured(self._model, len(batch)) as tape:
                losses = record_losses(self._model, batch) / scored(batch).clamp_min(1.0)
                out[rows] = clipped_sum(self._model, tape, losses, 1.0, Sums()).cpu().numpy()
        return out


def _passes(tokens: Tokens, model: Any) -> list[NDArray[np.int64]]:
    """The texts that have a target at all, cut into passes."""
    rows = np.flatnonzero(tokens.sizes(np.arange(len(tokens))) > 1)
    return microbatches(rows, tokens.sizes(rows), max(64, BUDGET // model.config.vocab_size))


def weight_differences(before: Any, after: Any) -> dict[str, Tensor]:
    """By how much each tensor moved, without those that did not."""
    old, new = dict(before.named_parameters()), dict(after.named_parameters())
    wrong = sorted(name for name in old.keys() | new.keys() if name not in old or name not in new)
    wrong += [name for name in old.keys() & new.keys() if old[name].shape != new[name].shape]
    if wrong:
        raise UsageError(
            f"gradient attack: the model before training has other tensors than the one after ({', '.join(wrong[:4])}); "
            "give the model that training began with, with the run's tokenizer"
        )
    found = {name: (new[name].detach().to(p.device).float() - p.detach()) for name, p in old.items()}
    moved = {name: each for name, each in found.items() if bool(each.any())}
    if not moved:
        raise UsageError(
            "gradient attack: the weights did not move between the model before training and the one after"
        )
    return moved
