"""Empirical lower bounds on ε: what an attack's success proves about any guarantee that is claimed.

Compare a bound only with the ε of the same unit and relation. A canary planted 20 times audits the group k = 20 (k = 1
once its copies are deduplicated).
"""

from __future__ import annotations

import math

from scipy.special import betaincinv


def clopper_pearson(hits: int, n: int, alpha: float = 0.05) -> tuple[float, float]:
    """Exact two-sided interval of a share, α/2 on each side (Clopper and Pearson 1934).

    >>> [round(x, 4) for x in clopper_pearson(0, 200, 0.1)]
    [0.0, 0.0149]
    """
    return _lower(hits, n, alpha / 2), _upper(hits, n, alpha / 2)


def eps_lower(
    tp: int, n_in: int, fp: int, n_out: int, delta: float = 0.0, confidence: float = 0.95, one_direction: bool = False
) -> float:
    """Lower bound on ε from a membership attack whose threshold was fixed before these records were seen.

    (ε, δ)-DP gives TPR ≤ e^ε·FPR + δ and TNR ≤ e^ε·FNR + δ; the bound is the larger of log((TPR_L − δ)/FPR_U) and
    log((TNR_L − δ)/FNR_U), each end one-sided at α/4 (α/2 when only the first form is used). The records must be
    independent, as one of each of many runs are; many of one run are for :mod:`taciturn.auditing.lower_bounds.one_run`.

    >>> round(eps_lower(300, 1000, 10, 1000, delta=1e-5, one_direction=True), 4)
    2.6971
    """
    alpha = (1 - confidence) / (2 if one_direction else 4)
    best = _log_ratio(_lower(tp, n_in, alpha) - delta, _upper(fp, n_out, alpha))
    if not one_direction:
        best = max(best, _log_ratio(_lower(n_out - fp, n_out, alpha) - delta, _upper(n_in - tp, n_in, alpha)))
    return best


def eps_lower_exposure(hits: int, n: int, rank: int, size: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Lower bound on ε from canaries: ``hits`` of ``n`` secrets ranked at most ``rank``, fixed in advance, of ``size``.

    log((TPR_L − δ)·(|R| − n + 1)/rank). Secrets are drawn uniformly and distinct, so given the model and the other secrets
    each is in the top ``rank`` with probability at most e^ε·rank/(|R| − n + 1): for δ = 0 one run with n canaries is enough.
    With δ > 0 the n must come from independent runs; for one run with δ > 0 there is :func:`eps_lower_exposure_once`.
    """
    return _log_ratio(_lower(hits, n, 1 - confidence) - delta, rank / (size - n + 1))


def eps_lower_exposure_once(
    hits: int, n: int, rank: int, size: int, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """The same from one run, for any δ: what δ allows may fall on all canaries of a run together.

    Under (ε, δ) the mean number of hits is at most n·(e^ε·rank/(|R| − n + 1) + δ), so by Markov's inequality ``hits`` or
    more have probability at most n/hits times that: ε ≥ log(((1 − confidence)·hits/n − δ)·(|R| − n + 1)/rank).

    >>> round(eps_lower_exposure_once(10, 10, 1000, 10**6, 8e-5), 3)
    3.91
    """
    return _log_ratio((1 - confidence) * hits / n - delta, rank / (size - n + 1))


def _lower(hits: int, n: int, alpha: float) -> float:
    return float(betaincinv(hits, n - hits + 1, alpha)) if hits else 0.0


def _upper(hits: int, n: int, alpha: float) -> float:
    return float(betaincinv(hits + 1, n - hits, 1 - alpha)) if hits < n else 1.0


def _log_ratio(top: float, bottom: float) -> float:
    return max(math.log(top / bottom), 0.0) if top > 0 else 0.0
