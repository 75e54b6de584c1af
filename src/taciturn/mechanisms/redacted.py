"""Ordinary training on redacted text: what π finds is gone for good, what it misses is learned like anything else."""

from __future__ import annotations

from taciturn.mechanisms import sgd
from taciturn.screening.screened import ScreenedCorpus
from taciturn.training.plan import Model, Plan, Seeds

SUMMARY = "ordinary training on redacted text; no protection for what the policy misses"
Config = sgd.Config


def plan(
    screened: ScreenedCorpus,
    config: Config,
    model: Model,
    seeds: Seeds,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Plan:
    """One plain phase over the redacted text, nothing deduplicated."""
    return sgd.plan(screened, config, model, seeds, epsilon=epsilon, delta=delta, name="redacted", reads="redacted")
