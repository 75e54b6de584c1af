"""What is left of a mechanism's statements once evidence is held against what they rest on (docs/guarantees.md §6).

A mechanism says what would hold under its conditions. Whether labels, groups or the corpus's size contradict these is the
same question for all of them, and is asked here alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import EMPTY, Assumption, Guarantee, Status, round_up
from taciturn.privacy.guarantees.premises import COVERED, WHOLE, covered, whole
from taciturn.privacy.guarantees.statements import miss_rates
from taciturn.privacy.guarantees.theorems import labels_needed

NARROWED = " (only what "
"""Begins what a unit is narrowed by where a wider claim is refuted."""

DRAWN_DELTA = 0.1
"""A statement about a secret drawn at random that leaves out a larger chance than this is none. It does not depend on how
many records there are: the chance is of the draw, not of a record that is given away."""


def check_against_evidence(claims: Iterable[Guarantee], evidence: Evidence) -> Iterator[Guarantee]:
    """Each claim, or what stands in its place: ``none`` where its δ is too large to promise anything, ``refuted`` where
    evidence contradicts a condition, followed by the claim about what policies do mark, which needs no such condition."""
    for each in claims:
        if each.status in EMPTY or each.status == "estimate":
            yield each
        elif too_likely := _too_likely(each, evidence):
            yield emptied(each, "none", too_likely)
        elif conditions := [condition for condition in each.assumptions if contradictions(condition, evidence)]:
            yield refuted(each, contradictions(conditions[0], evidence))
            yield _narrowed(each, conditions, evidence)
        else:
            yield each


def contradictions(condition: Assumption, evidence: Evidence) -> list[str]:
    """What speaks against a condition; empty where nothing does. The two that counts can contradict say that no secret is
    left in what is read without noise, of all secrets or of one group's. Of all, each label and each group can show one that
    is; of a group only its own count can, as labels do not say whose secrets they are."""
    left = {name: k for name, k in evidence.open_groups if k}
    if condition in (COVERED, WHOLE):
        found = [unmarked(evidence)] if evidence.missed_by_both else []
    else:
        left = {name: k for name, k in left.items() if condition in (covered(name), whole(name))}
        found = []
    part = ", or a part of one" * evidence.skeletons
    return found + [
        f"{k} records that are read without noise still hold a secret of the group '{name}'{part}"
        for name, k in left.items()
    ]


def unmarked(evidence: Evidence) -> str:
    """How many labelled secrets neither policy covers, with the upper bound of their share.

    >>> unmarked(Evidence(1e-5, labelled=21, missed_by_pi=11, missed_by_both=11))
    '11 of 21 labelled secrets are marked by no policy: at most 71.5 % with 95 % confidence'
    """
    in_full = " whole" * evidence.skeletons  # half a mark covers nothing where the rest stands in a skeleton
    told = f"labelled secrets are marked{in_full} by no policy"
    if evidence.label_unit == "record":
        told = f"labelled records with a secret hold one that no policy marks{in_full}"
    bound = round_up(100 * miss_rates(evidence)["delta2"])
    sure = f"{100 * evidence.confidence:g} % confidence"
    return f"{evidence.missed_by_both} of {evidence.labelled} {told}: at most {bound} % with {sure}"


def refuted(claim: Guarantee, why: Iterable[str]) -> Guarantee:
    """The claim as what it is once a condition of it is known to be false: no promise."""
    return emptied(claim, "refuted", "; ".join(why))


def emptied(claim: Guarantee, status: Status, reason: str) -> Guarantee:
    """The claim as none, or refuted, for a reason."""
    detail = {**claim.detail, **({"epsilon_otherwise": claim.epsilon} if claim.finite else {})}
    return replace(claim, epsilon=math.inf, status=status, assumptions=(), reason=reason, detail=detail)


def _narrowed(claim: Guarantee, false: list[Assumption], evidence: Evidence) -> Guarantee:
    rest = tuple(each for each in claim.assumptions if each not in false)
    wholes = {WHOLE, *(whole(name) for name, _ in evidence.open_groups)}
    skeletons = "the policies mark whole, with the same skeleton once it is masked"
    marked = "a policy marks" if wholes.isdisjoint(false) else skeletons
    status: Status = "proved" if all(each.enforced for each in rest) else "conditional"
    rates = miss_rates(evidence)
    return replace(
        claim,
        unit=f"{claim.unit}{NARROWED}{marked})",
        status=claim.status if claim.status == "published-claim" else status,
        assumptions=rest,
        reason="; ".join([*([claim.reason] if claim.reason else []), *contradictions(false[0], evidence)]),
        detail={**claim.detail, **({"unmarked_at_most": rates["delta2"]} if rates else {})},
    )


def _too_likely(claim: Guarantee, evidence: Evidence) -> str:
    """Why the chance that the claim leaves out is too large for one; "" where it is not."""
    if claim.notion == "bayesian-confidentiality":
        fails = claim.detail.get("bounds_fail", 0.0)
        if fails > DRAWN_DELTA + 1e-9:
            return (
                f"bounds that fail for {round_up(100 * fails)} % of samples promise nothing "
                f"(above {100 * DRAWN_DELTA:g} %): take a higher confidence"
            )
        if claim.delta <= DRAWN_DELTA:
            return ""
        needed = labels_needed(max(DRAWN_DELTA - evidence.delta, 1e-9), confidence=evidence.confidence)
        return (
            f"what holds apart from a chance of {round_up(100 * claim.delta)} % promises nothing "
            f"(above {100 * DRAWN_DELTA:g} %); {needed} labels without a miss would be enough"
        )
    if evidence.protected and claim.delta >= 1 / evidence.protected:
        return (
            f"δ = {round_up(claim.delta)} is not below one over the {evidence.protected} units that noise protects: to "
            "publish one of them whole would keep such a promise"
        )
    return ""
