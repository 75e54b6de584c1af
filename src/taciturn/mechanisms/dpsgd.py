"""DP-SGD on every record (Abadi et al. 2016): the blanket protection CRT is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from taciturn.mechanisms import user_dp
from taciturn.mechanisms.config import PrivateSteps
from taciturn.privacy.guarantees.claims import Phases, merged
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.premises import RECORD
from taciturn.privacy.guarantees.statements import confidentiality, record_privacy
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.training.phase import Phase
from taciturn.training.plan import Plan, Target
from taciturn.training.samplers import Poisson
from taciturn.training.units.row_groups import Units

SUMMARY = "DP-SGD on every record; protects everything, costs the most"


class Config(PrivateSteps):
    """reads: the original text, or the redacted one (then a detected secret costs nothing at all). unit: user makes a run of
    user_dp, with its sampling, clipping and certificate."""

    unit: Literal["record", "user"] = "record"
    reads: Literal["original", "redacted"] = "original"


def plan(screened: ScreenedCorpus, config: Config, target: Target) -> Plan:
    """One clipped and noised phase over all records, or over all users."""
    if config.unit == "user":
        return user_dp.plan(screened, _of_users(config), target)
    records = screened.size(config.reads)
    rate = config.sampling_rate(records)
    phase = Phase(
        "private",
        (config.reads,),
        records,
        Poisson(rate),
        config.rule(records, target),
        config.steps,
        config.optimiser.build(),
    )
    return Plan("dpsgd", (phase,), 1, target, screened.key)


def _of_users(config: Config) -> user_dp.Config:
    return user_dp.Config(**config.model_dump(exclude={"reads", "unit"}))


def units(screened: ScreenedCorpus, config: Config) -> dict[str, Units]:
    """Users, where they are what is drawn."""
    return user_dp.units(screened, _of_users(config)) if config.unit == "user" else {}


def guarantees(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """DP-SGD on every record (§1, §3)."""
    yield from confidentiality(merged(phases), evidence, conditional=False)
    yield from record_privacy(merged(phases), evidence, RECORD)
