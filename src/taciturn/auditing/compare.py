"""A lower bound from an attack against the ε of a certificate: of the same notion, relation and unit, or not at all.

What an attack shows about one record (or about k of them) says nothing about an ε for another unit. A bound for k is
compared with the smallest certified group of at least k; ε grows with the group, so that is fair to the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from taciturn.auditing.finding import Finding
from taciturn.privacy.guarantee import Guarantee, round_up, to_number
from taciturn.privacy.statements import RECORD, SECRET

EXCEEDED = "the attack's lower bound is above the certificate's ε: the guarantee does not hold"
UNITS = {
    "confidentiality": ("confidentiality", "group-confidentiality"),
    "dp": ("dp",),
}


@dataclass(frozen=True, slots=True)
class Audited:
    """What a bound is of. notion: "confidentiality" (a secret in a record changes) or "dp" (a record comes or goes).

    relation: how neighbours differ; k: in how many records at once.
    """

    notion: str
    relation: str
    k: int = 1


def statement(audited: Audited, statements: Iterable[Guarantee]) -> Guarantee | None:
    """The statement that a bound can be held against, or None."""
    fitting = [each for each in statements if _fits(audited, each)]
    return min(fitting, key=lambda each: (each.detail.get("k", 1.0), each.epsilon), default=None)


def _fits(audited: Audited, each: Guarantee) -> bool:
    if each.notion not in UNITS[audited.notion] or each.relation != audited.relation or each.status == "estimate":
        return False
    k = each.detail.get("k")
    if k is None:  # "published-claim" and "conditional" are claims as well: an attack may refute them
        return audited.k == 1 and each.unit in (SECRET, RECORD)
    return k >= audited.k


def compared(
    finding: Finding, audited: Audited, statements: Sequence[Guarantee], bound: Callable[[float], float]
) -> Finding:
    """The finding with the comparison in ``detail["certificate"]``; the verdict is a leak when the bound is above.

    bound: δ → the lower bound on ε at that δ. Without a statement to compare with, the entry says what was missing.
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
    }
    note = f"{EXCEEDED} (at least {low:.3g}, certified {round_up(claim.epsilon)})"
    return replace(
        finding,
        verdict="leak" if exceeded else finding.verdict,
        detail={**finding.detail, "certificate": about},
        notes=(*finding.notes, note) if exceeded else finding.notes,
    )


def exceeded(findings: Iterable[Finding]) -> list[str]:
    """The attacks whose lower bound is above the certificate."""
    return [each.attack for each in findings if (each.detail.get("certificate") or {}).get("exceeded")]
