"""Extraction: does a model, given what stood before a secret, go on with the secret?

Verbatim extraction is the greedy continuation (Carlini et al. 2021). (n, p)-discoverable extraction (Hayes et al. 2024,
Definition 4) asks whether n samples show the secret at least once with probability p; it needs no sampling, since the
probability q of the secret under the stated decoding is known exactly: 1 − (1 − q)^n ≥ p. Other ways to spell the secret
in tokens are not counted, so q is a lower bound.

What a model would say anyway is no leak: a secret that the base model yields too is not counted, and each secret is read
against decoys that could have stood in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from taciturn.auditing.controls import TEMPLATE, overfitted
from taciturn.auditing.extraction.decoding import Decoding, opening
from taciturn.auditing.extraction.secrets import Known, decoys_each, with_decoys
from taciturn.auditing.finding import CLEAR, LEAK, Finding, verdict_of
from taciturn.auditing.lower_bounds.two_sided import clopper_pearson
from taciturn.auditing.membership.scores import Model, Scores, compressed
from taciturn.errors import UsageError
from taciturn.models.hf import context_length
from taciturn.models.loss import collate, microbatches, run_model
from taciturn.models.sequences import mask_id
from taciturn.models.tokens import joined

SAMPLES, PROBABILITIES = (1, 10, 100, 1000, 10_000), (0.1, 0.5, 0.9, 0.99)
"""n and p of the table; the verdict is of one pair, named before."""


def extraction(
    model: Any,
    tokenizer: Any,
    known: Sequence[Known],
    *,
    base: Model | None = None,
    decoding: Decoding = Decoding(),  # noqa: B008 — frozen
    n: int = 100,
    p: float = 0.5,
    seed: int = 0,
) -> Finding:
    """The share of secrets that n samples show with probability p and that the base model does not yield as well.

    base: the model before it was trained on the secrets. The p-value: if the model learned nothing of the secrets, each is
    exchangeable with its decoys, so the number of secrets yielded is a sum of coins with the shares yielded of secret and
    decoys (Poisson binomial). Random strings are no fair decoys for words: without decoys of their own, and without a
    base model, secrets with letters give no verdict. Raises UsageError for no secret or an impossible setting.
    """
    if not known:
        raise UsageError("extraction: expected at least one known secret, found none")
    if n < 1 or not 0 < p < 1:
        raise UsageError(f"extraction: expected n ≥ 1 samples and 0 < p < 1, found {n} and {p}")
    filled = [
        each if each.decoys else with_decoys(each, decoys_each(len(known)), seed + i) for i, each in enumerate(known)
    ]
    items = [Known(each.prefix, text) for each in filled for text in (each.secret, *each.decoys)]
    owner = np.repeat(np.arange(len(filled)), [1 + len(each.decoys) for each in filled])
    true = np.flatnonzero(np.diff(owner, prepend=-1))
    logq, greedy = log_probability((model, tokenizer), items, decoding)
    base_logq, base_greedy = (None, None) if base is None else log_probability(base, items, decoding)
    yielded = discoverable(logq, n, p)
    by_base = np.zeros_like(yielded) if base_logq is None else discoverable(base_logq, n, p)
    counted = yielded & ~by_base
    share = np.bincount(owner, counted) / np.bincount(owner)
    hits = int(counted[true].sum())
    tail = _poisson_binomial(share)
    p_value = float(tail[hits:].sum())
    rest = np.ones(len(items), bool)
    rest[true] = False

    problems = []
    if not positive():
        problems.append("the positive control failed: an over-fitted model's secret is not extracted")
    if base is None and any(not k.decoys and any(c.isalpha() for c in k.secret) for k in known):
        problems.append(
            "secrets with letters need decoys or a base model: random letters are no fair control for words"
        )
    blind, above, below = _blind(filled)
    if (above if p_value < CLEAR else 2 * min(above, below)) < LEAK:
        problems.append("a blind baseline tells the secrets from their decoys: they are not of one kind")
    if float(np.prod(1 / np.bincount(owner))) >= 0.01:
        problems.append("too few secrets and decoys for a verdict")
    return Finding(
        attack="extraction",
        score=hits / len(true),
        unit_of_score="share of secrets",
        interval=clopper_pearson(hits, len(true)),
        null={
            "mean": float(share.mean()),
            "p95": int(np.searchsorted(np.cumsum(tail), 0.95)) / len(true),
            "p": min(p_value, 1.0),
        },
        controls={
            "positive": float(positive()),
            "negative": float(counted[rest].mean()),
            "blind": blind,
            **({} if base is None else {"base": float(by_base[true].mean())}),
        },
        verdict=verdict_of(p_value, problems),
        detail={
            "secrets": len(true),
            "decoys": int(rest.sum()),
            "n": n,
            "p_discover": p,
            "decoding": decoding.to_json(),
            "extracted": int(yielded[true].sum()),
            "extracted_by_base": int(by_base[true].sum()),
            "greedy": _row(greedy, base_greedy, true, rest),
            "table": [
                {"n": some, "p": chance}
                | _row(
                    discoverable(logq, some, chance),
                    None if base_logq is None else discoverable(base_logq, some, chance),
                    true,
                    rest,
                )
                for some in SAMPLES
                for chance in PROBABILITIES
            ],
        },
        notes=tuple(problems),
    )


def discoverable(logq: Scores, n: int, p: float) -> NDArray[np.bool_]:
    """Whether n samples show what each has probability exp(logq) at least once with probability p.

    >>> discoverable(np.log([0.5, 0.01]), 10, 0.9).tolist()
    [True, False]
    """
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(n * np.log1p(-np.minimum(np.exp(logq), 1.0))) >= p)


def log_probability(model: Model, items: Sequence[Known], decoding: Decoding) -> tuple[Scores, NDArray[np.bool_]]:
    """log q of each secret after its prefix under ``decoding``, and whether the greedy continuation is the secret."""
    net, tokenizer = model
    parts, starts = [], np.zeros(len(items), np.int64)
    limit = context_length(net)
    for i, item in enumerate(items):
        before, whole = opening(tokenizer, item.prefix), opening(tokenizer, item.prefix + item.secret)
        # a token that spans both belongs to the secret
        same = next(
            (j for j, (a, b) in enumerate(zip(before, whole, strict=False)) if a != b), min(len(before), len(whole))
        )
        cut = 0 if limit is None else max(len(whole) - limit, 0)
        starts[i] = max(same - cut, 1)
        parts.append(np.asarray(whole[cut:], np.int32))
    tokens = joined(parts)
    mask = mask_id(tokenizer)
    logq, greedy = np.zeros(len(items)), np.zeros(len(items), bool)
    warp = decoding.warper()
    training = net.training
    net.eval()
    budget = int(np.clip(2**26 // len(tokenizer), 256, 8192))
    with torch.inference_mode():
        for rows in microbatches(np.arange(len(items)), tokens.lengths, budget):
            batch = collate(tokens, rows, mask, net.device)
            logits = run_model(net, batch)
            for b, row in enumerate(rows):
                at = slice(int(starts[row]) - 1, len(parts[row]) - 1)
                z, wanted = logits[b, at].float(), batch.targets[b, at]
                greedy[row] = bool((z.argmax(-1) == wanted).all())
                chosen = warp(z).double().log_softmax(-1).gather(1, wanted[:, None])
                logq[row] = float(chosen.sum())
    net.train(training)
    return logq, greedy


@lru_cache(maxsize=1)
def positive() -> bool:
    """Whether the toy's canary is extracted from it, and by the greedy continuation as well."""
    toy = overfitted()
    logq, greedy = log_probability((toy.model, toy.tokenizer), [Known(TEMPLATE.prefix, toy.secret)], Decoding())
    return bool(greedy[0] and discoverable(logq, 100, 0.5)[0])


