"""DP-SGD on every record (Abadi et al. 2016): the blanket protection CRT is compared with."""

from __future__ import annotations

from typing import Literal

from taciturn.mechanisms.config import PrivateSteps
from taciturn.screening.screened import ScreenedCorpus
from taciturn.training.plan import Phase, Plan, Poisson, Target

SUMMARY = "DP-SGD on every record; protects everything, costs the most"


class Config(PrivateSteps):
    """reads: the original text, or the redacted one (then a detected secret costs nothing at all)."""

    reads: Literal["original", "redacted"] = "original"


def plan(screened: ScreenedCorpus, config: Config, target: Target) -> Plan:
    """One clipped and noised phase over all records."""
    records = len(screened.texts(config.reads))
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
