"""The status of a statement: none, published claim, conditional or proved, by what it rests on (docs/guarantees.md §6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from taciturn.privacy.accounting.accountant import accountant_name
from taciturn.privacy.accounting.events import Relation
from taciturn.privacy.accounting.tradeoff import NOTHING, Curve, TradeOff
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Assumption, Guarantee, Notion, Status, round_up
from taciturn.privacy.guarantees.premises import VALIDATION


def faults(evidence: Evidence) -> list[str]:
    """Why the preparation of the corpus leaves nothing to claim."""
    near = ["near-duplicate removal can flip any number of later decisions"] if evidence.dedup == "near" else []
    return [*evidence.preprocessing, *near]


def equal_worlds(delta: float) -> Curve:
    """The curve of two worlds that are the same."""
    del delta
    return NOTHING


def no_guarantee(
    notion: Notion,
    unit: str,
    relation: Relation,
    evidence: Evidence,
    reason: str,
    detail: Mapping[str, float] | None = None,
) -> Guarantee:
    return Guarantee(
        notion, unit, relation, math.inf, evidence.delta, "none", "none", accountant_name(),
        reason=reason, detail=detail or {},
    )  # fmt: skip


def with_status(
    notion: Notion,
    unit: str,
    relation: Relation,
    epsilon: float,
    delta: float,
    theorem: str,
    assumptions: tuple[Assumption, ...],
    evidence: Evidence,
    *,
    curve: Callable[[float], Curve],
    detail: Mapping[str, float] | None = None,
    reason: str | None = None,
    noisy: bool = True,
    order_matters: bool = False,
) -> Guarantee:
    """A guarantee with the status its facts allow (§6): none, published claim, conditional or proved.

    curve: the whole privacy curve that ``epsilon`` is read off at ``delta``; asked only where the claim is one.
    """
    detail = dict(detail or {})
    void = [*([reason] if reason else []), *faults(evidence)]
    if noisy and evidence.seeded_noise:
        void.append("noise or sampling coins came from a stored seed")
    if void or math.isinf(epsilon):
        if math.isfinite(epsilon):
            detail["epsilon_otherwise"] = epsilon
        why = "; ".join(void) or f"no finite ε can be certified at δ = {round_up(delta)}"
        return Guarantee(
            notion, unit, relation, math.inf, delta, "none", theorem, accountant_name(), reason=why, detail=detail
        )  # fmt: skip
    if evidence.private_validation:
        assumptions = (*assumptions, VALIDATION)
    status: Status = "proved" if all(each.enforced for each in assumptions) else "conditional"
    why = ""
    if order_matters and evidence.order == "as-published":
        status, why = "published-claim", "copies were removed before redaction, which breaks the proof"
    attacks = TradeOff.of(curve(delta), epsilon, delta)
    return Guarantee(
        notion, unit, relation, epsilon, delta, status, theorem, accountant_name(), assumptions, why, detail, attacks
    )  # fmt: skip
