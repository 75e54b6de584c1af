"""May this model leave the house? One word out of a closed set, with the reasons that decide it, heaviest first.

    do not            something is known that speaks against this model: it takes another one
    not yet           nothing is, but something that has to be known is not: certify, label or attack
    may be released   neither; what only a person can judge stays open, and is listed beside the word

The word is never better than what is claimed, what attacks found and what labels show, each by itself, and worse evidence
never makes it better (docs/how-to/read-the-certificate.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from taciturn.auditing.finding import Finding
from taciturn.auditing.lower_bounds.against_certificate import exceeded
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee, round_up
from taciturn.privacy.guarantees.premises import COVERED, WHOLE
from taciturn.privacy.guarantees.refutation import DRAWN_DELTA, contradictions
from taciturn.privacy.guarantees.release import not_to_lean_on, refutations
from taciturn.privacy.guarantees.statements import miss_rates
from taciturn.privacy.guarantees.theorems import labels_needed

Word = Literal["may be released", "not yet", "do not"]
MOST = 3
"""So many reasons are told with a word."""


class Cause(IntEnum):
    """Why a model may not go out, the heaviest first. From UNCERTIFIED on nothing speaks against it yet."""

    EXCEEDED = 0
    LEAK = 1
    REFUTED = 2
    WITHHELD = 3
    UNBOUNDED = 4
    WEAK = 5
    UNCERTIFIED = 6
    UNATTACKED = 7
    UNLABELLED = 8
    FEW_LABELS = 9
    INCONCLUSIVE = 10


@dataclass(frozen=True, slots=True)
class Reason:
    """cause: None for what speaks for a model."""

    text: str
    cause: Cause | None = None

    @property
    def word(self) -> Word:
        """The word that it leads to by itself."""
        return "may be released" if self.cause is None else "do not" if self.cause < Cause.UNCERTIFIED else "not yet"


@dataclass(frozen=True, slots=True)
class Verdict:
    """all_reasons: every one, heaviest first; of a model that may be released, what speaks for it."""

    word: Word
    all_reasons: tuple[Reason, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """The first of those that carry the word."""
        return tuple(each.text for each in self.all_reasons if each.word == self.word)[:MOST]

    def __str__(self) -> str:
        return f"{self.word}: {'; '.join(self.reasons)}"


def verdict(
    claims: Sequence[Guarantee],
    guarantees: Iterable[Guarantee],
    against: Sequence[str] | None,
    findings: Sequence[Finding] | None,
    evidence: Evidence | None,
) -> Verdict:
    """The word for one model.

    claims: those that it stands on (summary.leading_claims), among all ``guarantees``. against: what the certificate holds
    against release, None without a certificate. findings: of its attacks, None without any. evidence: None where the run
    has none.
    """
    reasons = [
        *_attacked(findings),
        *_certified(claims, list(guarantees), against),
        *(_labelled(claims, evidence) if against is not None else ()),
    ]
    if reasons:
        ordered = sorted(set(reasons), key=lambda each: (each.cause or Cause.EXCEEDED, each.text))
        return Verdict("do not" if any(each.word == "do not" for each in ordered) else "not yet", tuple(ordered))
    return Verdict("may be released", tuple(_speaks_for(claims, findings or (), evidence)))


def _attacked(findings: Sequence[Finding] | None) -> Iterator[Reason]:
    if not findings:
        yield Reason("no attack was made on it", Cause.UNATTACKED)
        return
    beaten = set(exceeded(findings))
    for attack in sorted(beaten):
        yield Reason(f"the {attack_words(attack)} attack proves a larger ε than the certificate's", Cause.EXCEEDED)
    for attack in sorted({each.attack for each in findings if each.verdict == "leak"} - beaten):
        yield Reason(f"the {attack_words(attack)} attack found a leak", Cause.LEAK)
    for each in findings:
        if each.verdict == "inconclusive":
            why = f": {each.notes[0]}" if each.notes else ""
            yield Reason(f"the {attack_words(each.attack)} attack decided nothing{why}", Cause.INCONCLUSIVE)


def _certified(
    claims: Sequence[Guarantee], guarantees: Sequence[Guarantee], against: Sequence[str] | None
) -> Iterator[Reason]:
    if against is None:
        yield Reason("it is not certified: nothing is promised", Cause.UNCERTIFIED)
        return
    refuted = refutations([*claims, *guarantees])
    for why in refuted:
        yield Reason(f"evidence refutes what was to be promised: {why}", Cause.REFUTED)
    for why in dict.fromkeys(against):
        if not any(each in why for each in refuted):
            yield Reason(why.removeprefix("not for release: "), Cause.WITHHELD)
    if not bounds(claims):
        yield Reason("no bound covers every secret", Cause.UNBOUNDED)
        return
    for each in claims:
        if why := not_to_lean_on(each):
            yield Reason(f"what is promised about {each.unit} is no protection: {why}", Cause.WEAK)


def bounds(claims: Sequence[Guarantee]) -> bool:
    """Whether every claim is a bound that holds, with or without a condition, and there is one."""
    return bool(claims) and all(each.status in ("proved", "conditional") and each.finite for each in claims)


def _labelled(claims: Sequence[Guarantee], evidence: Evidence | None) -> Iterator[Reason]:
    """Of conditions on what the policies find: labels are the evidence for them, or against."""
    rests = {condition for each in claims for condition in each.assumptions if condition in (COVERED, WHOLE)}
    if not rests:
        return
    if evidence is None or not evidence.labels:
        yield Reason("nobody labelled secrets, so how many the policies miss is not known", Cause.UNLABELLED)
        return
    for why in dict.fromkeys(text for each in rests for text in contradictions(each, evidence)):
        yield Reason(f"evidence refutes what was to be promised: {why}", Cause.REFUTED)
    bound = miss_rates(evidence)["delta2"]
    if bound > DRAWN_DELTA:
        needed = labels_needed(DRAWN_DELTA, confidence=evidence.confidence)
        told = (
            f"{evidence.labelled:,} labels leave open that the policies miss {round_up(100 * bound)} % of secrets, and "
            f"{100 * DRAWN_DELTA:g} % is the most; {needed:,} without a miss are enough"
        )
        yield Reason(told, Cause.FEW_LABELS)


def _speaks_for(
    claims: Sequence[Guarantee], findings: Sequence[Finding], evidence: Evidence | None
) -> Iterator[Reason]:
    worst = max(claims, key=lambda each: each.epsilon)
    if worst.trade_off is not None:
        told = worst.trade_off
        yield Reason(
            f"at {told.alarms()} false alarms an attack finds at most {told.share()} of cases ({worst.label()})"
        )
    else:
        yield Reason(worst.label())
    names = ", ".join(dict.fromkeys(attack_words(each.attack) for each in findings))
    yield Reason(f"no leak was found by {names}")
    if evidence is not None and evidence.labels:
        yield Reason(missed_words(evidence))


def missed_words(evidence: Evidence) -> str:
    """How many labelled secrets the policies miss, with the bounds of their shares."""
    rates = miss_rates(evidence)
    what = "records with a secret" if evidence.label_unit == "record" else "secrets"
    bound = {name: f"at most {round_up(100 * rate)} %" for name, rate in rates.items()}
    return (
        f"of {evidence.labelled:,} labelled {what} the policy misses {evidence.missed_by_pi:,} ({bound['gamma']}), both "
        f"policies {evidence.missed_by_both:,} ({bound['delta2']}), each with {100 * evidence.confidence:g} % confidence"
    )


def headline(verdicts: Mapping[str, Verdict]) -> str:
    """Of one model, or of several: how many may go out."""
    if len(verdicts) == 1:
        ((name, one),) = verdicts.items()
        return {
            "may be released": f"{name} may be released",
            "not yet": f"{name}: not to be released yet",
            "do not": f"{name}: do not release",
        }[one.word]
    number = sum(each.word == "may be released" for each in verdicts.values())
    return f"{number or 'None'} of {len(verdicts)} models may be released"


def attack_words(attack: str) -> str:
    """An attack's name as words."""
    return attack.replace("-", " ")
