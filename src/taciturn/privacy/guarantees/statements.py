"""Statements that several mechanisms make: pure functions of the ledger's counts and the evidence. Sections refer to
docs/guarantees.md."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from taciturn.privacy.accounting.accountant import Profile, compose
from taciturn.privacy.accounting.averaged_curves import bayesian_curve
from taciturn.privacy.accounting.events import Event
from taciturn.privacy.accounting.largest_group import largest_group
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Assumption, Guarantee, Notion
from taciturn.privacy.guarantees.premises import (
    APART,
    COVERED,
    DRAWN_SECRET,
    GROUP,
    NOISED,
    SECRET,
    SIZE,
    STABLE,
    STANDING,
    UNITS,
    WHOLE,
    alignment,
    bounds_fail,
    covered,
    few,
    labelled_sample,
    spared,
    table,
    user_unit,
    whole,
)
from taciturn.privacy.guarantees.status import equal_worlds, faults, no_guarantee, with_status
from taciturn.privacy.guarantees.theorems import bayesian, group, labels_needed, recall_bound

Counts = Mapping[Event, int]


def confidentiality(counts: Counts, evidence: Evidence, *, conditional: bool) -> Iterator[Guarantee]:
    """Theorem 8 in its three parts, from the substitution curve."""
    profile = compose(counts, "substitution")
    base = (*NOISED, *table(profile, evidence), *((STABLE,) if evidence.redacted else ()), *alignment(evidence))
    rests = (*base, *((COVERED,) if conditional else ()), *((WHOLE,) if evidence.skeletons else ()))
    rests += spared(evidence) if conditional or evidence.skeletons else ()
    rests += (APART,) if any(event.one_sided for event, _ in profile.shown) else ()
    rests += (STANDING,) if profile.copies else ()
    rare = few(profile.copies)
    yield single(profile, evidence, rests, SECRET + rare)
    yield from named_groups(profile, evidence, rests, rare)
    if evidence.records_per_user:
        size = evidence.records_per_user
        yield grouped(profile, evidence, rests, f"all secrets of one user in at most {size} records{rare}", size)
    if profile.copies:
        why = "which values stay where they stand is known only after the counts, so miss rates say nothing of the rest"
        yield no_guarantee("bayesian-confidentiality", DRAWN_SECRET, "substitution", evidence, why)
    elif evidence.redacted:
        yield drawn(profile, evidence, base, conditional=conditional)


def copies(profile: Profile) -> dict[str, float]:
    """The number in :func:`few`, for whoever holds an attack against a claim."""
    return {"copies": float(profile.copies)} if profile.copies else {}


def single(profile: Profile, evidence: Evidence, assumptions: tuple[Assumption, ...], unit: str = SECRET) -> Guarantee:
    epsilon = profile.epsilon(evidence.delta)
    detail = {"spans_not_stable": float(evidence.spans_not_stable)} | copies(profile)
    if evidence.redacted and evidence.order == "redact-first" and not faults(evidence):
        detail["epsilon_if_detected"] = 0.0
    if math.isfinite(epsilon):
        detail["largest_group_within_epsilon_10"] = float(largest_group(profile, evidence.delta, most=1000))
    return with_status(
        "confidentiality", unit, "substitution", epsilon, evidence.delta, "CRT Theorem 8.1 (guarantees.md §3.1)",
        assumptions, evidence, curve=profile.curve, detail=detail, reason=profile.reason, order_matters=evidence.redacted,
    )  # fmt: skip


def named_groups(
    profile: Profile, evidence: Evidence, assumptions: tuple[Assumption, ...], rare: str = ""
) -> Iterator[Guarantee]:
    """Each named group, under conditions on its own secrets where these were counted in what is read without noise.

    Masking the secrets of S changes the records that hold one of them and no other, so what the proof asks of public records
    and skeletons it asks of these records alone (guarantees.md §3.2): a secret outside S that no policy marks, as labels may
    show, is read without noise in both worlds and contradicts nothing. ``evidence.open_groups`` is what does.
    """
    for name, size in evidence.groups:
        own = {COVERED: covered(name), WHOLE: whole(name)} if name in dict(evidence.open_groups) else {}
        rests = tuple(own.get(each, each) for each in assumptions)
        yield grouped(profile, evidence, rests, f"{GROUP} '{name}' in {size} records{rare}", size)


def grouped(
    profile: Profile, evidence: Evidence, assumptions: tuple[Assumption, ...], unit: str, size: int
) -> Guarantee:
    detail = {"k": float(size)} | copies(profile)
    epsilon = 0.0 if profile.reason is None else math.inf
    if size and profile.reason is None:
        bound = group(profile, size, evidence.delta)
        epsilon = bound.epsilon
        detail |= {"epsilon_blackbox": bound.blackbox, "epsilon_tight": bound.tight}
    return with_status(
        "group-confidentiality", unit, "substitution", epsilon, evidence.delta if size else 0.0,
        "CRT Theorem 8.2, corrected (guarantees.md §3.2)", assumptions, evidence,
        curve=profile.for_group(size).curve if size else equal_worlds,
        detail=detail, reason=profile.reason, order_matters=evidence.redacted,
    )  # fmt: skip


def drawn(profile: Profile, evidence: Evidence, assumptions: tuple[Assumption, ...], *, conditional: bool) -> Guarantee:
    """Theorem 8.3 at the upper bounds of γ and δ₂. Where δ₂ alone exceeds δ, at δ + δ₂ and saying so."""
    theorem = "CRT Theorem 8.3, both directions (guarantees.md §3.3)"
    rates = miss_rates(evidence)
    needed = labels_needed(evidence.delta, confidence=evidence.confidence)
    if not rates:
        why = f"no secrets were labelled, so miss rates are unknown; δ₂ ≤ δ takes {needed} labels"
        return no_guarantee("bayesian-confidentiality", DRAWN_SECRET, "substitution", evidence, why)
    gamma, delta2 = rates["gamma"], rates["delta2"] if conditional else 0.0
    total = evidence.delta if delta2 < evidence.delta else evidence.delta + delta2
    bound = bayesian(profile, gamma, delta2, min(total, 1 - 1e-12))
    detail = rates | {
        "delta2": delta2,
        "epsilon_forward": bound.forward,
        "epsilon_reverse": bound.reverse,
        "epsilon_if_missed": profile.epsilon(evidence.delta),
        "labels_needed_for_delta": float(needed),
    }
    bounds = 2 if conditional else 1
    detail["bounds_fail"] = bounds_fail(evidence, bounds)
    sample = labelled_sample(evidence, bounds)
    return with_status(
        "bayesian-confidentiality", DRAWN_SECRET, "substitution", bound.epsilon, bound.delta, theorem,
        (*assumptions, sample), evidence, detail=detail, reason=profile.reason, order_matters=True,
        curve=lambda _: bayesian_curve(profile.curve(evidence.delta), gamma, delta2),
    )  # fmt: skip


def record_privacy(counts: Counts, evidence: Evidence, unit: str) -> Iterator[Guarantee]:
    """Add/remove differential privacy of the records that only noisy steps read (§1); per user by group privacy."""
    profile = compose(counts, "add-remove")
    assumptions = (*NOISED, SIZE)
    theorem = "Poisson-sampled Gaussian mechanism (guarantees.md §1)"
    epsilon = profile.epsilon(evidence.delta)
    yield with_status(
        "dp", unit, "add-remove", epsilon, evidence.delta, theorem, assumptions, evidence,
        curve=profile.curve, reason=profile.reason,
    )  # fmt: skip
    size = evidence.records_per_user
    if size:
        group_unit = user_unit(unit, size)
        together = profile.for_group(size)
        yield with_status(
            "dp", group_unit, "add-remove", together.epsilon(evidence.delta), evidence.delta, theorem, assumptions, evidence,
            curve=together.curve, detail={"k": float(size)}, reason=profile.reason,
        )  # fmt: skip


def no_record_privacy(evidence: Evidence, unit: str, why: str) -> Iterator[Guarantee]:
    """Nothing about a record's presence, nor then about all records of a user."""
    yield no_guarantee("dp", unit, "add-remove", evidence, why)
    if size := evidence.records_per_user:
        yield no_guarantee("dp", user_unit(unit, size), "add-remove", evidence, why, {"k": float(size)})


