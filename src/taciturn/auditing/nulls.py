"""What an attack scores when nothing leaked: exact nulls, so that no value is read on its own."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, gammaln
from scipy.stats import combine_pvalues

# Exposure. A secret drawn uniformly from R, never seen by the model, has a uniform rank on every model.


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
    """Mean of the highest exposure of n unseen secrets (drawn with replacement), by the exact finite sum.

    >>> round(exposure_max_mean(10, 10**6), 4)
    4.2255
    """
    total = 0.0
    for first in range(1, size + 1, 1 << 20):
        r = np.arange(first, min(first + (1 << 20), size + 1), dtype=np.float64)
        total += float((np.log2(r) * (_survives(r - 1, n, size) - _survives(r, n, size))).sum())
    return math.log2(size) - total


def _survives(r: NDArray[np.float64], n: int, size: int) -> NDArray[np.float64]:
    """P(the lowest of n uniform ranks is above r)."""
    return np.asarray((1 - r / size) ** n)


def exposure_max_p95(n: int, confidence: float = 0.95) -> float:
    """95 % point of the highest exposure of n unseen secrets, for large |R|: −log2(1 − confidence^(1/n)).

    >>> round(exposure_max_p95(1), 2), round(exposure_max_p95(10), 2)
    (4.32, 7.61)
    """
    return -math.log2(-math.expm1(math.log(confidence) / n))


def exposure_max_p(best_rank: float, n: int, size: int) -> float:
    """P(the best of n uniform ranks is at most ``best_rank``) = 1 − (1 − r/|R|)^n."""
    share = min(best_rank / size, 1.0)
    return 1.0 if share == 1.0 else -math.expm1(n * math.log1p(-share))


def exposure_sum_p(ranks: NDArray[np.float64], size: int) -> float:
    """P-value of the mean exposure: Σ ln(|R|/rank) of n uniform ranks is at most Gamma(n, 1) (Fisher 1932)."""
    return float(gammaincc(len(ranks), np.log(size / ranks).sum()))


def fisher_p(p_values: NDArray[np.float64]) -> float:
    """Fisher's combined p-value (1932): −2 Σ ln p is at most χ² of 2n degrees of freedom, for independent p-values.

    >>> round(fisher_p(np.array([0.5])), 3), round(fisher_p(np.full(10, 0.2)), 3)
    (0.5, 0.041)
    """
    return float(combine_pvalues(p_values, method="fisher").pvalue)


def exposure_min_p(p_values: NDArray[np.float64]) -> float:
    """P-value of the highest exposure over any templates: the smallest of n independent p-values, 1 − (1 − min p)^n."""
    return exposure_max_p(float(p_values.min()), len(p_values), 1)


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
    """95 % point (normal, largest variance) of balanced accuracy at a threshold chosen on other records."""
    return 0.5 + 1.6449 * math.sqrt((1 / n1 + 1 / n0) / 16)
