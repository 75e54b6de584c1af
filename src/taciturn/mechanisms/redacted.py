"""Ordinary training on redacted text: what π finds is gone for good, what it misses is learned like anything else."""

from __future__ import annotations

from taciturn.mechanisms import sgd
from taciturn.screening.screened import ScreenedCorpus
from taciturn.training.plan import Plan, Target

SUMMARY = "ordinary training on redacted text; no protection for what the policy misses"
Config = sgd.Config


def plan(screened: ScreenedCorpus, config: Config, target: Target) -> Plan:
    """One plain phase over the redacted text, nothing deduplicated."""
    return sgd.plan(screened, config, target, name="redacted", reads="redacted")
