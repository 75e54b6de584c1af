"""Whether a certificate lets its model out: what ``release`` means, and what stands against it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from taciturn.privacy.accounting.tradeoff import FALSE_ALARMS
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import EMPTY, Guarantee, from_number
from taciturn.privacy.guarantees.premises import MISSED, RARE, SECRET

RELEASE = (
    "true: noise and coins were secret, preparation was as the proofs need it, the target was kept, some statement is "
    "finite, evidence refutes none, and none about a secret in general, or about one that the policy misses, is empty. "
    "It does not say that "
    "nothing can be learned, nor that anything in not_covered is safe. false: reasons says why"
)


def against_release(statements: list[Guarantee], evidence: Evidence) -> list[str]:
    """What in the run, or in what is promised of it, stands against handing out the model."""
    reasons = list(evidence.preprocessing)
    if evidence.seeded_noise:
        reasons.append("not for release: noise or sampling coins came from a stored seed, so they can be subtracted")
    if evidence.dial is not None and evidence.dial > 0:
        reasons.append("an experiment: the policy was made to miss a share of the secrets on purpose")
    reasons += [f"evidence refutes a condition of what was to be promised: {why}" for why in refutations(statements)]
    reasons += [why for name, why in _ALLOWED.items() if name in evidence.allowed]
    if not any(each.status in ("proved", "conditional") and each.finite for each in statements):
        reasons.append("nothing is guaranteed")
    if not reasons:  # what is said of every secret, or of those that the policy misses
        empty = [
            each for each in statements if each.status == "none" and each.unit.partition(RARE)[0] in (SECRET, MISSED)
        ]
        reasons += [f"nothing is guaranteed about {each.unit}: {each.reason}" for each in empty]
    return reasons


_ALLOWED = {
    "cannot-learn": "the plan was allowed although it cannot learn: that attacks find nothing then shows nothing",
    "large-delta": "the plan was allowed with a δ that is not below one over the number of units that noise protects",
}


LEAN = 0.5
"""Share of cases that an attack may find at 1 % false alarms, up to which a claim is protection. Beyond it what is looked
for is found more often than not, while 99 of 100 others are left in peace. In Gaussian DP that is μ = 2.33: ε = 12.1 at
δ = 1e-5."""


def not_to_lean_on(each: Guarantee) -> str:
    """Why nobody should lean on a statement; "" of one that is a bound and leaves attacks at most ``LEAN``."""
    if each.status in EMPTY:
        return each.reason
    if each.status not in ("proved", "conditional"):
        return each.reason or "it is an estimate and no bound"
    told = each.trade_off
    found = each.delta + FALSE_ALARMS * math.exp(min(each.epsilon, 100.0)) if told is None else told.detected
    if found <= LEAN:
        return ""
    share = "every case" if told is None or not told.limits else f"{told.share()} of cases"
    return f"at {100 * FALSE_ALARMS:g} % false alarms an attack may find {share}, more than half"


def refutations(statements: Iterable[Guarantee]) -> list[str]:
    """What evidence says against statements, each once."""
    return list(dict.fromkeys(each.reason for each in statements if each.status == "refuted"))


def over_target(
    target: Mapping[str, float] | None, relation: str, epsilon: float, others: Mapping[str, Any]
) -> list[str]:
    """A target that was not kept, by the run or by choosing it among others."""
    if not target:
        return []
    if epsilon > target["epsilon"]:
        return ["more was spent than the plan's target"]
    if others["counted_by"] == "selection":
        about = [each for each in others["together"] if each["relation"] == relation and each["notion"] != "dp"]
        if min((from_number(each["epsilon"]) for each in about), default=math.inf) > target["epsilon"]:
            return ["choosing this run among others spends more than the plan's target, which the run itself keeps"]
    return []
