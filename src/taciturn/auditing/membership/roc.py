"""ROC statistics of attack scores. Higher scores say "member"; nothing here knows where scores come from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import rankdata

from taciturn.auditing.lower_bounds.two_sided import clopper_pearson, eps_lower
from taciturn.auditing.nulls import auc_sd

Scores = NDArray[np.float64]


def delong(members: Scores, nonmembers: Scores) -> tuple[Scores, Scores]:
    """AUCs [K] and their covariance [K, K] for K attacks scored on the same records (DeLong et al. 1988).

    members: [K, n1]; nonmembers: [K, n0]. Midranks, O(n log n) (Sun and Xu 2014).
    """
    n1, n0 = members.shape[1], nonmembers.shape[1]
    both = rankdata(np.concatenate([members, nonmembers], 1), axis=1)
    v1 = (both[:, :n1] - rankdata(members, axis=1)) / n0  # share of non-members below each member
    v0 = 1 - (both[:, n1:] - rankdata(nonmembers, axis=1)) / n1
    covariance = np.atleast_2d(np.cov(v1)) / n1 + np.atleast_2d(np.cov(v0)) / n0
    return v1.mean(1), covariance


def auc_interval(auc: float, variance: float, n1: int, n0: int) -> tuple[float, float]:
    """95 % interval: DeLong's, on the logit scale so that it stays in [0, 1].

    At an AUC of exactly 0 or 1 DeLong's variance is 0; there the open end is Clopper-Pearson's for min(n1, n0) pairs.
    """
    n = min(n1, n0)
    if auc in (0.0, 1.0):
        return clopper_pearson(n if auc else 0, n)
    half = 1.96 * math.sqrt(variance) / (auc * (1 - auc))
    logit = math.log(auc / (1 - auc))
    return 1 / (1 + math.exp(half - logit)), 1 / (1 + math.exp(-half - logit))


def auc_p(auc: float, n1: int, n0: int) -> float:
    """One-sided p-value of an AUC above .5 (normal; without ties exact to a few per cent from 20 + 20 records on)."""
    return float(ndtr((0.5 - auc) / auc_sd(n1, n0)))


def roc(members: Scores, nonmembers: Scores, points: int = 200) -> tuple[Scores, Scores]:
    """(FPR, TPR) from (0, 0) to (1, 1), at most ``points`` of them; tied scores move both at once."""
    levels = np.unique(np.concatenate([members, nonmembers]))
    fpr = 1 - np.searchsorted(np.sort(nonmembers), levels, "left") / len(nonmembers)
    tpr = 1 - np.searchsorted(np.sort(members), levels, "left") / len(members)
    fpr, tpr = np.append(fpr, 0.0)[::-1], np.append(tpr, 0.0)[::-1]
    if len(fpr) > points:
        keep = np.unique(np.linspace(0, len(fpr) - 1, points).round().astype(int))
        fpr, tpr = fpr[keep], tpr[keep]
    return fpr, tpr


def best_threshold(members: Scores, nonmembers: Scores) -> tuple[float, float]:
    """(t, balanced accuracy) of the best rule "member iff score ≥ t" on these records."""
    levels = np.append(np.unique(np.concatenate([members, nonmembers])), np.inf)
    tpr = 1 - np.searchsorted(np.sort(members), levels, "left") / len(members)
    fpr = 1 - np.searchsorted(np.sort(nonmembers), levels, "left") / len(nonmembers)
    i = int(np.argmax(tpr - fpr))
    return float(levels[i]), float(0.5 + (tpr[i] - fpr[i]) / 2)


def tpr_at_fpr(members: Scores, nonmembers: Scores, fpr: float) -> tuple[float, float, float] | None:
    """TPR and its Clopper-Pearson interval at a false positive rate of at most ``fpr``; None: not measurable.

    Below 5 expected false positives the threshold is noise.
    """
    n0 = len(nonmembers)
    if n0 * fpr < 5:
        return None
    threshold = np.sort(nonmembers)[n0 - 1 - math.floor(n0 * fpr + 1e-9)]
    hits = int((members > threshold).sum())
    return (hits / len(members), *clopper_pearson(hits, len(members)))


def held_out(inside: Scores, outside: Scores, a: NDArray[np.int64], b: NDArray[np.int64]) -> dict[str, Any]:
    """Balanced accuracy and ε bound on one half of the orders ``a`` and ``b``, at thresholds chosen on the other."""
    half1, half0 = len(a) // 2, len(b) // 2
    if not half1 or not half0:
        return {"accuracy": None, "accuracy_interval": None, "eps_lower": 0.0}
    pick1, pick0 = inside[a[:half1]], outside[b[:half0]]
    test1, test0 = inside[a[half1:]], outside[b[half0:]]
    t, _ = best_threshold(pick1, pick0)
    tp, tn = int((test1 >= t).sum()), int((test0 < t).sum())
    (low1, high1), (low0, high0) = clopper_pearson(tp, len(test1), 0.025), clopper_pearson(tn, len(test0), 0.025)
    bound = _bound_threshold(pick1, pick0)
    return {
        "accuracy": (tp / len(test1) + tn / len(test0)) / 2,
        "accuracy_interval": ((low1 + low0) / 2, (high1 + high0) / 2),
        "eps_lower": eps_lower(
            int((test1 >= bound).sum()), len(test1), int((test0 >= bound).sum()), len(test0), delta=0.0
        ),
    }


def _bound_threshold(inside: Scores, outside: Scores) -> float:
    """The threshold, among 50 quantiles, with the largest ε bound on these records."""
    levels = np.unique(np.quantile(np.concatenate([inside, outside]), np.linspace(0.02, 0.98, 50)))
    bounds = [eps_lower(int((inside >= t).sum()), len(inside), int((outside >= t).sum()), len(outside)) for t in levels]
    return float(levels[int(np.argmax(bounds))])


def shuffled_auc(inside: Scores, outside: Scores, rng: np.random.Generator) -> float:
    """AUC after the labels are shuffled: the negative control."""
    mixed = rng.permutation(np.concatenate([inside, outside]))
    auc, _ = delong(mixed[None, : len(inside)], mixed[None, len(inside) :])
    return float(auc[0])
