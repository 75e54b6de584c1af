"""The one word for a model: never better than the worst of what is claimed, what attacks found and what evidence says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from taciturn.auditing.finding import Finding
from taciturn.privacy.guarantees.guarantee import Guarantee


class Standing(IntEnum):
    """From the best to the worst. An attack that was not made is worse than one that decided nothing, which would else be
    better hidden than told."""

    CLEAR = 0
    INCONCLUSIVE = 1
    UNATTACKED = 2
    UNBOUNDED = 3
    WITHHELD = 4
    REFUTED = 5
    LEAKS = 6


def standing(
    claims: Sequence[Guarantee], findings: Iterable[Finding] | None, against: Sequence[str] | None
) -> Standing:
    """Where a model stands.

    claims: those to put first (summary.headline); none where nothing is certified. findings: of its attacks, None
    without any. against: what its certificate holds against release, None without a certificate.
    """
    return max(_claimed(claims), _attacked(findings), _evident(against))


def _claimed(claims: Sequence[Guarantee]) -> Standing:
    if any(each.status == "refuted" for each in claims):
        return Standing.REFUTED
    return Standing.CLEAR if bounds(claims) else Standing.UNBOUNDED


def bounds(claims: Sequence[Guarantee]) -> bool:
    """Whether every claim is a bound that holds, with or without a condition, and there is one."""
    return bool(claims) and all(each.status in ("proved", "conditional") and each.finite for each in claims)


def _attacked(findings: Iterable[Finding] | None) -> Standing:
    verdicts = {each.verdict for each in findings or ()}
    if "leak" in verdicts:
        return Standing.LEAKS
    if not verdicts:
        return Standing.UNATTACKED
    return Standing.CLEAR if verdicts == {"no leak found"} else Standing.INCONCLUSIVE


def _evident(against: Sequence[str] | None) -> Standing:
    if against is None:
        return Standing.UNBOUNDED
    return Standing.WITHHELD if against else Standing.CLEAR


def headline(stands: Sequence[Standing], refuted: str = "") -> str:
    """Of one model or of several: the worst, and how many it is of. refuted: what evidence says against a claim."""
    worst, total = max(stands), len(stands)
    if total == 1:
        alone = _ALONE[worst]
        return f"{alone}: {refuted}" if worst is Standing.REFUTED and refuted else alone
    number = sum(each is worst for each in stands)
    if worst is Standing.CLEAR:
        return f"No leak found in any of {total} models"
    one, many = _OF_SEVERAL[worst]
    return f"{number} of {total} models {one if number == 1 else many}"


_ALONE = {
    Standing.CLEAR: "No leak found in this model",
    Standing.INCONCLUSIVE: "The attacks on this model decide nothing",
    Standing.UNATTACKED: "Not attacked yet",
    Standing.UNBOUNDED: "No bound covers every secret in this model",
    Standing.WITHHELD: "This model is not for release",
    Standing.REFUTED: "Evidence refutes what this model was to promise",
    Standing.LEAKS: "This model gives secrets away",
}
_OF_SEVERAL = {
    Standing.INCONCLUSIVE: ("is attacked without a decision", "are attacked without a decision"),
    Standing.UNATTACKED: ("is not attacked yet", "are not attacked yet"),
    Standing.UNBOUNDED: ("has no bound that covers every secret", "have no bound that covers every secret"),
    Standing.WITHHELD: ("is not for release", "are not for release"),
    Standing.REFUTED: ("promises what evidence refutes", "promise what evidence refutes"),
    Standing.LEAKS: ("gives secrets away", "give secrets away"),
}