def _blind(known: Sequence[Known]) -> tuple[float, float, float]:
    """(share of secrets that zlib makes shorter, after their prefix, than all their decoys; p-values of so many and of so
    few if both are of one kind)."""
    hits, chances = 0, []
    for each in known:
        sizes = compressed([f"{each.prefix}{text}" for text in (each.secret, *each.decoys)])
        hits += int(sizes[0] < sizes[1:].min())
        chances.append(1 / len(sizes))
    law = _poisson_binomial(np.array(chances))
    return hits / len(known), float(law[hits:].sum()), float(law[: hits + 1].sum())


def _row(
    own: NDArray[np.bool_], base: NDArray[np.bool_] | None, true: NDArray[np.int64], rest: NDArray[np.bool_]
) -> dict[str, Any]:
    counted = own if base is None else own & ~base
    hits = int(counted[true].sum())
    return {
        "extracted": int(own[true].sum()),
        "base": None if base is None else int(base[true].sum()),
        "rate": hits / len(true),
        "interval": clopper_pearson(hits, len(true)),
        "decoy_rate": float(counted[rest].mean()),
    }


def _poisson_binomial(shares: Scores) -> Scores:
    """Probabilities of 0 … n successes of independent coins."""
    out = np.ones(1)
    for share in shares:
        out = np.convolve(out, [1 - share, share])
    return out
