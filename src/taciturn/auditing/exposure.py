"""Canary exposure: how far up a model ranks a planted secret among everything that could have stood there.

exposure = log2|R| − log2 rank (Carlini et al. 2019, Definition 2; CRT Definition 9), with the exact rank by negative
log-likelihood of the secret given the template's prefix. What follows the secret (suffix, end of text) is not scored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.auditing import nulls
from taciturn.auditing.bounds import eps_lower_exposure
from taciturn.auditing.canaries import Template, draw
from taciturn.auditing.controls import positive_control
from taciturn.auditing.finding import Finding, judge
from taciturn.auditing.likelihood import BudgetSpent, candidate_scores, plain_scores
from taciturn.auditing.trie import Trie, candidate_trie, encode_candidates
from taciturn.errors import TaciturnError, UsageError

TIE = 1e-6
"""Log-probabilities this close are one: float32 arithmetic depends on the shape of the batch."""

AGREEMENT = 5e-3
"""Largest difference, in nats, between the walk and a plain forward pass. Float32 gives 1e-5, half precision more."""

HIT_SHARE = 1e-3
"""The ε bound counts canaries among the first |R|/1000; fixed here, before any model is seen."""


def midranks(scores: NDArray[np.float64], chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rank of each chosen candidate, 1 the likeliest; tied candidates share the mean of their ranks.

    >>> midranks(np.array([-1.0, -3.0, -1.0, -2.0]), np.array([0, 1, 3]))
    array([1.5, 4. , 3. ])
    """
    ascending = np.sort(scores)
    above = len(scores) - np.searchsorted(ascending, scores[chosen] + TIE, "right")
    tied = len(scores) - np.searchsorted(ascending, scores[chosen] - TIE, "left") - above
    return np.asarray(above + (tied + 1) / 2)


def ranks(
    model: Any, tokenizer: Any, template: Template, secrets: Sequence[str], most: int | None = 20_000
) -> NDArray[np.float64]:
    """Exact ranks of a few secrets, for checkpoints: branch and bound first, all candidates when that is no cheaper.

    Every prefix less likely than the least likely secret is dropped; a memorised secret needs a few nodes. After
    ``most`` evaluated nodes the full enumeration takes over, with the same result.
    """
    trie = candidate_trie(tokenizer, template)
    chosen = np.array([template.index(secret) for secret in secrets])
    if most is not None:
        floor = plain_scores(model, encode_candidates(tokenizer, template, secrets), len(trie.context)).min()
        try:
            scores = candidate_scores(model, trie, floor - AGREEMENT, most)
        except BudgetSpent:
            pass
        else:
            if scores[chosen].min() >= floor - AGREEMENT + TIE:  # else what was dropped could rank above a secret
                return midranks(scores, chosen)
    return midranks(candidate_scores(model, trie), chosen)


def exposure(
    model: Any,
    tokenizer: Any,
    template: Template | str,
    secrets: Sequence[str],
    *,
    seed: int = 0,
) -> Finding:
    """Highest exposure of the planted ``secrets``, read against the exact null of the highest of as many unseen ones.

    template: a :class:`Template`, or its text (digits, as long as the secrets). Negative control: as many secrets of
    the same template that were never inserted, from the same enumeration of the same model. Positive control: see
    :mod:`taciturn.auditing.controls`. No interval: the rank is exact for this model and these secrets.
    """
    if not secrets:
        raise UsageError("exposure: expected at least one planted secret, found none")
    if isinstance(template, str):
        template = Template(template, length=len(secrets[0]))
    n, size = len(secrets), template.size
    unseen = draw(template, n, seed, without=secrets)
    trie = candidate_trie(tokenizer, template)
    scores = candidate_scores(model, trie)
    _check_walk(model, tokenizer, template, trie, scores, secrets[:3])
    rank = midranks(scores, np.array([template.index(s) for s in secrets]))
    control_rank = midranks(scores, np.array([template.index(s) for s in unseen]))
    bits, control_bits = math.log2(size) - np.log2(rank), math.log2(size) - np.log2(control_rank)

    positive = positive_control()
    p = nulls.exposure_max_p(float(rank.min()), n, size)
    p_mean = nulls.exposure_sum_p(rank, size)
    problems, notes = [], []
    if positive.exposure < positive.exposure_max - 1:
        problems.append("the positive control failed: the attack misses an over-fitted model's secrets")
    if nulls.exposure_max_p(float(control_rank.min()), n, size) < 1e-4:
        problems.append("the negative control failed: secrets never inserted rank high")
    if p >= 0.01 and p_mean < 0.01:
        notes.append("the highest exposure is unremarkable but the mean exposure is not: see p_mean")
    verdict = judge(p, problems)
    if verdict == "no leak found" and notes:
        verdict = "inconclusive"
    hit_rank = max(int(size * HIT_SHARE), 1)
    hits = int((rank <= hit_rank).sum())
    return Finding(
        attack="exposure",
        score=float(bits.max()),
        unit_of_score="bits",
        interval=None,
        null={
            "mean": nulls.exposure_max_mean(n, size),
            "p95": nulls.exposure_max_p95(n),
            "p": p,
            "p_mean": p_mean,
            "single_mean": nulls.exposure_mean(size),
            "single_p95": nulls.exposure_max_p95(1),
        },
        controls={
            "positive": positive.exposure,
            "positive_max": positive.exposure_max,
            "negative": float(control_bits.max()),
            "negative_mean": float(control_bits.mean()),
        },
        verdict=verdict,
        detail={
            "exposures": bits.tolist(),
            "control_exposures": control_bits.tolist(),
            "mean": float(bits.mean()),
            "max_possible": math.log2(size),
            "candidates": size,
            "evaluations": trie.evaluations,
            "hits": hits,
            "hit_rank": hit_rank,
            "eps_lower": eps_lower_exposure(hits, n, hit_rank, size),
        },
        notes=(*problems, *notes),
    )


def _check_walk(
    model: Any, tokenizer: Any, template: Template, trie: Trie, scores: NDArray[np.float64], secrets: Sequence[str]
) -> None:
    plain = plain_scores(model, encode_candidates(tokenizer, template, secrets), len(trie.context))
    walked = scores[[template.index(secret) for secret in secrets]]
    gap = float(np.abs(plain - walked).max())
    half = next(model.parameters()).element_size() < 4
    if not gap <= (0.1 if half else AGREEMENT):
        raise TaciturnError(
            f"{type(model).__name__}: log-probabilities with and without its cache differ by {gap:.2g} nats, expected "
            f"at most {AGREEMENT}; its cache cannot be trusted and no rank is reported"
        )
