"""Membership inference by loss: can one tell which records a model was trained on? (CRT A.5; Carlini et al. 2021)

The attack scores a record by its perplexity; low means member. Members and non-members must come from one random split
or one generator, else the attack measures the difference between two sources: the blind baseline, which never sees the
model, is there to show that.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.auditing import nulls
from taciturn.auditing.bounds import clopper_pearson, eps_lower
from taciturn.auditing.controls import positive_control
from taciturn.auditing.finding import Finding, judge
from taciturn.auditing.roc import auc_interval, auc_p, best_threshold, delong, roc, tpr_at_fpr
from taciturn.errors import UsageError
from taciturn.models.hf import context_length
from taciturn.models.loss import score

LEAST = 20
"""Fewest members and non-members for a verdict."""

Scores = NDArray[np.float64]
Pair = tuple[Scores, Scores]
"""Scores of the members and of the non-members."""


def loss_auc(model: Any, tokenizer: Any, members: Sequence[str], nonmembers: Sequence[str]) -> float:
    """AUC of the loss attack, and nothing else."""
    auc, _ = delong(-_loss(model, tokenizer, members)[None], -_loss(model, tokenizer, nonmembers)[None])
    return float(auc[0])


def membership(
    model: Any,
    tokenizer: Any,
    members: Sequence[str],
    nonmembers: Sequence[str],
    *,
    reference: tuple[Any, Any] | None = None,
    seed: int = 0,
) -> Finding:
    """AUC of the loss attack on single records.

    members: texts as the model was trained on them (after redaction); nonmembers: texts of the same kind it never saw.
    Repeated texts count once, and a non-member equal to a member is dropped. reference: (model, tokenizer) of a model
    trained without the members; then the loss difference is a further attack. A leak is called on the smallest p-value
    over the attacks, times their number. Raises UsageError when either list is empty.
    """
    inside, outside = _distinct(members, nonmembers)
    records = _scores(model, tokenizer, reference, inside, outside)
    return _finding("membership", records, _blind(inside, outside), seed)


def group_membership(
    model: Any,
    tokenizer: Any,
    members: Sequence[str],
    nonmembers: Sequence[str],
    *,
    group_size: int = 20,
    reference: tuple[Any, Any] | None = None,
    seed: int = 0,
) -> Finding:
    """AUC of the loss attack on groups of records that are all members or all not (CRT A.5: 20 at a time).

    Groups are disjoint random batches, so that they are independent; what does not fill a group is left out. A group's
    score is the sum over its records: of the log-perplexities ("loss"), and of the perplexities as in the paper
    ("perplexity").
    """
    inside, outside = _distinct(members, nonmembers)
    rng = np.random.default_rng(seed)
    orders = rng.permutation(len(inside)), rng.permutation(len(outside))
    if min(len(inside), len(outside)) < 2 * group_size:
        raise UsageError(
            f"group membership: expected at least two groups of {group_size} on each side, found {len(inside)} "
            f"different members and {len(outside)} different non-members"
        )

    def grouped(pair: Pair) -> Pair:
        a, b = (
            scores[order][: len(order) // group_size * group_size].reshape(-1, group_size).sum(1)
            for scores, order in zip(pair, orders, strict=True)
        )
        return a, b

    records = _scores(model, tokenizer, reference, inside, outside)
    records["perplexity"] = (-np.exp(-records["loss"][0]), -np.exp(-records["loss"][1]))
    groups = {name: grouped(pair) for name, pair in records.items()}
    blind = {name: grouped(pair) for name, pair in _blind(inside, outside).items()}
    return _finding("group-membership", groups, blind, seed, {"group_size": group_size})


def _scores(
    model: Any, tokenizer: Any, reference: tuple[Any, Any] | None, inside: Sequence[str], outside: Sequence[str]
) -> dict[str, Pair]:
    """Attack → scores of both sides; higher says member."""
    a, b = _loss(model, tokenizer, inside), _loss(model, tokenizer, outside)
    pairs = {"loss": (-a, -b), "zlib": (-a / _zlib(inside), -b / _zlib(outside))}
    if reference is not None:
        pairs["reference"] = (_loss(*reference, inside) - a, _loss(*reference, outside) - b)
    return pairs


def _loss(model: Any, tokenizer: Any, texts: Sequence[str]) -> Scores:
    """Log-perplexity of each text: mean negative log-likelihood per target, 0 where a text has no target."""
    nll, count = score(model, tokenizer, texts, context_length(model))
    return np.asarray(nll / np.maximum(count, 1))


def _zlib(texts: Sequence[str]) -> Scores:
    return np.array([len(zlib.compress(text.encode("utf-8", "surrogatepass"))) for text in texts], float)


def _blind(inside: Sequence[str], outside: Sequence[str]) -> dict[str, Pair]:
    def length(texts: Sequence[str]) -> Scores:
        return np.array([len(text) for text in texts], float)

    return {"length": (length(inside), length(outside)), "zlib": (_zlib(inside), _zlib(outside))}


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
    name: str, attacks: Mapping[str, Pair], blind: Mapping[str, Pair], seed: int, extra: Mapping[str, Any] | None = None
) -> Finding:
    """Statistics of the scores. The first attack, "loss", is the score; the others share the verdict's p-value."""
    everything = [*attacks.values(), *blind.values()]
    inside, outside = (np.stack([pair[side] for pair in everything]) for side in (0, 1))
    n1, n0 = inside.shape[1], outside.shape[1]
    auc, covariance = delong(inside, outside)
    intervals = [auc_interval(a, v, n1, n0) for a, v in zip(auc, covariance.diagonal(), strict=True)]
    p_values = [auc_p(a, n1, n0) for a in auc[: len(attacks)]]
    p_any = min(1.0, len(attacks) * min(p_values))
    blind_auc, gap, gap_sd = _against_blind(auc, covariance, len(attacks))
    rng = np.random.default_rng(seed)
    shuffled = _shuffled_auc(inside[0], outside[0], rng)
    positive = positive_control().auc

    problems = []
    if min(n1, n0) < LEAST:
        problems.append(f"fewer than {LEAST} members or non-members")
    if positive < 0.9:
        problems.append("the positive control failed: the attack misses an over-fitted model's members")
    if abs(shuffled - 0.5) > 4 * nulls.auc_sd(n1, n0):
        problems.append("the negative control failed: shuffled labels are told apart")
    if p_any < 0.05 and auc_p(blind_auc, n1, n0) < 0.005 and gap < 1.96 * gap_sd:
        problems.append("a blind baseline does as well: members and non-members differ without any model")
    same_mean, same_p95 = nulls.same_set_accuracy(n1, n0)
    fpr, tpr = roc(inside[0], outside[0])
    held_out = _held_out(inside[0], outside[0], rng)
    return Finding(
        attack=name,
        score=float(auc[0]),
        unit_of_score="AUC",
        interval=intervals[0],
        null={
            "mean": 0.5,
            "p95": 0.5 + 1.6449 * nulls.auc_sd(n1, n0),
            "p": p_values[0],
            "p_any": p_any,
            "accuracy_p95": held_out.pop("null_p95"),
            "accuracy_same_set_mean": same_mean,
            "accuracy_same_set_p95": same_p95,
        },
        controls={"positive": positive, "negative": shuffled, "blind": blind_auc},
        verdict=judge(p_any, problems),
        detail={
            "members": n1,
            "nonmembers": n0,
            **held_out,
            "accuracy_same_set": best_threshold(inside[0], outside[0])[1],
            "tpr_at_fpr_0.01": tpr_at_fpr(inside[0], outside[0], 0.01),
            "tpr_at_fpr_0.001": tpr_at_fpr(inside[0], outside[0], 0.001),
            "attacks": {
                attack: {"auc": float(auc[i]), "interval": intervals[i], "p": p_values[i]}
                for i, attack in enumerate(attacks)
            },
            "blind": {attack: float(a) for attack, a in zip(blind, auc[len(attacks) :], strict=True)},
            "blind_gap": gap,
            "blind_gap_interval": (gap - 1.96 * gap_sd, gap + 1.96 * gap_sd),
            "roc_fpr": fpr.tolist(),
            "roc_tpr": tpr.tolist(),
            **(extra or {}),
        },
        notes=tuple(problems),
    )


