"""Statements that several mechanisms make: pure functions of the ledger's counts and the evidence. Sections refer to
docs/guarantees.md."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping

from taciturn.privacy.accounting.accountant import Profile, accountant_name, compose
from taciturn.privacy.accounting.averaged_curves import bayesian_curve
from taciturn.privacy.accounting.events import Event, Relation
from taciturn.privacy.accounting.largest_group import largest_group
from taciturn.privacy.accounting.tradeoff import NOTHING, Curve, TradeOff
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Assumption, Guarantee, Notion, Status, round_up
from taciturn.privacy.guarantees.theorems import bayesian, group, labels_needed, recall_bound

Counts = Mapping[Event, int]

SECRET = "a secret in one record"
RECORD = "whether one record was there"
DETECTED = "a secret that the policy detects"
MISSED = "a secret that the policy misses"
PRIVATE_RECORD = "whether one record of the private part was there (public records are not protected)"
DRAWN_SECRET = "a secret drawn at random from those the labels stand for"


def covered(of: str = "") -> Assumption:
    """That no public record changes with a secret, or with one of the group ``of``."""
    whose = f" of the group '{of}'" if of else ""
    return Assumption(f"the conservative policy marks every secret{whose} that the policy misses", enforced=False)


def whole(of: str = "") -> Assumption:
    """That no skeleton changes with a secret, or with one of the group ``of``."""
    whose = f" of the group '{of}'" if of else ""
    rest = "lies wholly in what the policies mark, and its record's skeleton is the same when it is masked"
    return Assumption(f"every secret{whose} {rest}", enforced=False)


COVERED, WHOLE = covered(), whole()
ALIGNED = Assumption("every secret lies in one sentence, and masking it moves no sentence boundary", enforced=False)
STABLE = Assumption("a span whose detection does not survive its own masking counts as missed", enforced=True)
SAMPLED = Assumption("independent Poisson draws and noise from secret entropy", enforced=True)
CONSTANTS = Assumption("rate, steps, clipping norm, noise and divisor do not depend on any one secret", enforced=True)
ALONE = Assumption(
    "what a unit adds to a step with noise is a function of the weights and that unit alone: no dropout mask is shared, and "
    "nothing in the model mixes records (checked before the first step)",
    enforced=True,
)
LOCAL = Assumption("screening is record-local and training does not depend on the order of records", enforced=True)
TABLE = "a table of values"
"""How the assumption about a released table of values begins."""
APART = Assumption("masking a secret changes nothing of what the policies mark elsewhere in its record", enforced=False)
STANDING = Assumption("whether values of its record may stand is the same once a secret is masked", enforced=False)
RARE = ", where what stands at its mask stands"
"""Begins what a unit is narrowed by where common values stand."""
SHOWN = 1000
"""Records beyond which nobody asks in how many a value may stand without being in a table."""
NOISED = (SAMPLED, CONSTANTS, ALONE, LOCAL)
"""What every statement about steps with noise rests on."""
SIZE = Assumption("the number of protected records is treated as public", enforced=True)
UNITS = Assumption("the numbers of users, entities and units are treated as public", enforced=True)
VALIDATION = Assumption(
    "no secret is in the validation text that decisions looked at, which is not known to be public", enforced=False
)


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


def few(copies: int) -> str:
    """What narrows a claim where common values stand (§3.7, Theorem B): "" where none does."""
    return f"{RARE} in at most {copies} records" if copies else ""


def table(profile: Profile, evidence: Evidence) -> tuple[Assumption, ...]:
    """What a released table of values shows of few records, in words (§3.7); nothing where none was released."""
    if not profile.shown:
        return ()
    most = bisect_right(range(1, SHOWN + 1), evidence.delta, key=lambda k: profile.for_group(k).escaped)
    what = "record" if most == 1 else "records"
    return (
        Assumption(
            f"{TABLE} that stand in many records was released once, with noise in its counts, and is public; a "
            f"value in at most {most} {what} is in it with a chance of at most {evidence.delta:g}",
            enforced=True,
        ),
    )


def spared(evidence: Evidence) -> tuple[Assumption, ...]:
    """What a statement that rests on the conservative policy leaves out where that spares public values (§3.1)."""
    values = [f"one of the {evidence.public_values} public values (digest {evidence.public_digest})"]
    kinds = [f"a value of the kind {', '.join(evidence.public_kinds)}"]
    if not (named := " or ".join(values * bool(evidence.public_values) + kinds * bool(evidence.public_kinds))):
        return ()
    told = f"no secret is, or lies in, {named}: the conservative policy leaves these unmarked"
    return (Assumption(told, enforced=False),)


def alignment(evidence: Evidence) -> tuple[Assumption, ...]:
    return (ALIGNED,) if evidence.unit == "sentence" else ()


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


GROUP = "the secrets of group"
"""How the unit of a statement about a named group begins."""


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


def labelled_sample(evidence: Evidence, bounds: int) -> Assumption:
    """What ``bounds`` bounds drawn from the labels rest on."""
    return Assumption(
        f"{sampled(evidence)} are a random sample of those to protect "
        f"(the bounds drawn from them fail for at most {100 * bounds_fail(evidence, bounds):.2g} % of samples)",
        enforced=False,
    )


def bounds_fail(evidence: Evidence, bounds: int) -> float:
    """The chance that one of ``bounds`` one-sided bounds is wrong."""
    return bounds * (1 - evidence.confidence)


def sampled(evidence: Evidence) -> str:
    what = "labelled secrets"
    if evidence.label_unit == "record":
        what = "labelled records with a secret (missed if one of their secrets is)"
    among = "" if evidence.population is None else f", of at most {evidence.population} in the corpus,"
    return f"the {evidence.labelled} {what}{', weighted by stratum,' * (evidence.miss_bounds is not None)}{among}"


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


def user_unit(unit: str, size: int) -> str:
    """What stands beside a claim about one record, of the user who has most of them."""
    rest = " (public records are not protected)" if unit == PRIVATE_RECORD else ""
    where = " in the private part" if unit == PRIVATE_RECORD else ""
    return f"whether one user's records (at most {size}{where}) were there{rest}"


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