def by_units(
    notion: Notion,
    unit: str,
    counts: Counts,
    k: int,
    theorem: str,
    evidence: Evidence,
    *,
    selects: bool = False,
    detail: Mapping[str, float] | None = None,
) -> Guarantee:
    """What ``k`` units more or less cost (§4.3, §4.4); with ``selects``, as many that come in their place."""
    profile = compose(counts, "substitution" if selects else "add-remove", k)
    return with_status(
        notion, unit, "add-remove", profile.epsilon(evidence.delta), evidence.delta, theorem,
        (*NOISED, UNITS), evidence, curve=profile.curve,
        detail={"k": float(k), **(detail or {})}, reason=profile.reason,
    )  # fmt: skip


def miss_rates(evidence: Evidence) -> dict[str, float]:
    """Upper bounds of γ and δ₂; empty without labels."""
    if not evidence.labels or evidence.missed_by_pi is None or evidence.missed_by_both is None:
        return {}
    if evidence.miss_bounds is not None:
        return {"gamma": evidence.miss_bounds[0], "delta2": evidence.miss_bounds[1]}
    return {
        "gamma": recall_bound(evidence.missed_by_pi, evidence.labelled, evidence.confidence, evidence.population),
        "delta2": recall_bound(evidence.missed_by_both, evidence.labelled, evidence.confidence, evidence.population),
    }