def _against_blind(auc: Scores, covariance: Scores, first: int) -> tuple[float, float, float]:
    """AUC of the better blind baseline (in whichever direction it works), and the attack's lead over it with its sd."""
    best = first + int(np.argmax(np.abs(auc[first:] - 0.5)))
    sign = 1.0 if auc[best] >= 0.5 else -1.0
    blind = 0.5 + sign * (auc[best] - 0.5)
    variance = covariance[0, 0] + covariance[best, best] - 2 * sign * covariance[0, best]
    return float(blind), float(auc[0] - blind), float(np.sqrt(max(variance, 0.0)))


def _held_out(inside: Scores, outside: Scores, rng: np.random.Generator) -> dict[str, Any]:
    """Balanced accuracy and ε bound on one random half, at thresholds chosen on the other."""
    a, b = rng.permutation(len(inside)), rng.permutation(len(outside))
    half1, half0 = len(a) // 2, len(b) // 2
    if not half1 or not half0:
        return {"accuracy": None, "accuracy_interval": None, "eps_lower": 0.0, "null_p95": 1.0}
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
        "null_p95": nulls.split_accuracy_p95(len(test1), len(test0)),
    }


def _bound_threshold(inside: Scores, outside: Scores) -> float:
    """The threshold, among 50 quantiles, with the largest ε bound on these records."""
    levels = np.unique(np.quantile(np.concatenate([inside, outside]), np.linspace(0.02, 0.98, 50)))
    bounds = [eps_lower(int((inside >= t).sum()), len(inside), int((outside >= t).sum()), len(outside)) for t in levels]
    return float(levels[int(np.argmax(bounds))])


def _shuffled_auc(inside: Scores, outside: Scores, rng: np.random.Generator) -> float:
    mixed = rng.permutation(np.concatenate([inside, outside]))
    auc, _ = delong(mixed[None, : len(inside)], mixed[None, len(inside) :])
    return float(auc[0])
