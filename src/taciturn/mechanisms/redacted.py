"""Ordinary training on redacted text: what π finds is gone for good, what it misses is learned like anything else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, Self

from pydantic import model_validator

from taciturn.mechanisms import sgd
from taciturn.mechanisms.values import FilledSteps
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import Part, ThresholdedCounts
from taciturn.privacy.guarantees.claims import Phases, merged
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.premises import CONSTANTS, DETECTED, LOCAL, MISSED, SAMPLED, STABLE, alignment, table
from taciturn.privacy.guarantees.statements import grouped, miss_rates
from taciturn.privacy.guarantees.status import equal_worlds, no_guarantee, with_status
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.training.plan import Plan, Target

SUMMARY = "ordinary training on redacted text; no protection for what the policy misses"


class Config(FilledSteps):
    """treat: what stands where the policy found something, a mask (or what fills it) or nothing (de-identification, UeDP
    VI.a)."""

    treat: Literal["mask", "remove"] = "mask"

    @model_validator(mode="after")
    def _masks_to_fill(self) -> Self:
        if self.fill == "learned" and self.treat == "remove":
            raise ValueError("fill = learned puts values into masks, and treat = remove leaves none; choose one")
        return self


def plan(screened: ScreenedCorpus, config: Config, target: Target) -> Plan:
    """One plain phase over the redacted text, nothing deduplicated; before it, where masks are to be filled, the release of
    common values of the originals."""
    reads: Part = "redacted" if config.treat == "mask" else "removed"
    plain = sgd.plan(screened, config, target, name="redacted", reads=reads, fill=config.fills())
    first = config.table(screened.size("redacted"), target)
    return replace(plain, phases=(*first, *plain.phases), free=("redacted",) if first else ())


def guarantees(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """Training on redacted text without noise: perfect where the policy sees, but for a table of values; nothing where it
    does not (§3.1, §3.7)."""
    released = {e: n for e, n in merged(phases).items() if isinstance(e, ThresholdedCounts)}
    if released:
        profile = compose(released, "substitution")
        rests = (SAMPLED, CONSTANTS, *table(profile, evidence), STABLE, LOCAL, *alignment(evidence))
        yield with_status(
            "confidentiality", DETECTED, "substitution", profile.epsilon(evidence.delta), evidence.delta,
            "Learned values on redacted text (guarantees.md §3.7)", rests, evidence,
            curve=profile.curve, order_matters=True,
        )  # fmt: skip
        if size := evidence.records_per_user:
            unit = f"all secrets of one user that the policy detects, in at most {size} records"
            yield grouped(profile, evidence, rests, unit, size)
    else:
        yield with_status(
            "confidentiality", DETECTED, "substitution", 0.0, 0.0, "Redaction (guarantees.md §3.1)",
            (STABLE, LOCAL, *alignment(evidence)),
            evidence, curve=equal_worlds, noisy=False, order_matters=True,
        )  # fmt: skip
    yield no_guarantee(
        "confidentiality", MISSED, "substitution", evidence,
        "what the policy misses was trained on without noise", miss_rates(evidence),
    )  # fmt: skip
