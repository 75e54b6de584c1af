"""Statistics of membership scores: a finding whose verdict is of one score, the others and blind baselines beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from taciturn.auditing import nulls
from taciturn.auditing.finding import Finding, verdict_of
from taciturn.auditing.lower_bounds.one_run import SHARES, one_run
from taciturn.auditing.membership.blind import blind_sd
from taciturn.auditing.membership.roc import (
    auc_interval,
    best_threshold,
    delong,
    held_out,
    roc,
    shuffled_auc,
    tpr_at_fpr,
)
from taciturn.auditing.membership.scores import Scores

LEAST = 20
"""Fewest members and non-members for a verdict."""

Pair = tuple[Scores, Scores]
"""Scores of the members and of the non-members."""


def finding_from_scores(
    name: str,
    attacks: Mapping[str, Pair],
    blind: Mapping[str, Pair],
    control: Mapping[str, float],
    seed: int,
    score: str = "loss",
    extra: Mapping[str, Any] | None = None,
    shares: Sequence[float] = SHARES,
    weak: Sequence[str] = (),
) -> Finding:
    """Statistics of the scores. The verdict is of ``score`` alone; the others' best p-value, times their number, is told.

    control: AUC of each score where the answer is known, "" that of the attack as a whole. shares: of the guesses of the
    one-run bound. weak: why an attack that finds nothing would have shown nothing.
    """
    attacks = {score: attacks[score], **attacks}
    everything = [*attacks.values(), *blind.values()]
    inside, outside = (np.stack([pair[side] for pair in everything]) for side in (0, 1))
    n1, n0 = inside.shape[1], outside.shape[1]
    auc, covariance = delong(inside, outside)
    tails = [nulls.auc_null(inside[i], outside[i]) for i in range(len(attacks))]
    p_values = [p for p, _ in tails]
    p, p_any = p_values[0], min(1.0, len(attacks) * min(p_values))
    blind_z, blind_auc, gap, gap_sd = _against_blind(auc, covariance, len(attacks), list(blind), n1, n0)
    rng = np.random.default_rng(seed)
    shuffled = shuffled_auc(inside[0], outside[0], rng)
    positive = control[""]

    problems = []
    if min(n1, n0) < LEAST:
        problems.append(f"fewer than {LEAST} members or non-members")
    if positive < 0.9:
        problems.append("the positive control failed: the attack misses an over-fitted model's members")
    if abs(shuffled - 0.5) > 4 * nulls.auc_sd(n1, n0):
        problems.append("the negative control failed: shuffled labels are told apart")
    if min(p, p_any) < 0.05 and blind_z > 2.807 and gap < 1.96 * gap_sd:  # 2.807 sd: p = .005 on two sides
        problems.append("a blind baseline does as well: members and non-members differ without any model")
    elif blind_z > 2.807:
        weak = [
            *weak,
            "a blind baseline tells members from non-members, or the other way round: they differ without any model",
        ]
    verdict = verdict_of(p, problems)
    if verdict == "no leak found" and weak:
        verdict, problems = "inconclusive", [*problems, *weak]
    same_mean, same_p95 = nulls.same_set_accuracy(n1, n0)
    fpr, tpr = roc(inside[0], outside[0])
    halves = rng.permutation(n1), rng.permutation(n0)
    table = {
        attack: {
            "auc": float(auc[i]),
            "interval": auc_interval(auc[i], covariance[i, i], n1, n0),
            "p": p_values[i],
            "positive": control.get(attack),
            **held_out(inside[i], outside[i], *halves),
            "tpr_at_fpr_0.01": tpr_at_fpr(inside[i], outside[i], 0.01),
            "tpr_at_fpr_0.001": tpr_at_fpr(inside[i], outside[i], 0.001),
        }
        for i, attack in enumerate(attacks)
    }
    once = one_run(inside[0], outside[0], shares=shares, seed=seed)
    return Finding(
        attack=name,
        score=float(auc[0]),
        unit_of_score="AUC",
        interval=table[score]["interval"],
        null={
            "mean": 0.5,
            "p95": tails[0][1],
            "p": p,
            "p_any": p_any,
            "accuracy_p95": nulls.split_accuracy_p95(n1 - n1 // 2, n0 - n0 // 2),
            "accuracy_same_set_mean": same_mean,
            "accuracy_same_set_p95": same_p95,
        },
        controls={"positive": positive, "negative": shuffled, "blind": blind_auc},
        verdict=verdict,
        detail={
            "members": n1,
            "nonmembers": n0,
            "verdict_of": score,
            **{key: table[score][key] for key in ("accuracy", "accuracy_interval", "eps_lower")},
            "eps_lower_one_run": once.eps(),
            "one_run": once.to_json(),
            "accuracy_same_set": best_threshold(inside[0], outside[0])[1],
            "tpr_at_fpr_0.01": table[score]["tpr_at_fpr_0.01"],
            "tpr_at_fpr_0.001": table[score]["tpr_at_fpr_0.001"],
            "attacks": table,
            "multiplicity": len(attacks),
            "blind": {attack: float(a) for attack, a in zip(blind, auc[len(attacks) :], strict=True)},
            "blind_gap": gap,
            "blind_gap_interval": (gap - 1.96 * gap_sd, gap + 1.96 * gap_sd),
            "roc_fpr": fpr.tolist(),
            "roc_tpr": tpr.tolist(),
            **(extra or {}),
        },
        notes=tuple(problems),
    )


def _against_blind(
    auc: Scores, covariance: Scores, first: int, names: Sequence[str], n1: int, n0: int
) -> tuple[float, float, float, float]:
    """Of the best blind baseline, in whichever direction it works: how many sd it is from chance, its AUC, and the attack's
    lead over it with its sd."""
    distance = np.abs(auc[first:] - 0.5) / [blind_sd(name, n1, n0) for name in names]
    best = first + int(np.argmax(distance))
    sign = 1.0 if auc[best] >= 0.5 else -1.0
    blind = 0.5 + sign * (auc[best] - 0.5)
    variance = covariance[0, 0] + covariance[best, best] - 2 * sign * covariance[0, best]
    return float(distance.max()), float(blind), float(auc[0] - blind), float(np.sqrt(max(variance, 0.0)))
