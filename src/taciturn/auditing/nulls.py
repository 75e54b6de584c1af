"""What an attack scores when nothing leaked: exact nulls, so that no value is read on its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb, gammaincc, gammaln, ndtr
from scipy.stats import combine_pvalues, rankdata

# Exposure. A secret drawn uniformly from R, never seen by the model, has a uniform rank on every model. Secrets of one
# template are distinct, so are their ranks: n of them are n of |R| without replacement.


def exposure_tail(x: float, size: int) -> float:
    """P(exposure ≥ x) of one unseen secret: ⌊|R|·2^−x⌋ / |R|, about 2^−x.

    >>> exposure_tail(1.0, 1000), exposure_tail(0.0, 1000)
    (0.5, 1.0)
    """
    return min(math.floor(size * math.exp2(-x) * (1 + 1e-12)), size) / size


def exposure_mean(size: int) -> float:
    """Mean exposure of one unseen secret, log2|R| − log2(|R|!)/|R|; near 1/ln 2.

    >>> round(exposure_mean(10**6), 4)
    1.4427
    """
    return math.log2(size) - float(gammaln(size + 1)) / (size * math.log(2))


@lru_cache(maxsize=64)  # a second for 10⁷ candidates, and the same for every model
def exposure_max_mean(n: int, size: int) -> float:
    """Mean of the highest exposure of n distinct unseen secrets, by the exact finite sum.

    >>> round(exposure_max_mean(10, 10**6), 4)
    4.2255
    """
    total = 0.0  # by parts: the mean of log2(lowest rank) is Σ P(lowest > r)·(log2(r + 1) − log2 r)
    rest = gammaln(size - n + 1) - gammaln(size + 1)
    for first in range(1, size - n + 1, 1 << 20):
        r = np.arange(first, min(first + (1 << 20), size - n + 1), dtype=np.float64)
        above = np.exp(gammaln(size - r + 1) - gammaln(size - r - n + 1) + rest)  # C(|R| − r, n)/C(|R|, n)
        total += float((above * np.log2(1 + 1 / r)).sum())
    return math.log2(size) - total


def exposure_max_p95(n: int, size: int | None = None, confidence: float = 0.95) -> float:
    """95 % point of the highest exposure of n unseen secrets: log2(|R|/r) of the largest rank r that the best of them is
    below with probability at most .05. Without a size that of large |R|: −log2(1 − confidence^(1/n)).

    >>> round(exposure_max_p95(1), 2), round(exposure_max_p95(10), 2), exposure_max_p95(3, 8)
    (4.32, 7.61, 3.0)
    """
    large = -math.log2(-math.expm1(math.log(confidence) / n))
    if size is None:
        return large
    rank = max(int(size * 2.0**-large) + 2, 1)  # distinct ranks lie a little lower
    while rank > 1 and exposure_max_p(rank - 1, n, size) > 1 - confidence:
        rank -= 1
    return math.log2(size / rank)


def exposure_max_p(best_rank: float, n: int, size: int) -> float:
    """P(the best of n distinct ranks is at most ``best_rank``) = 1 − C(|R| − r, n)/C(|R|, n).

    >>> round(exposure_max_p(1, 3, 4), 9), exposure_max_p(2, 3, 4)
    (0.75, 1.0)
    """
    r = math.floor(best_rank)
    if r > size - n:
        return 1.0
    return -math.expm1(float(np.log1p(-r / (size - np.arange(n))).sum()))


def all_distinct(n: int, size: int) -> float:
    """P(n independent draws of |R| are distinct). What is true of distinct ones has at most the probability it has of
    independent ones over this, since they are those, given that they are distinct.

    >>> round(all_distinct(3, 4), 9)
    0.375
    """
    return math.exp(float(np.log1p(-np.arange(n) / size).sum())) if n <= size else 0.0


def exposure_sum_p(ranks: NDArray[np.float64], size: int) -> float:
    """P-value of the mean exposure: Σ ln(|R|/rank) of n uniform ranks is at most Gamma(n, 1) (Fisher 1932); over
    :func:`all_distinct`, as the ranks are."""
    return min(1.0, float(gammaincc(len(ranks), np.log(size / ranks).sum())) / all_distinct(len(ranks), size))


def fisher_p(p_values: NDArray[np.float64]) -> float:
    """Fisher's combined p-value (1932): −2 Σ ln p is at most χ² of 2n degrees of freedom, for independent p-values.

    >>> round(fisher_p(np.array([0.5])), 3), round(fisher_p(np.full(10, 0.2)), 3)
    (0.5, 0.041)
    """
    return float(combine_pvalues(p_values, method="fisher").pvalue)


def exposure_min_p(smallest: float, canaries: Mapping[int, int]) -> float:
    """P-value of the highest exposure over several templates. smallest: p-value, rank over |R|, of the best secret.
    canaries: |R| → how many distinct secrets; two templates of one size may count as one, which makes it no smaller.

    >>> round(exposure_min_p(0.25, {4: 1}), 9), round(exposure_min_p(0.25, {4: 1, 8: 1}), 9)
    (0.25, 0.4375)
    """
    none = 1.0
    for size, n in canaries.items():
        none *= 1 - exposure_max_p(smallest * size * (1 + 1e-12), n, size)
    return 1 - none


def exposure_max_mean_large(n: int) -> float:
    """Mean of the highest exposure of n unseen secrets for large |R|, whatever the templates: (1 + 1/2 + … + 1/n)/ln 2.

    >>> round(exposure_max_mean_large(10), 3)
    4.226
    """
    return float((1 / np.arange(1, n + 1)).sum()) / math.log(2)


# Membership. Under exchangeability every labelling of the scores is equally likely.


def auc_sd(n1: int, n0: int) -> float:
    """Standard deviation of the AUC without an effect and without ties (Mann and Whitney 1947)."""
    return math.sqrt((n1 + n0 + 1) / (12 * n1 * n0))


EXACT = 100
"""Scores on both sides together up to which the rank-sum null is exact."""


def auc_null(members: NDArray[np.float64], nonmembers: NDArray[np.float64]) -> tuple[float, float]:
    """(p-value of the AUC, 95 % point of the AUC) if every labelling of these scores, ties and all, is equally likely.

    The exact distribution of the rank sum (Mann and Whitney 1947, with midranks) up to ``EXACT`` scores, by counting
    labellings score by score; normal with the variance without ties, which is the larger, beyond that.

    >>> auc_null(np.array([3.0, 4.0]), np.array([1.0, 2.0])), auc_null(np.array([1.0, 1.0]), np.array([1.0, 1.0]))
    ((0.16666666666666666, 1.0), (1.0, 0.5))
    """
    n1, n0 = len(members), len(nonmembers)
    twice = np.rint(2 * rankdata(np.concatenate([members, nonmembers]))).astype(np.int64)  # midranks are halves
    observed = int(twice[:n1].sum())
    if n1 + n0 > EXACT:
        auc, sd = (observed / 2 - n1 * (n1 + 1) / 2) / (n1 * n0), auc_sd(n1, n0)
        return float(ndtr((0.5 - auc) / sd)), min(0.5 + 1.6449 * sd, 1.0)
    ways = np.zeros((n1 + 1, 2 * n1 * (n1 + n0) + 1))
    ways[0, 0] = 1
    for rank in twice:
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank].copy()
    share = ways[n1] / comb(n1 + n0, n1)
    at_most = np.cumsum(share)
    p95 = int(np.argmax(at_most >= 0.95 * (1 - 1e-12)))
    return float(share[observed:].sum()), (p95 / 2 - n1 * (n1 + 1) / 2) / (n1 * n0)


@lru_cache(maxsize=32)
def same_set_accuracy(n1: int, n0: int, draws: int = 4000) -> tuple[float, float]:
    """Mean and 95 % point of the best balanced accuracy over all thresholds, chosen on the very records it is read on.

    This is CRT A.5's accuracy: half of one plus a one-sided Kolmogorov-Smirnov distance, so a coin flip scores above
    .5 (1000 + 1000 records: .514, 95 % point .527). By ``draws`` seeded permutations, seen in the same way every time.
    """
    rng = np.random.default_rng(20220501)
    steps = np.concatenate([np.full(n1, 1 / n1, np.float32), np.full(n0, -1 / n0, np.float32)])
    best = np.empty(draws)
    for i in range(draws):
        best[i] = max(float(np.cumsum(rng.permutation(steps)).max()), 0.0)
    accuracy = 0.5 + best / 2
    return float(accuracy.mean()), float(np.quantile(accuracy, 0.95))


def split_accuracy_p95(n1: int, n0: int) -> float:
    """95 % point (normal, largest variance) of balanced accuracy at a threshold chosen on other records; 1 for very few."""
    return min(0.5 + 1.6449 * math.sqrt((1 / n1 + 1 / n0) / 16), 1.0)
