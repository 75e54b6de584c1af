"""The chance that a release of thresholded counts shows a key that only the changed records hold (guarantees.md §3.7)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from taciturn.errors import UsageError
from taciturn.privacy.accounting.effort import pay
from taciturn.privacy.accounting.events import ThresholdedCounts

_PIECES = 256  # of the range of a key's count; each piece is bounded by its ends, so fewer only raise the bound


@lru_cache(maxsize=4096)
def escape(event: ThresholdedCounts, group: int = 1) -> float:
    """δ_h(k): at most the chance that one of the keys that nobody but ``group`` changed records holds is shown.

    A record with n keys adds a·w to each, w = min(1, √(m₀/n)). A key that j records of the group hold counts c, at most
    a·(k − 1 + w), and is shown with chance Φ((c − τ)/σ_h): charged to these records in the proportion a·w : c, a record
    pays at most n·a·w·max_c Φ((c − τ)/σ_h)/c, and the group k times the most of that over n ≤ M, in each open table.

    >>> event = ThresholdedCounts(2.0, 25.0, 2.0, 16, (0.7,))
    >>> bool(escape(event) < escape(event, 10) < escape(event, 40) == 1.0)
    True
    """
    pay(len(event.shares) * event.keys * _PIECES)
    n = np.arange(1, event.keys + 1)
    weight = np.minimum(1.0, np.sqrt(event.record_weight / n))
    total = 0.0
    for share in event.shares:
        low, high = share * weight, share * (group - 1 + weight)
        ends = np.geomspace(low, high, _PIECES + 1)
        ratio = np.exp(log_ndtr((ends[1:] - event.threshold) / event.std)) / ends[:-1]
        total += group * float(np.max(n * low * np.max(ratio, axis=0)))
    return min(1.0, total)


@lru_cache(maxsize=4096)
def standing(event: ThresholdedCounts) -> float:
    """δ_m: at most the chance that one of a record's values that stand in at most ``event.copies`` records is shown; 0 where
    no step without noise reads what was shown (guarantees.md §3.7, Theorem B).

    Each of a record's n values has a count of at most a·(m − 1 + w).

    >>> event = ThresholdedCounts(2.0, 25.0, 2.0, 16, (0.7,), one_sided=True, copies=10)
    >>> bool(0 < standing(event) < escape(event, 20)), standing(_at(event, 1e6))
    (True, 0.0)
    """
    if not event.copies:
        return 0.0
    n = np.arange(1, event.keys + 1)
    weight = np.minimum(1.0, np.sqrt(event.record_weight / n))
    count = max(event.shares) * (event.copies - 1 + weight)
    return min(1.0, float(np.max(n * np.exp(log_ndtr((count - event.threshold) / event.std)))))


def threshold(event: ThresholdedCounts, copies: int, delta: float) -> float:
    """The least τ, rounded up to six digits, at which a value that stands in ``copies`` records and in no other is shown
    with a chance of at most ``delta``, and so is one of a record's values that stand in at most ``event.copies``. Raises
    UsageError for copies or a probability that make no sense.

    >>> from dataclasses import replace
    >>> event = ThresholdedCounts(2.0, 1.0, 2.0, 16, (0.7,))
    >>> event = replace(event, threshold=threshold(event, 10, 1e-5))
    >>> 0.99e-5 < escape(event, 10) <= 1e-5
    True
    """
    if isinstance(copies, bool) or not isinstance(copies, int) or copies < 1 or not 0 < delta < 1:
        raise UsageError(f"threshold: expected copies ≥ 1 and a probability, found {copies!r} and {delta!r}")

    def shown(tau: float) -> float:
        return max(escape(_at(event, tau), copies), standing(_at(event, tau)))

    low, high = 0.0, max(event.shares) * copies + event.std
    while shown(high) > delta:
        low, high = high, 2 * high
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) <= delta else (middle, high)
    found = float(f"{high:.6g}")
    return found if shown(found) <= delta else float(f"{high * (1 + 1e-5):.6g}")


def _at(event: ThresholdedCounts, tau: float) -> ThresholdedCounts:
    return replace(event, threshold=tau)
