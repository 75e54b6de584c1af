"""A lower bound from an attack against the ε of a certificate: of the same notion, relation and unit, or not at all.

What an attack shows about one record (or about k of them) says nothing about an ε for another unit. A bound for k is
compared with the smallest certified group of at least k; ε grows with the group, so that is fair to the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isclose

from taciturn.auditing.finding import Finding
from taciturn.auditing.lower_bounds.noise_level import MOST, Family, SelectiveSteps, Steps, noise_upper
from taciturn.auditing.lower_bounds.one_run import OneRun
from taciturn.privacy.accounting.event_files import from_json as event_from_json
from taciturn.privacy.accounting.events import (
    Event,
    KindsGaussian,
    NonPrivate,
    PoissonGaussian,
    Relation,
    SelectiveGaussian,
)
from taciturn.privacy.certificates.certificate import Certificate
from taciturn.privacy.guarantees.guarantee import Guarantee, round_up, to_number
from taciturn.privacy.guarantees.premises import DETECTED, GROUP, MISSED, RARE, RECORD, SECRET
from taciturn.privacy.guarantees.refutation import NARROWED

EXCEEDED = "the attack's lower bound is above the certificate's ε: the guarantee does not hold"
UNITS = {
    "confidentiality": ("confidentiality", "group-confidentiality", "sdp"),
    "dp": ("dp",),
    "user-dp": ("user-dp",),
    "uedp": ("uedp",),
}
FAMILY = ("confidentiality", "dp", "user-dp")
"""Notions whose ε follows from the ledger's events alone, by the audited relation and k."""


@dataclass(frozen=True, slots=True)
class Audited:
    """What a bound is of. notion: "confidentiality" (a secret in a record changes; one that the policy misses), "dp" (a
    record comes or goes), "user-dp" (a user does), "uedp" (a user and an entity do, with k units).

    relation: how neighbours differ; k: in how many records at once. detected: whether the policy finds the secrets.
    """

    notion: str
    relation: Relation
    k: int = 1
    detected: bool = False


def statement(audited: Audited, statements: Iterable[Guarantee]) -> Guarantee | None:
    """The statement that a bound can be held against, or None."""
    known = list(statements)
    fitting = [each for each in known if _fits(audited, each)]
    if any(each.status == "refuted" for each in known):  # what was attacked may be what evidence shows to be unmarked
        fitting = [each for each in fitting if audited.detected or not each.unit.startswith(GROUP)]
    return min(fitting, key=lambda each: (each.detail.get("k", 1.0), each.epsilon), default=None)


def _fits(audited: Audited, each: Guarantee) -> bool:
    if each.notion not in UNITS[audited.notion] or each.relation != audited.relation:
        return False
    if each.status in ("estimate", "refuted"):
        return False
    if NARROWED in each.unit and not audited.detected:  # nobody knows whether the policies mark what was attacked
        return False
    if audited.k > each.detail.get("copies", inf):  # what stands in more records than that is not protected
        return False
    k = each.detail.get("k")
    if k is None:  # "published-claim" and "conditional" are claims as well: an attack may refute them
        covered = (SECRET, RECORD, DETECTED if audited.detected else MISSED)
        return audited.k == 1 and (
            each.unit.partition(NARROWED)[0].partition(RARE)[0] in covered or each.notion == "uedp"
        )
    if each.notion == "group-confidentiality":  # of some secrets only, e.g. of those that are detected
        narrower = "that the policy detects" in each.unit and not audited.detected
        return k >= audited.k and not narrower and "all such secrets" not in each.unit
    return k >= audited.k


def compared(
    finding: Finding,
    audited: Audited,
    statements: Sequence[Guarantee],
    bound: Callable[[float], float],
    more: Mapping[str, float] | None = None,
) -> Finding:
    """The finding with the comparison in ``detail["certificate"]``; the verdict is a leak when the bound is above.

    bound: δ → the lower bound on ε at that δ. more: further numbers for that entry. Without a statement to compare with,
    it says what was missing.
    """
    claim = statement(audited, statements)
    about = {"notion": audited.notion, "relation": audited.relation, "k": audited.k}
    if claim is None:
        missing = (
            f"no statement of the certificate is about {audited.notion} by {audited.relation} of {audited.k} at once"
        )
        return replace(finding, detail={**finding.detail, "certificate": {**about, "epsilon": None, "why": missing}})
    low = bound(claim.delta)
    exceeded = low > claim.epsilon
    about |= {
        "statement": claim.label(),
        "epsilon": to_number(claim.epsilon),
        "delta": claim.delta,
        "eps_lower": low,
        "exceeded": exceeded,
        **(more or {}),
    }
    note = f"{EXCEEDED} (at least {low:.3g}, certified {round_up(claim.epsilon)})"
    return replace(
        finding,
        verdict="leak" if exceeded else finding.verdict,
        detail={**finding.detail, "certificate": about},
        notes=(*finding.notes, note) if exceeded else finding.notes,
    )


def against_run(
    finding: Finding, audited: Audited, certificate: Certificate, once: OneRun, confidence: float = 0.95
) -> Finding:
    """The comparison of guesses of one run's coins. Two bounds share the error. A fifth of it is Steinke's, who knows
    nothing of the run but (ε, δ); the rest is that of the ledger's own steps, at the largest noise that the guesses do not
    refute (``noise_at_most``, as a multiple of what the ledger says; taciturn.auditing.lower_bounds.noise_level)."""
    statements = certificate.statements()
    plain, more = 1 - 0.2 * (1 - confidence), 1 - 0.8 * (1 - confidence)
    family = _family(audited, statement(audited, statements), certificate)
    factor = MOST if family is None else noise_upper(once, family, more)

    def bound(delta: float) -> float:
        known = 0.0 if family is None or factor == MOST else family.epsilon(factor, delta)
        return max(once.eps(delta, plain), known)

    more_said = {"confidence": confidence} | ({"noise_at_most": factor} if factor < MOST else {})
    return compared(finding, audited, statements, bound, more_said)


def _family(audited: Audited, claim: Guarantee | None, certificate: Certificate) -> Family | None:
    """The curves that the ledger's noisy steps have; None where the claim does not follow from those alone."""
    noisy: dict[Event, int] = {}
    for row in certificate.ledger_steps:
        event = event_from_json(row["event"])
        if not isinstance(event, NonPrivate):
            noisy[event] = noisy.get(event, 0) + int(row["steps"])
    if claim is None or not claim.finite or not noisy:
        return None
    (first, count), *rest = noisy.items()
    if isinstance(first, SelectiveGaussian) and not rest and audited.k == 1 and claim.notion == "sdp":
        return SelectiveSteps(first, count)
    if not all(isinstance(event, PoissonGaussian | KindsGaussian) for event in noisy):
        return None
    if audited.notion in FAMILY:
        return Steps(noisy, audited.relation, audited.k)
    # Where a cap selects, or clipped users come and go, the claim is larger than these steps alone would have it.
    whole = Steps(noisy, audited.relation, int(claim.detail.get("k", 1)))
    follows = isclose(whole.epsilon(1.0, claim.delta), claim.epsilon, rel_tol=1e-6)
    return replace(whole, group=audited.k) if follows else None


def exceeded(findings: Iterable[Finding]) -> list[str]:
    """The attacks whose lower bound is above the certificate."""
    return [each.attack for each in findings if (each.detail.get("certificate") or {}).get("exceeded")]
