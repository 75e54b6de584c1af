"""What each mechanism may claim, as a pure function of the ledger's counts and the evidence.

The certificate stores the mechanism's name, and `taciturn verify` selects the function by it, so that a claim can be
checked without torch and without the training code. Sections refer to docs/guarantees.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from taciturn.errors import UsageError, nearest
from taciturn.privacy.accountant import Profile, accountant_name, compose
from taciturn.privacy.events import Event, Relation
from taciturn.privacy.evidence import Evidence
from taciturn.privacy.guarantee import Assumption, Guarantee, Notion, Status, round_up
from taciturn.privacy.theorems import bayesian, group, labels_needed, largest_group, recall_bound

Counts = Mapping[Event, int]

SECRET = "a secret in one record"
RECORD = "whether one record was there"
DETECTED = "a secret that the policy detects"
MISSED = "a secret that the policy misses"
PRIVATE_RECORD = "whether one record of the private part was there (public records are not protected)"
DRAWN_SECRET = "a secret drawn at random from those the labels stand for"

_COVERED = Assumption("the conservative policy marks every secret that the policy misses", enforced=False)
_WHOLE = Assumption(
    "every secret lies wholly in what the policies mark, and its record's skeleton is the same when it is masked",
    enforced=False,
)
_ALIGNED = Assumption("every secret lies in one sentence, and masking it moves no sentence boundary", enforced=False)
_STABLE = Assumption("a span whose detection does not survive its own masking counts as missed", enforced=True)
_SAMPLED = Assumption("independent Poisson draws and noise from secret entropy", enforced=True)
_CONSTANTS = Assumption("rate, steps, clipping norm, noise and divisor do not depend on any one secret", enforced=True)
_LOCAL = Assumption("screening is record-local and training does not depend on the order of records", enforced=True)
_SIZE = Assumption("the number of protected records is treated as public", enforced=True)
_VALIDATION = Assumption("no secret is in the private validation data that decisions looked at", enforced=False)


def guarantees(mechanism: str, counts: Counts, evidence: Evidence) -> list[Guarantee]:
    """Every statement that holds for a finished run of ``mechanism``.

    Args:
        mechanism: "sgd", "redacted", "dpsgd" or "crt".
        counts: how often each event happened, over all phases (``Ledger.counts()``).
        evidence: measured facts.
    """
    if mechanism not in MECHANISMS:
        raise UsageError(f"mechanism {mechanism!r} is unknown; {nearest(mechanism, MECHANISMS)}")
    return list(MECHANISMS[mechanism](counts, evidence))


def sgd(counts: Counts, evidence: Evidence) -> Iterator[Guarantee]:
    """Training on raw text without noise."""
    del counts
    yield _nothing(
        "confidentiality", SECRET, "substitution", evidence, "the text was trained on as it is, without noise"
    )


def redacted(counts: Counts, evidence: Evidence) -> Iterator[Guarantee]:
    """Training on redacted text without noise: perfect where the policy sees, nothing where it does not (§3.1)."""
    del counts
    yield _settle(
        "confidentiality", DETECTED, "substitution", 0.0, 0.0, "Redaction (guarantees.md §3.1)",
        (_STABLE, _LOCAL, *_alignment(evidence)),
        evidence, noisy=False, order_matters=True,
    )  # fmt: skip
    yield _nothing(
        "confidentiality", MISSED, "substitution", evidence,
        "what the policy misses was trained on without noise", _miss_rates(evidence),
    )  # fmt: skip


def dpsgd(counts: Counts, evidence: Evidence) -> Iterator[Guarantee]:
    """DP-SGD on every record (§1, §3)."""
    yield from _confidentiality(counts, evidence, conditional=False)
    yield from _record_privacy(counts, evidence, RECORD)


def crt(counts: Counts, evidence: Evidence) -> Iterator[Guarantee]:
    """Confidentially Redacted Training: noise on private records only (§3)."""
    yield from _confidentiality(counts, evidence, conditional=not evidence.all_private)
    unit = RECORD if evidence.all_private else PRIVATE_RECORD
    if evidence.skeletons:
        why = "the skeletons of private records are trained on without noise, so a record's presence may show"
        yield _nothing("dp", unit, "add-remove", evidence, why)
    else:
        yield from _record_privacy(counts, evidence, unit)


MECHANISMS: dict[str, Callable[[Counts, Evidence], Iterator[Guarantee]]] = {
    "sgd": sgd,
    "redacted": redacted,
    "dpsgd": dpsgd,
    "crt": crt,
}


def spent(counts: Counts, relation: Relation, delta: float) -> float:
    """ε of everything the ledger holds, at ``delta``; what a target is compared with."""
    return compose(counts, relation).epsilon(delta)


def _confidentiality(counts: Counts, evidence: Evidence, *, conditional: bool) -> Iterator[Guarantee]:
    """Theorem 8 in its three parts, from the substitution curve."""
    profile = compose(counts, "substitution")
    base = (_SAMPLED, _CONSTANTS, _LOCAL, *((_STABLE,) if evidence.redacted else ()), *_alignment(evidence))
    covered = (*base, *((_COVERED,) if conditional else ()), *((_WHOLE,) if evidence.skeletons else ()))
    yield _single(profile, evidence, covered)
    for name, size in evidence.groups:
        yield _grouped(profile, evidence, covered, f"the secrets of group '{name}' in {size} records", size)
    if evidence.records_per_user:
        size = evidence.records_per_user
        yield _grouped(profile, evidence, covered, f"all secrets of one user in at most {size} records", size)
    if evidence.redacted:
        yield _drawn(profile, evidence, base, conditional=conditional)


def _alignment(evidence: Evidence) -> tuple[Assumption, ...]:
    return (_ALIGNED,) if evidence.unit == "sentence" else ()


def _single(profile: Profile, evidence: Evidence, assumptions: tuple[Assumption, ...]) -> Guarantee:
    epsilon = profile.epsilon(evidence.delta)
    detail = {"spans_not_stable": float(evidence.spans_not_stable)}
    if evidence.redacted and evidence.order == "redact-first" and not _void(evidence):
        detail["epsilon_if_detected"] = 0.0
    if math.isfinite(epsilon):
        detail["largest_group_within_epsilon_10"] = float(largest_group(profile, evidence.delta, most=1000))
    return _settle(
        "confidentiality", SECRET, "substitution", epsilon, evidence.delta, "CRT Theorem 8.1 (guarantees.md §3.1)",
        assumptions, evidence, detail=detail, reason=profile.reason, order_matters=evidence.redacted,
    )  # fmt: skip


def _grouped(
    profile: Profile, evidence: Evidence, assumptions: tuple[Assumption, ...], unit: str, size: int
) -> Guarantee:
    detail = {"k": float(size)}
    epsilon = 0.0 if profile.reason is None else math.inf
    if size and profile.reason is None:
        bound = group(profile, size, evidence.delta)
        epsilon = bound.epsilon
        detail |= {"epsilon_blackbox": bound.blackbox, "epsilon_tight": bound.tight}
    return _settle(
        "group-confidentiality", unit, "substitution", epsilon, evidence.delta if size else 0.0,
        "CRT Theorem 8.2, corrected (guarantees.md §3.2)", assumptions, evidence,
        detail=detail, reason=profile.reason, order_matters=evidence.redacted,
    )  # fmt: skip


def _drawn(
    profile: Profile, evidence: Evidence, assumptions: tuple[Assumption, ...], *, conditional: bool
) -> Guarantee:
    """Theorem 8.3 at the upper bounds of γ and δ₂. Where δ₂ alone exceeds δ, at δ + δ₂ and saying so."""
    theorem = "CRT Theorem 8.3, both directions (guarantees.md §3.3)"
    rates = _miss_rates(evidence)
    needed = labels_needed(evidence.delta, confidence=evidence.confidence)
    if not rates:
        why = f"no secrets were labelled, so miss rates are unknown; δ₂ ≤ δ takes {needed} labels"
        return _nothing("bayesian-confidentiality", DRAWN_SECRET, "substitution", evidence, why)
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
    sample = Assumption(
        f"{_sampled(evidence)} are a random sample of those to protect "
        f"(the bounds drawn from them fail for at most {100 * bounds * (1 - evidence.confidence):.2g} % of samples)",
        enforced=False,
    )
    return _settle(
        "bayesian-confidentiality", DRAWN_SECRET, "substitution", bound.epsilon, bound.delta, theorem,
        (*assumptions, sample), evidence, detail=detail, reason=profile.reason, order_matters=True,
    )  # fmt: skip


def _sampled(evidence: Evidence) -> str:
    what = "labelled secrets"
    if evidence.label_unit == "record":
        what = "labelled records with a secret (missed if one of their secrets is)"
    return f"the {evidence.labelled} {what}{', weighted by stratum,' * (evidence.miss_bounds is not None)}"


def _record_privacy(counts: Counts, evidence: Evidence, unit: str) -> Iterator[Guarantee]:
    """Add/remove differential privacy of the records that only noisy steps read (§1); per user by group privacy."""
    profile = compose(counts, "add-remove")
    assumptions = (_SAMPLED, _CONSTANTS, _LOCAL, _SIZE)
    theorem = "Poisson-sampled Gaussian mechanism (guarantees.md §1)"
    epsilon = profile.epsilon(evidence.delta)
    yield _settle(
        "dp", unit, "add-remove", epsilon, evidence.delta, theorem, assumptions, evidence, reason=profile.reason
    )
    size = evidence.records_per_user
    if size and unit == RECORD:
        group_unit = f"whether one user's records (at most {size}) were there"
        epsilon = profile.for_group(size).epsilon(evidence.delta)
        yield _settle(
            "dp", group_unit, "add-remove", epsilon, evidence.delta, theorem, assumptions, evidence,
            detail={"k": float(size)}, reason=profile.reason,
        )  # fmt: skip


def _miss_rates(evidence: Evidence) -> dict[str, float]:
    """Upper bounds of γ and δ₂; empty without labels."""
    if not evidence.labels or evidence.missed_by_pi is None or evidence.missed_by_both is None:
        return {}
    if evidence.miss_bounds is not None:
        return {"gamma": evidence.miss_bounds[0], "delta2": evidence.miss_bounds[1]}
    return {
        "gamma": recall_bound(evidence.missed_by_pi, evidence.labelled, evidence.confidence),
        "delta2": recall_bound(evidence.missed_by_both, evidence.labelled, evidence.confidence),
    }


def _void(evidence: Evidence) -> list[str]:
    """Why the preparation of the corpus leaves nothing to claim."""
    near = ["near-duplicate removal can flip any number of later decisions"] if evidence.dedup == "near" else []
    return [*evidence.preprocessing, *near]


def _nothing(
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


def _settle(
    notion: Notion,
    unit: str,
    relation: Relation,
    epsilon: float,
    delta: float,
    theorem: str,
    assumptions: tuple[Assumption, ...],
    evidence: Evidence,
    *,
    detail: Mapping[str, float] | None = None,
    reason: str | None = None,
    noisy: bool = True,
    order_matters: bool = False,
) -> Guarantee:
    """A guarantee with the status its facts allow (§6): none, published claim, conditional or proved."""
    detail = dict(detail or {})
    void = [*([reason] if reason else []), *_void(evidence)]
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
        assumptions = (*assumptions, _VALIDATION)
    status: Status = "proved" if all(each.enforced for each in assumptions) else "conditional"
    why = ""
    if order_matters and evidence.order == "as-published":
        status, why = "published-claim", "copies were removed before redaction, which breaks the proof"
    return Guarantee(
        notion, unit, relation, epsilon, delta, status, theorem, accountant_name(), assumptions, why, detail
    )  # fmt: skip
