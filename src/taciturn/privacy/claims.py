"""What each mechanism may claim, as a pure function of the ledger's counts and the evidence.

The certificate stores the mechanism's name, and `taciturn verify` selects the function by it, so that a claim can be
checked without torch and without the training code. Sections refer to docs/guarantees.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from taciturn.errors import UsageError, nearest
from taciturn.privacy.accountant import accountant_name, compose
from taciturn.privacy.events import Event, NonPrivate, PoissonGaussian, Relation
from taciturn.privacy.evidence import Evidence
from taciturn.privacy.guarantee import Assumption, Guarantee
from taciturn.privacy.statements import (
    CONSTANTS,
    DETECTED,
    DRAWN_SECRET,
    LOCAL,
    MISSED,
    PRIVATE_RECORD,
    RECORD,
    SAMPLED,
    SECRET,
    STABLE,
    Counts,
    alignment,
    confidentiality,
    faults,
    grouped,
    labelled_sample,
    miss_rates,
    nothing,
    record_privacy,
    settle,
)  # fmt: skip
from taciturn.privacy.theorems import averaged

FIRST = "redacted"
"""Name of jft's first phase."""

Phases = Mapping[str, Counts]
"""How often each event happened, by the plan's name of the phase."""


def guarantees(mechanism: str, phases: Phases, evidence: Evidence) -> list[Guarantee]:
    """Every statement that holds for a finished run of ``mechanism``.

    Args:
        mechanism: one of MECHANISMS.
        phases: what the ledger counted (``Ledger.by_phase()``).
        evidence: measured facts.
    """
    if mechanism not in MECHANISMS:
        raise UsageError(f"mechanism {mechanism!r} is unknown; {nearest(mechanism, MECHANISMS)}")
    return list(MECHANISMS[mechanism](phases, evidence))


