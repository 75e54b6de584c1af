"""Membership scores of single records, all from one pass of the model over the texts. Higher says member.

loss        −mean nll (Yeom et al. 2018; CRT A.5)
reference   mean nll under reference models − mean nll (Carlini et al. 2021, section 5.2)
zlib        −mean nll / compressed length (Carlini et al. 2021, section 5.2)
min_k       mean of the lowest k of the log p(token) (Shi et al. 2024, equation 1)
min_k_plus  the same of (log p(token) − μ)/σ, μ and σ over the vocabulary (Zhang et al. 2024, equation 3)
rmia        share of a population that the record's likelihood ratio beats (Zarifzadeh et al. 2024, equation 2)
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taciturn.models.hf import context_length
from taciturn.models.loss import Batch, collate, microbatches, run_model
from taciturn.models.lstm import RecurrentLM
from taciturn.models.sequences import mask_id
from taciturn.models.tokens import encode_all

Scores = NDArray[np.float64]
Model = tuple[Any, Any]
"""A model and its tokenizer."""

SHARE = 0.2
"""The share of tokens Min-K% looks at."""

BUDGET = 4096
"""Tokens of one forward pass, padding included: with 50,000 tokens in a vocabulary their logits take 0.8 GB."""

BLOCK = 2**18
"""Logits looked at together: few enough to stay in a core's cache."""

CHUNK = 2**22
"""Logits a recurrent model makes together: enough that its decoder's weights are not fetched for a few rows."""


@dataclass(frozen=True, slots=True)
class Read:
    """What one pass says of N texts, each [N]: mean nll per target (0 where a text has none), Min-K% and Min-K%++."""

    loss: Scores
    min_k: Scores
    min_k_plus: Scores


def score_texts(model: Any, tokenizer: Any, texts: Sequence[str], share: float = SHARE) -> Read:
    """One forward pass over ``texts``, without gradients; the value of a text does not depend on the others."""
    tokens = encode_all(tokenizer, texts, context_length(model))
    mask = mask_id(tokenizer)
    out = np.zeros((3, len(tokens)))
    training = model.training
    model.eval()
    with torch.inference_mode():
        for rows in microbatches(np.arange(len(tokens)), tokens.lengths, BUDGET):
            batch = collate(tokens, rows, mask, model.device)
            owner, logp, standard = _per_token(model, batch)
            ends = np.searchsorted(owner, np.arange(len(rows) + 1))
            for b, (start, end) in enumerate(pairwise(ends)):
                if end > start:
                    lowest = max(int(share * (end - start)), 1)
                    out[0, rows[b]] = -logp[start:end].mean()
                    out[1, rows[b]] = _mean_lowest(logp[start:end], lowest)
                    out[2, rows[b]] = _mean_lowest(standard[start:end], lowest)
    model.train(training)
    return Read(*out)


def _mean_lowest(values: Scores, k: int) -> float:
    return float(np.partition(values, k - 1)[:k].mean())


