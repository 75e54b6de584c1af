"""Ordinary training on redacted text: what π finds is gone for good, what it misses is learned like anything else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from taciturn.mechanisms import sgd
from taciturn.privacy.guarantees.claims import Phases
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.statements import (
    DETECTED,
    LOCAL,
    MISSED,
    STABLE,
    alignment,
    equal_worlds,
    miss_rates,
    no_guarantee,
    with_status,
)
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.training.plan import Plan, Target

SUMMARY = "ordinary training on redacted text; no protection for what the policy misses"


class Config(sgd.Config):
    """treat: what stands where the policy found something, a mask or nothing (de-identification, UeDP VI.a)."""

    treat: Literal["mask", "remove"] = "mask"


def plan(screened: ScreenedCorpus, config: Config, target: Target) -> Plan:
    """One plain phase over the redacted text, nothing deduplicated."""
    return sgd.plan(
        screened, config, target, name="redacted", reads="redacted" if config.treat == "mask" else "removed"
    )


def guarantees(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """Training on redacted text without noise: perfect where the policy sees, nothing where it does not (§3.1)."""
    del phases
    yield with_status(
        "confidentiality", DETECTED, "substitution", 0.0, 0.0, "Redaction (guarantees.md §3.1)",
        (STABLE, LOCAL, *alignment(evidence)),
        evidence, curve=equal_worlds, noisy=False, order_matters=True,
    )  # fmt: skip
    yield no_guarantee(
        "confidentiality", MISSED, "substitution", evidence,
        "what the policy misses was trained on without noise", miss_rates(evidence),
    )  # fmt: skip