def sgd(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """Training on raw text without noise."""
    del phases
    yield nothing(
        "confidentiality", SECRET, "substitution", evidence, "the text was trained on as it is, without noise"
    )


def redacted(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """Training on redacted text without noise: perfect where the policy sees, nothing where it does not (§3.1)."""
    del phases
    yield settle(
        "confidentiality", DETECTED, "substitution", 0.0, 0.0, "Redaction (guarantees.md §3.1)",
        (STABLE, LOCAL, *alignment(evidence)),
        evidence, noisy=False, order_matters=True,
    )  # fmt: skip
    yield nothing(
        "confidentiality", MISSED, "substitution", evidence,
        "what the policy misses was trained on without noise", miss_rates(evidence),
    )  # fmt: skip


def dpsgd(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """DP-SGD on every record (§1, §3)."""
    yield from confidentiality(merged(phases), evidence, conditional=False)
    yield from record_privacy(merged(phases), evidence, RECORD)


def crt(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """Confidentially Redacted Training: noise on private records only (§3)."""
    yield from confidentiality(merged(phases), evidence, conditional=not evidence.all_private)
    unit = RECORD if evidence.all_private else PRIVATE_RECORD
    if evidence.skeletons:
        why = "the skeletons of private records are trained on without noise, so a record's presence may show"
        yield nothing("dp", unit, "add-remove", evidence, why)
    else:
        yield from record_privacy(merged(phases), evidence, unit)


def jft(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """Just Fine-tune Twice: redacted text first, noiseless or lightly noised, then originals with noise (§4.1)."""
    first, second = (
        phases.get(FIRST, {}),
        {e: n for name, counts in phases.items() if name != FIRST for e, n in counts.items()},
    )
    light = not any(isinstance(event, NonPrivate) for event in first)
    detected, missed = compose(second, "substitution"), compose(merged(phases), "substitution")
    base = (SAMPLED, CONSTANTS, LOCAL, *alignment(evidence))
    yield settle(
        "confidentiality", DETECTED, "substitution", detected.epsilon(evidence.delta), evidence.delta,
        "JFT Theorem 1, by substitution (guarantees.md §4.1)", (*base, STABLE), evidence, reason=detected.reason,
    )  # fmt: skip
    if not light:
        why = "what the policy misses was trained on without noise in the first phase"
        yield nothing("confidentiality", MISSED, "substitution", evidence, why, miss_rates(evidence))
        for name, size in evidence.groups:
            unit = f"the secrets of group '{name}' in {size} records"
            yield nothing("group-confidentiality", unit, "substitution", evidence, f"of those in it, {why}")
    else:
        yield settle(
            "confidentiality", MISSED, "substitution", missed.epsilon(evidence.delta), evidence.delta,
            "both phases composed (guarantees.md §4.1a)", base, evidence, reason=missed.reason,
        )  # fmt: skip
        for name, size in evidence.groups:
            unit = f"the secrets of group '{name}' in {size} records"
            yield grouped(missed, evidence, base, unit, size)
    yield from _averaged(first, second, evidence, (*base, STABLE))
    if light:
        yield from record_privacy(merged(phases), evidence, RECORD)
    else:
        why = "redacted records are trained on without noise, so a record's presence may show"
        yield nothing("dp", RECORD, "add-remove", evidence, why)


def _averaged(
    first: Counts, second: Counts, evidence: Evidence, assumptions: tuple[Assumption, ...]
) -> Iterator[Guarantee]:
    """A secret that is missed with probability at most m: proved as a mixture over that one coin (§4.1b), and as published,
    with the sampling rate of the first phase times m (§4.1c, JFT 3.1), which is no bound."""
    rates = miss_rates(evidence)
    if not rates:
        why = "no secrets were labelled, so the miss rate is unknown"
        yield nothing("bayesian-confidentiality", DRAWN_SECRET, "substitution", evidence, why)
        return
    m = rates["gamma"]
    detected, missed = compose(second, "substitution"), compose(_sum([first, second]), "substitution")
    epsilon, delta = averaged(detected, missed, m, evidence.delta)
    yield settle(
        "bayesian-confidentiality", DRAWN_SECRET, "substitution", epsilon, delta,
        "averaged over the miss (guarantees.md §4.1b)", (*assumptions, labelled_sample(evidence, 1)), evidence,
        detail={"gamma": m}, reason=detected.reason,
    )  # fmt: skip
    if first and missed.reason is None and 0 < m < 1 and not faults(evidence) and not evidence.seeded_noise:
        thinned: dict[Event, int] = {
            replace(e, rate=e.rate * m): n for e, n in first.items() if isinstance(e, PoissonGaussian)
        }
        published = compose(_sum([thinned, second]), "add-remove").epsilon(evidence.delta)
        yield Guarantee(
            "bayesian-confidentiality", DRAWN_SECRET, "add-remove", published, evidence.delta, "estimate",
            "JFT section 3.1 as published (guarantees.md §4.1c)", accountant_name(),
            reason="a miss is a fixed property of the data, not a coin of every step: an estimate, not a bound",
            detail={"gamma": m},
        )  # fmt: skip


MECHANISMS: dict[str, Callable[[Phases, Evidence], Iterator[Guarantee]]] = {
    "sgd": sgd,
    "redacted": redacted,
    "dpsgd": dpsgd,
    "crt": crt,
    "jft": jft,
}


def accounted(mechanism: str, counts: Counts) -> Counts:
    """The events that the target of a run is about. jft: a secret that the policy detects, for which noiseless steps on
    redacted text are the same in both worlds (§4.1)."""
    free = NonPrivate(("redacted",)) if mechanism == "jft" else None
    return {event: count for event, count in counts.items() if event != free}


def merged(phases: Phases) -> dict[Event, int]:
    """Counts of all phases together."""
    return _sum(phases.values())


def _sum(counts: Iterable[Counts]) -> dict[Event, int]:
    total: Counter[Event] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def spent(counts: Counts, relation: Relation, delta: float) -> float:
    """ε of everything the ledger holds, at ``delta``; what a target is compared with."""
    return compose(counts, relation).epsilon(delta)
