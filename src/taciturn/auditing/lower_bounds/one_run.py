"""A lower bound on ε from one run: many canaries, each inserted or not by a fair coin, and guesses of the coins.

Steinke, Nasr and Jagielski 2023, "Privacy auditing with one (1) training run", Theorem 5.2. The bound is for adding or
removing one canary; an auditor may abstain, and guesses only where it is surest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, expit, gammaln, log_expit

SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Shares of the canaries that are guessed on; the confidence is split over them."""


def p_value(m: int, r: int, v: int, epsilon: float, delta: float = 0.0) -> float:
    """P(at least v of r guesses right), at most, if training on m canaries is (ε, δ)-DP (Theorem 5.2).

    β + 2mδ·max_i α_i/i, with β = P(W ≥ v), α_i = P(v > W ≥ v − i), W ~ Bin(r, e^ε/(1 + e^ε)).

    >>> round(p_value(10, 10, 10, 0.0), 6), round(p_value(10, 10, 10, 0.0, 1e-3), 6)
    (0.000977, 0.003734)
    """
    if not 0 <= v <= r <= m:
        raise ValueError(f"expected 0 ≤ right ≤ guesses ≤ canaries, found {v}, {r}, {m}")
    if not v:
        return 1.0
    tail = float(betainc(v, r - v + 1, expit(epsilon)))
    if not delta:
        return tail
    k = np.arange(v - 1, -1, -1)
    pmf = np.exp(_log_choose(r)[k] + k * log_expit(epsilon) + (r - k) * log_expit(-epsilon))
    worst = float((np.cumsum(pmf) / np.arange(1, v + 1)).max())
    return min(tail + 2 * m * delta * worst, 1.0)


@lru_cache(maxsize=64)
def _log_choose(r: int) -> NDArray[np.float64]:
    """log of r over k, for k = 0 … r."""
    log_factorial = gammaln(np.arange(r + 1) + 1.0)
    return np.asarray(log_factorial[-1] - log_factorial - log_factorial[::-1])


def eps_lower_one_run(m: int, r: int, v: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    """The largest ε that v right ones of r guesses about m canaries rule out; 0 when they rule out nothing.

    >>> eps_lower_one_run(100, 100, 50), round(eps_lower_one_run(1000, 100, 100, 1e-5), 2)
    (0.0, 3.47)
    """
    alpha = 1 - confidence
    if p_value(m, r, v, 0.0, delta) >= alpha:
        return 0.0
    low, high = 0.0, 1.0
    while p_value(m, r, v, high, delta) < alpha:
        low, high = high, 2 * high
        if high > 64:
            return low
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(m, r, v, middle, delta) < alpha else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class OneRun:
    """What was guessed of the coins of one run. canaries: m; guesses, right: of each share that was tried."""

    canaries: int
    guesses: tuple[int, ...]
    right: tuple[int, ...]

    def eps(self, delta: float = 0.0, confidence: float = 0.95) -> float:
        """The lower bound on ε at δ, the best of the shares."""
        each = 1 - (1 - confidence) / max(len(self.guesses), 1)
        pairs = zip(self.guesses, self.right, strict=True)
        return max((eps_lower_one_run(self.canaries, r, v, delta, each) for r, v in pairs), default=0.0)

    def p(self) -> float:
        """The p-value of ε = 0, all shares counted."""
        pairs = zip(self.guesses, self.right, strict=True)
        return min([1.0, *(len(self.guesses) * p_value(self.canaries, r, v, 0.0) for r, v in pairs)])

    def to_json(self) -> dict[str, Any]:
        return {"canaries": self.canaries, "guesses": list(self.guesses), "right": list(self.right)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> OneRun:
        return cls(data["canaries"], tuple(data["guesses"]), tuple(data["right"]))


def one_run(
    inserted: NDArray[np.float64],
    left_out: NDArray[np.float64],
    *,
    shares: Sequence[float] = SHARES,
    seed: int = 0,
) -> OneRun:
    """Guesses from scores (higher says inserted): the highest half of the guesses says "in", the lowest "out".

    inserted, left_out: scores of the canaries by their coin. The coins must be fair and independent of all else. Where the
    numbers could not come from fair coins (they differ by more than four deviations), a part is drawn that could: of so
    many canaries as there are for it, a binomial number from the first.
    """
    rng = np.random.default_rng(seed)
    inside, outside = rng.permutation(inserted), rng.permutation(left_out)
    if abs(len(inside) - len(outside)) > 4 * np.sqrt(len(inside) + len(outside)):
        least = min(len(inside), len(outside))
        m = max(int(2 * least - 6 * np.sqrt(least)), 0)
        n = min(int(rng.binomial(m, 0.5)), least)
        inside, outside = inside[:n], outside[: m - n]
    m, n = len(inside) + len(outside), len(inside)
    order = rng.permutation(m)  # ties are broken without looking at the coin
    ranked = order[np.argsort(np.concatenate([inside, outside])[order], kind="stable")] < n
    halves = sorted({int(share * m) // 2 for share in shares} - {0})
    right = [int((~ranked[:half]).sum() + ranked[-half:].sum()) for half in halves]
    return OneRun(m, tuple(2 * half for half in halves), tuple(right))