def _per_token(model: Any, batch: Batch) -> tuple[NDArray[np.int64], Scores, Scores]:
    """Of every target in the batch: its record, log p, and (log p − μ)/σ. [targets] each, records ascending."""
    at = (batch.weights.reshape(-1) > 0).nonzero().squeeze(1)
    wanted = batch.targets.reshape(-1)[at]
    found = [_moments(*each) for each in _blocks(model, batch, at, wanted)]
    logp, mean, variance = (torch.cat(each) for each in zip(*found, strict=True)) if found else torch.empty(3, 0)
    standard = (logp - mean) / variance.clamp(min=1e-10).sqrt()
    owner = (at // batch.targets.shape[1]).cpu().numpy()
    return owner, logp.double().cpu().numpy(), standard.double().cpu().numpy()


def _moments(logits: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log p of ``wanted`` [n], and mean and variance of log p over the vocabulary, from logits [n, V], which are lost."""
    # the same moments as of log p: a shift by the largest logit cancels in all of them
    shifted = logits.float()
    shifted -= shifted.amax(1, keepdim=True)
    p = shifted.softmax(1)  # one call, twice as fast as exp, sum and a division
    log_total = -p.amax(1).log()
    weighted = p.mul_(shifted)  # product and sum: five times as fast as a batch of dot products
    first = weighted.sum(1)
    if not bool(first.isfinite().all()):  # tokens a model forbids: p = 0, but 0 · −∞ is not
        shifted.clamp_(min=-1e4)
        weighted = shifted.softmax(1).mul_(shifted)
        first = weighted.sum(1)
    second = weighted.mul_(shifted).sum(1)
    return shifted.gather(1, wanted[:, None]).squeeze(1) - log_total, first - log_total, second - first.square()


def _blocks(model: Any, batch: Batch, at: Tensor, wanted: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Logits [n, V] at the positions ``at`` in turn, and what is wanted there. A recurrent model's are made a chunk at a
    time: those of padding never are, and a chunk is still in cache when it is looked at."""
    if isinstance(model, RecurrentLM):
        hidden, _ = model.hidden(batch.input_ids)
        V = model.decoder.out_features
        chunks = hidden.reshape(-1, hidden.shape[-1])[at].split(max(1, CHUNK // V))
        made: Iterable[Tensor] = (block for c in chunks for block in model.decoder(c).split(max(1, BLOCK // V)))
    else:
        z = run_model(model, batch)
        z = z.reshape(-1, z.shape[-1])
        made = (z[some] for some in at.split(max(1, BLOCK // z.shape[1])))
    start = 0
    for block in made:
        yield block, wanted[start : start + len(block)]
        start += len(block)


def compressed(texts: Sequence[str]) -> Scores:
    """Bytes of each text after zlib."""
    return np.array([len(zlib.compress(text.encode("utf-8", "surrogatepass"))) for text in texts], float)


def membership_scores(
    model: Model,
    texts: Sequence[str],
    references: Sequence[Model] = (),
    population: Sequence[str] | None = None,
) -> dict[str, Scores]:
    """Attack → score of each text. "reference" needs ``references``, "rmia" a ``population`` as well."""
    seen = score_texts(*model, texts)
    scores = {
        "loss": -seen.loss,
        "zlib": -seen.loss / compressed(texts),
        "min_k": seen.min_k,
        "min_k_plus": seen.min_k_plus,
    }
    if references:
        others = np.stack([score_texts(*other, texts).loss for other in references])
        scores["reference"] = others.mean(0) - seen.loss
        if population is not None:
            of_all = np.stack([score_texts(*other, population).loss for other in references])
            scores["rmia"] = rmia(seen.loss, others, score_texts(*model, population).loss, of_all)
    return scores


def rmia(loss: Scores, others: Scores, population: Scores, population_others: Scores, gamma: float = 1.0) -> Scores:
    """Robust membership inference, offline (Zarifzadeh et al. 2024, equations 2 and 8 with a = 1).

    loss [N], population [Z]: mean nll under the attacked model; others [k, N], population_others [k, Z]: under the
    reference models, none of which saw the texts. p(text) is the likelihood per token, its prior the references' mean.
    The score is the share of z with ratio(x) ≥ γ · ratio(z); on a single model it orders texts as ratio(x) does.

    >>> rmia(np.array([0.0, 2.0]), np.array([[1.0, 1.0]]), np.array([1.0, 1.5]), np.array([[1.0, 1.0]]))
    array([1., 0.])
    """

    def ratio(own: Scores, theirs: Scores) -> Scores:
        return np.asarray(np.exp(-own) / np.exp(-theirs).mean(0))

    levels = np.sort(gamma * ratio(population, population_others))
    return np.asarray(np.searchsorted(levels, ratio(loss, others), "right") / len(levels))
