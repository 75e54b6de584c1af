"""Membership inference: can one tell which records a model was trained on? (CRT A.5; Carlini et al. 2021)

The verdict is of one score, named before: the loss, or its difference to reference models. The other scores of
``taciturn.auditing.membership.scores`` stand in a table beside it. Members and non-members must come from one random split
or one generator, else the attack measures the difference between two sources: the blind baselines, which never see the
model, are there to show that. Non-members that are near-copies of members hide a leak: their share is measured, and above a
fifth an attack that finds nothing is inconclusive.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from taciturn.auditing.controls import overfitted
from taciturn.auditing.finding import Finding
from taciturn.auditing.membership.blind import blind_scores
from taciturn.auditing.membership.overlap import near_copies, overlap
from taciturn.auditing.membership.roc import best_threshold, delong
from taciturn.auditing.membership.scores import Model, membership_scores
from taciturn.auditing.membership.statistics import Pair, finding_from_scores
from taciturn.errors import UsageError

GROUPS = 1000
"""Groups of members, and of non-members, that CRT A.5 draws."""

Score = Literal["loss", "reference"]


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
    Repeated texts count once, and what is on both sides is dropped from both. reference, references: (model, tokenizer) of
    models trained without the members and the non-members, for the scores "reference" and, with a ``population`` of
    further texts, "rmia". score: the one the verdict is of. Raises UsageError when either list is empty, and for a score
    that needs reference models without any.
    """
    inside, outside = distinct(members, nonmembers)
    records = _scores((model, tokenizer), _references(reference, references, score), population, inside, outside)
    alike = overlap(inside, outside)
    blind = blind_scores(inside, outside, seed)
    return finding_from_scores(
        "membership", records, blind, _control(), seed, score, {"overlap": alike}, weak=near_copies(alike)
    )


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
    inside, outside = distinct(members, nonmembers)
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
    alike = overlap(inside, outside)
    extra = {"group_size": group_size, "overlapping": overlapping, "overlap": alike}
    return finding_from_scores(
        "group-membership", groups, blind, _control(), seed, score, extra, weak=near_copies(alike)
    )


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


def _control() -> dict[str, float]:
    aucs = _positive_aucs()
    return {"": aucs["loss"], **aucs}


def distinct(members: Sequence[str], nonmembers: Sequence[str]) -> tuple[list[str], list[str]]:
    """The different texts of either side that are not on the other. Raises UsageError when there are none.

    A text on both sides tells nothing, and to drop it from one alone would leave that side the rarer texts, which any
    model finds less likely. Of copies with fair coins of their own, all are in as often as all are out.
    """
    both = set(members) & set(nonmembers)
    inside, outside = ([t for t in dict.fromkeys(side) if t not in both] for side in (members, nonmembers))
    if not inside or not outside:
        raise UsageError(
            f"membership: expected members and non-members, found {len(inside)} different members and {len(outside)} "
            f"different non-members, without {len(both)} texts that are on both sides"
        )
    return inside, outside
