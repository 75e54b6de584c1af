"""What statements are about and rest on, in words: units, and assumptions that code enforces or somebody must vouch for.
Sections refer to docs/guarantees.md."""

from __future__ import annotations

from bisect import bisect_right

from taciturn.privacy.accounting.accountant import Profile
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Assumption

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


GROUP = "the secrets of group"
"""How the unit of a statement about a named group begins."""


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


def user_unit(unit: str, size: int) -> str:
    """What stands beside a claim about one record, of the user who has most of them."""
    rest = " (public records are not protected)" if unit == PRIVATE_RECORD else ""
    where = " in the private part" if unit == PRIVATE_RECORD else ""
    return f"whether one user's records (at most {size}{where}) were there{rest}"
