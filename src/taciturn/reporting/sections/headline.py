"""The one word for a model: never better than the worst of what is claimed, what attacks found and what evidence says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from taciturn.auditing.finding import Finding
from taciturn.privacy.guarantees.guarantee import Guarantee


class Outcome(IntEnum):
    """From the best to the worst. An attack that was not made is worse than one that decided nothing, which would else be
    better hidden than told."""

    CLEAR = 0
    INCONCLUSIVE = 1
    UNATTACKED = 2
    UNBOUNDED = 3
    WITHHELD = 4
    REFUTED = 5
    LEAKS = 6


def outcome(claims: Sequence[Guarantee], findings: Iterable[Finding] | None, against: Sequence[str] | None) -> Outcome:
    """The worst that is known of a model.

    claims: those to put first (summary.leading_claims); none where nothing is certified. findings: of its attacks, None
    without any. against: what its certificate holds against release, None without a certificate.
    """
    return max(_claimed(claims), _attacked(findings), _evident(against))


def _claimed(claims: Sequence[Guarantee]) -> Outcome:
    if any(each.status == "refuted" for each in claims):
        return Outcome.REFUTED
    return Outcome.CLEAR if bounds(claims) else Outcome.UNBOUNDED


def bounds(claims: Sequence[Guarantee]) -> bool:
    """Whether every claim is a bound that holds, with or without a condition, and there is one."""
    return bool(claims) and all(each.status in ("proved", "conditional") and each.finite for each in claims)


def _attacked(findings: Iterable[Finding] | None) -> Outcome:
    verdicts = {each.verdict for each in findings or ()}
    if "leak" in verdicts:
        return Outcome.LEAKS
    if not verdicts:
        return Outcome.UNATTACKED
    return Outcome.CLEAR if verdicts == {"no leak found"} else Outcome.INCONCLUSIVE


def _evident(against: Sequence[str] | None) -> Outcome:
    if against is None:
        return Outcome.UNBOUNDED
    return Outcome.WITHHELD if against else Outcome.CLEAR


def headline(outcomes: Sequence[Outcome], refuted: str = "") -> str:
    """Of one model or of several: the worst, and how many it is of. refuted: what evidence says against a claim."""
    worst, total = max(outcomes), len(outcomes)
    if total == 1:
        alone = _ALONE[worst]
        return f"{alone}: {refuted}" if worst is Outcome.REFUTED and refuted else alone
    number = sum(each is worst for each in outcomes)
    if worst is Outcome.CLEAR:
        return f"No leak found in any of {total} models"
    one, many = _OF_SEVERAL[worst]
    return f"{number} of {total} models {one if number == 1 else many}"


_ALONE = {
    Outcome.CLEAR: "No leak found in this model",
    Outcome.INCONCLUSIVE: "The attacks on this model decide nothing",
    Outcome.UNATTACKED: "Not attacked yet",
    Outcome.UNBOUNDED: "No bound covers every secret in this model",
    Outcome.WITHHELD: "This model is not for release",
    Outcome.REFUTED: "Evidence refutes what this model was to promise",
    Outcome.LEAKS: "This model gives secrets away",
}
_OF_SEVERAL = {
    Outcome.INCONCLUSIVE: ("is attacked without a decision", "are attacked without a decision"),
    Outcome.UNATTACKED: ("is not attacked yet", "are not attacked yet"),
    Outcome.UNBOUNDED: ("has no bound that covers every secret", "have no bound that covers every secret"),
    Outcome.WITHHELD: ("is not for release", "are not for release"),
    Outcome.REFUTED: ("promises what evidence refutes", "promise what evidence refutes"),
    Outcome.LEAKS: ("gives secrets away", "give secrets away"),
}
