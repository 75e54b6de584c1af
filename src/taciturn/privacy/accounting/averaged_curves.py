"""Whole privacy curves of the claims whose ε is an average over a miss (docs/guarantees.md §3.3, §4.1b)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taciturn.privacy.accounting.tradeoff import Curve, combined


def averaged_curve(detected: Curve, missed: Curve | None, m: float) -> Curve:
    """δ(ε) ≤ (1 − m)·δ_detected(ε) + m·δ_missed(ε); a missed case without a curve (None) has δ = 1."""
    if missed is None:
        return replace(detected, deltas=(1 - m) * detected.deltas + m, whole=detected.whole if m == 0 else np.inf)
    return combined(detected, missed, lambda seen, unseen: (1 - m) * seen + m * unseen)


def bayesian_curve(curve: Curve, gamma: float, delta2: float) -> Curve:
    """Theorem 8.3, the worse of its directions, from the substitution curve of one record.

    Each point (ε*, δ*) of it is one of either direction: forward at ε = log(1 + γ(e^{ε*} − 1)) with δ = γδ* + δ₂, reverse at
    ε = −log((γ − δ₂)e^{−ε*} + 1 − γ) with δ = (γ − δ₂)·e^{ε − ε*}·δ*. At ε = 0 the directions agree.
    """
    at, deltas = curve.epsilons, curve.deltas
    if gamma == 0:
        return replace(curve, epsilons=np.zeros(1), deltas=np.zeros(1), whole=0.0)
    # log(1 − γ + γe^ε) and its mirror, neither of which overflows
    rare = np.log1p(-gamma) if gamma < 1 else -np.inf
    ahead = np.where(at > 0, np.maximum(0.0, np.logaddexp(rare, np.log(gamma) + at)), 0.0)  # 0 stays 0, unrounded
    forward = replace(curve, epsilons=ahead, deltas=gamma * deltas + delta2)
    seen = np.log(gamma - delta2) if gamma > delta2 else -np.inf
    epsilons = -np.logaddexp(seen - at, rare)
    reverse_deltas = np.exp(np.minimum(seen + epsilons - at, 0.0)) * deltas
    start = np.array([forward.deltas[0]])
    keep = np.diff(epsilons, prepend=0.0) > 0
    end = ([-rare], [0.0]) if gamma < 1 and -rare > epsilons.max(initial=0.0) else ([], [])
    reverse = replace(
        curve,
        epsilons=np.concatenate(([0.0], epsilons[keep], end[0])),
        deltas=np.concatenate((start, reverse_deltas[keep], end[1])),
    )
    return replace(combined(forward, reverse, np.maximum), whole=curve.whole if delta2 == 0 else np.inf)
