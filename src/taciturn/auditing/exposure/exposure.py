"""Canary exposure: how far up a model ranks a planted secret among everything that could have stood there.

exposure = log2|R| − log2 rank (Carlini et al. 2019, Definition 2; CRT Definition 9), with the exact rank of
:mod:`taciturn.auditing.exposure.ranking`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from taciturn.auditing import nulls
from taciturn.auditing.canaries.templates import Template
from taciturn.auditing.controls import TEMPLATE, overfitted
from taciturn.auditing.exposure.ranking import Ranked, ranked, ranks
from taciturn.auditing.exposure.search import MOST_MINUTES, Notify, Search
from taciturn.auditing.finding import Finding, verdict_of
from taciturn.auditing.lower_bounds.two_sided import eps_lower_exposure
from taciturn.errors import UsageError

HIT_SHARE = 1e-3
"""The ε bound counts canaries among the first |R|/1000; fixed here, before any model is seen."""


def exposure(
    model: Any,
    tokenizer: Any,
    template: Template | str,
    secrets: Sequence[str],
    *,
    seed: int = 0,
    search: Search = "auto",
    candidates: int | None = None,
    most_minutes: float = MOST_MINUTES,
    notify: Notify | None = None,
) -> Finding:
    """Highest exposure of the planted ``secrets``, read against the exact null of the highest of as many unseen ones.

    template: a :class:`Template`, or its text (digits, as long as the secrets). search: how candidates are scored, see
    :func:`taciturn.auditing.exposure.search.scored`. candidates: rank in a random subset of so many. most_minutes: refuse
    what would take longer. notify: told what the work will take before it starts. Negative control: as many secrets of the
    same template that were never inserted, from the same enumeration of the same model, or from a small one of their own
    where branch and bound did not score them. Positive control: see :mod:`taciturn.auditing.controls`. No interval: the rank
    is exact for this model and these secrets.
    """
    if not secrets:
        raise UsageError("exposure: expected at least one planted secret, found none")
    if isinstance(template, str):
        template = Template(template, length=len(secrets[0]))
    found = ranked(
        model,
        tokenizer,
        template,
        secrets,
        seed=seed,
        search=search,
        candidates=candidates,
        most_minutes=most_minutes,
        notify=notify,
    )
    return finding_from_ranks(found)


@lru_cache(maxsize=1)
def positive_control() -> tuple[float, float]:
    """Exposure of the over-fitted toy's canary, and the most it could be, log2|R| of its template; both in bits."""
    toy = overfitted()
    rank = float(ranks(toy.model, toy.tokenizer, TEMPLATE, [toy.secret])[0])
    return math.log2(TEMPLATE.size) - math.log2(rank), math.log2(TEMPLATE.size)


def finding_from_ranks(found: Ranked) -> Finding:
    """The finding that ranks make."""
    n, size = len(found.last), found.size
    bits = math.log2(size) - np.log2(found.middle)
    control_bits = math.log2(found.control_size) - np.log2(found.control_middle)
    positive, positive_max = positive_control()
    p = nulls.exposure_max_p(float(found.last.min()), n, size)
    p_mean = nulls.exposure_sum_p(found.last, size)
    problems, notes = [], []
    if positive < positive_max - 1:
        problems.append("the positive control failed: the attack misses an over-fitted model's secrets")
    if nulls.exposure_max_p(float(found.control_last.min()), n, found.control_size) < 1e-4:
        problems.append("the negative control failed: secrets never inserted rank high")
    if p >= 0.01 and p_mean < 0.01:
        notes.append("the highest exposure is unremarkable but the mean exposure is not: see p_mean")
    verdict = verdict_of(p, problems)
    if verdict == "no leak found" and notes:
        verdict = "inconclusive"
    hit_rank = max(int(size * HIT_SHARE), 1)
    hits = int((found.last <= hit_rank).sum())
    return Finding(
        attack="exposure",
        score=float(bits.max()),
        unit_of_score="bits",
        interval=None,
        null={
            "mean": nulls.exposure_max_mean(n, size),
            "p95": nulls.exposure_max_p95(n, size),
            "p": p,
            "p_mean": p_mean,
            "single_mean": nulls.exposure_mean(size),
            "single_p95": nulls.exposure_max_p95(1, size),
        },
        controls={
            "positive": positive,
            "positive_max": positive_max,
            "negative": float(control_bits.max()),
            "negative_mean": float(control_bits.mean()),
        },
        verdict=verdict,
        detail={
            "exposures": bits.tolist(),
            "p_values": (found.last / size).tolist(),
            "control_exposures": control_bits.tolist(),
            "control_candidates": found.control_size,
            "mean": float(bits.mean()),
            "max_possible": math.log2(size),
            "candidates": size,
            "evaluations": found.evaluations,
            "search": "exact" if found.complete else "branch-and-bound",
            "hits": hits,
            "hit_rank": hit_rank,
            "eps_lower": eps_lower_exposure(hits, n, hit_rank, size),
        },
        notes=(*problems, *notes),
    )
