"""Membership inference: can one tell which records a model was trained on? (CRT A.5; Carlini et al. 2021)

The verdict is of one score, named before: the loss, or its difference to reference models. The other scores of
``taciturn.auditing.scores`` stand in a table beside it. Members and non-members must come from one random split or one
generator, else the attack measures the difference between two sources: the blind baselines, which never see the model,
are there to show that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from taciturn.auditing import nulls
from taciturn.auditing.blind import blind_scores, blind_sd
from taciturn.auditing.controls import overfitted, positive_control
from taciturn.auditing.finding import Finding, judge
from taciturn.auditing.onerun import one_run
from taciturn.auditing.roc import auc_interval, auc_p, best_threshold, delong, held_out, roc, shuffled_auc, tpr_at_fpr
from taciturn.auditing.scores import Model, Scores, membership_scores, read
from taciturn.errors import UsageError

LEAST = 20
"""Fewest members and non-members for a verdict."""

GROUPS = 1000
"""Groups of members, and of non-members, that CRT A.5 draws."""

Score = Literal["loss", "reference"]
Pair = tuple[Scores, Scores]
"""Scores of the members and of the non-members."""


def loss_auc(model: Any, tokenizer: Any, members: Sequence[str], nonmembers: Sequence[str]) -> float:
    """AUC of the loss attack, and nothing else."""
    inside, outside = read(model, tokenizer, members).loss, read(model, tokenizer, nonmembers).loss
    auc, _ = delong(-inside[None], -outside[None])
    return float(auc[0])


def membership(
    model: Any,
    tokenizer: Any,
    members: Sequence[str],
    nonmembers: Sequence[str],
    *,
    reference: Model | None = None,
    references: Sequence[Model] = (),
    population: Sequence[str] | None = None,
    score: Score = "loss",
    seed: int = 0,
) -> Finding:
    """AUC of membership attacks on single records.

    members: texts as the model was trained on them (after redaction); nonmembers: texts of the same kind it never saw.
    Repeated texts count once, and a non-member equal to a member is dropped. reference, references: (model, tokenizer) of
    models trained without the members and the non-members, for the scores "reference" and, with a ``population`` of
    further texts, "rmia". score: the one the verdict is of. Raises UsageError when either list is empty, and for a score
    that needs reference models without any.
    """
    inside, outside = _distinct(members, nonmembers)
    records = _scores((model, tokenizer), _references(reference, references, score), population, inside, outside)
    return _finding("membership", records, blind_scores(inside, outside, seed), seed, score)


def group_membership(
    model: Any,
    tokenizer: Any,
    members: Sequence[str],
    nonmembers: Sequence[str],
    *,
    group_size: int = 20,
    reference: Model | None = None,
    references: Sequence[Model] = (),
    population: Sequence[str] | None = None,
    score: Score = "loss",
    seed: int = 0,
) -> Finding:
    """AUC of the same attacks on groups of records that are all members or all not (CRT A.5: 20 at a time).

    Groups are disjoint random batches, so that they are independent; what does not fill a group is left out. A group's
    score is the sum over its records: of each score, and of the perplexities as in the paper ("perplexity"). The paper's
    1000 + 1000 groups of 20 out of 1000 + 1000 records overlap; what they give is in ``detail["overlapping"]``, without an
    interval, since overlapping groups are not independent.
    """
    inside, outside = _distinct(members, nonmembers)
    if min(len(inside), len(outside)) < 2 * group_size:
        raise UsageError(
            f"group membership: expected at least two groups of {group_size} on each side, found {len(inside)} "
            f"different members and {len(outside)} different non-members"
        )
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(n)[: n // group_size * group_size] for n in (len(inside), len(outside))]
    drawn = [rng.integers(n, size=GROUPS * group_size) for n in (len(inside), len(outside))]

    def grouped(pair: Pair, members_of: Sequence[NDArray[np.int64]]) -> Pair:
        a, b = (scores[rows].reshape(-1, group_size).sum(1) for scores, rows in zip(pair, members_of, strict=True))
        return a, b

    records = _scores((model, tokenizer), _references(reference, references, score), population, inside, outside)
    records["perplexity"] = (-np.exp(-records["loss"][0]), -np.exp(-records["loss"][1]))
    groups = {name: grouped(pair, orders) for name, pair in records.items()}
    blind = {name: grouped(pair, orders) for name, pair in blind_scores(inside, outside, seed).items()}
    paper = grouped(records["perplexity"], drawn)
    overlapping = {
        "groups": 2 * GROUPS,
        "auc": float(delong(paper[0][None], paper[1][None])[0][0]),
        "accuracy_same_set": best_threshold(*paper)[1],
    }
    extra = {"group_size": group_size, "overlapping": overlapping}
    return _finding("group-membership", groups, blind, seed, score, extra)


def _references(reference: Model | None, references: Sequence[Model], score: str) -> list[Model]:
    found = [*([reference] if reference is not None else []), *references]
    if score not in ("loss", "reference"):
        raise UsageError(f"membership score {score!r}: expected loss or reference, the two a verdict can be of")
    if score == "reference" and not found:
        raise UsageError(
            "membership score 'reference' needs a reference model, trained without members and non-members"
        )
    return found


def _scores(
    model: Model,
    references: Sequence[Model],
    population: Sequence[str] | None,
    inside: Sequence[str],
    outside: Sequence[str],
) -> dict[str, Pair]:
    """Attack → scores of both sides; higher says member."""
    found = membership_scores(model, [*inside, *outside], references, population)
    return {name: (values[: len(inside)], values[len(inside) :]) for name, values in found.items()}


@lru_cache(maxsize=1)
def _positive_aucs() -> dict[str, float]:
    """AUC of each score that needs no other model on the over-fitted toy: an attack that fails there is broken."""
    toy = overfitted()
    pairs = _scores((toy.model, toy.tokenizer), (), None, toy.members, toy.nonmembers)
    return {name: float(delong(a[None], b[None])[0][0]) for name, (a, b) in pairs.items()}


def _distinct(members: Sequence[str], nonmembers: Sequence[str]) -> tuple[list[str], list[str]]:
    seen = set(members)
    inside, outside = list(dict.fromkeys(members)), [t for t in dict.fromkeys(nonmembers) if t not in seen]
    if not inside or not outside:
        raise UsageError(
            f"membership: expected members and non-members, found {len(inside)} different members and {len(outside)} "
            "different non-members that are not members"
        )
    return inside, outside


def _finding(
    name: str,
    attacks: Mapping[str, Pair],
    blind: Mapping[str, Pair],
    seed: int,
    score: str = "loss",
    extra: Mapping[str, Any] | None = None,
) -> Finding:
    """Statistics of the scores. The verdict is of ``score`` alone; the others' best p-value, times their number, is told."""
    attacks = {score: attacks[score], **attacks}
    everything = [*attacks.values(), *blind.values()]
    inside, outside = (np.stack([pair[side] for pair in everything]) for side in (0, 1))
    n1, n0 = inside.shape[1], outside.shape[1]
    auc, covariance = delong(inside, outside)
    p_values = [auc_p(a, n1, n0) for a in auc[: len(attacks)]]
    p, p_any = p_values[0], min(1.0, len(attacks) * min(p_values))
    blind_z, blind_auc, gap, gap_sd = _against_blind(auc, covariance, len(attacks), list(blind), n1, n0)
    rng = np.random.default_rng(seed)
    shuffled = shuffled_auc(inside[0], outside[0], rng)
    positive = positive_control().auc

    problems = []
    if min(n1, n0) < LEAST:
        problems.append(f"fewer than {LEAST} members or non-members")
    if positive < 0.9:
        problems.append("the positive control failed: the attack misses an over-fitted model's members")
    if abs(shuffled - 0.5) > 4 * nulls.auc_sd(n1, n0):
        problems.append("the negative control failed: shuffled labels are told apart")
    if min(p, p_any) < 0.05 and blind_z > 2.807 and gap < 1.96 * gap_sd:  # 2.807 sd: p = .005 on two sides
        problems.append("a blind baseline does as well: members and non-members differ without any model")
    same_mean, same_p95 = nulls.same_set_accuracy(n1, n0)
    fpr, tpr = roc(inside[0], outside[0])
    halves = rng.permutation(n1), rng.permutation(n0)
    table = {
        attack: {
            "auc": float(auc[i]),
            "interval": auc_interval(auc[i], covariance[i, i], n1, n0),
            "p": p_values[i],
            "positive": _positive_aucs().get(attack),
            **held_out(inside[i], outside[i], *halves),
            "tpr_at_fpr_0.01": tpr_at_fpr(inside[i], outside[i], 0.01),
            "tpr_at_fpr_0.001": tpr_at_fpr(inside[i], outside[i], 0.001),
        }
        for i, attack in enumerate(attacks)
    }
    once = one_run(inside[0], outside[0], seed=seed)
    return Finding(
        attack=name,
        score=float(auc[0]),
        unit_of_score="AUC",
        interval=table[score]["interval"],
        null={
            "mean": 0.5,
            "p95": 0.5 + 1.6449 * nulls.auc_sd(n1, n0),
            "p": p,
            "p_any": p_any,
            "accuracy_p95": nulls.split_accuracy_p95(n1 - n1 // 2, n0 - n0 // 2),
            "accuracy_same_set_mean": same_mean,
            "accuracy_same_set_p95": same_p95,
        },
        controls={"positive": positive, "negative": shuffled, "blind": blind_auc},
        verdict=judge(p, problems),
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
