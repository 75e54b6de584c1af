"""Selective DP-SGD (Shi, Cui, Li, Jia, Yu 2021): noise on sensitive tokens and on the states they leave, none on the rest.

One-layer LSTM only (taciturn.training.updates.selective has the algorithm). What it protects is what the policy detects;
that much redaction gives for nothing, with ε = 0 (CRT, section 2), so this is a baseline. For what the policy misses ε is
infinite.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from pydantic import Field

from taciturn.errors import DataError, UsageError
from taciturn.mechanisms.config import OptimiserConfig, Strict
from taciturn.privacy.accounting.events import SelectiveGaussian
from taciturn.privacy.accounting.selective import Selective, balanced, calibrated
from taciturn.privacy.guarantees.claims import Phases, cost, merged
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.premises import DETECTED, MISSED, NOISED, RECORD, STABLE, alignment
from taciturn.privacy.guarantees.statements import miss_rates, no_record_privacy
from taciturn.privacy.guarantees.status import equal_worlds, no_guarantee, with_status
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.text.document import MASK
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import SelectiveState
from taciturn.training.plan import Plan, Target
from taciturn.training.samplers import Poisson

SUMMARY = "an LSTM with noise on sensitive tokens only; nothing for what the policy misses"


class Config(Strict):
    """See :class:`taciturn.training.phase_terms.SelectiveState`. rate: Poisson rate, else ``batch``/N. steps: in all.

    noise_multiplier: σ, else calibrated to ε. state_noise: σ_h, else σ·√runs: states then cost what parameters do.
    """

    batch: int = Field(32, ge=1)
    rate: float | None = Field(None, gt=0, le=1)
    steps: int = Field(200, ge=1)
    clip: float = Field(1.0, gt=0)
    noise_multiplier: float | None = Field(None, gt=0)
    state_clip: float = Field(1.0, gt=0)
    state_noise: float | None = Field(None, gt=0)
    runs: int = Field(4, ge=1)
    optimiser: OptimiserConfig = OptimiserConfig(lr=1e-3)

    def sampling_rate(self, records: int) -> float:
        """q; a function of the number of records only."""
        return self.rate if self.rate is not None else min(1.0, self.batch / max(records, 1))

    def event(self, rate: float, target: Target) -> SelectiveGaussian:
        """What a step costs: σ as given, or the smallest that keeps the run within the target."""

        def made(sigma: float) -> SelectiveGaussian:
            if self.state_noise is None:
                return balanced(rate, self.runs)(sigma)
            return SelectiveGaussian(rate, sigma, self.state_noise, self.runs)

        if self.noise_multiplier is not None:
            return made(self.noise_multiplier)
        if target.epsilon is None or target.delta is None:
            raise UsageError("give epsilon and delta to calibrate the noise to, or a noise_multiplier")
        return calibrated(target.epsilon, target.delta, self.steps, made)


def plan(screened: ScreenedCorpus, config: Config, target: Target) -> Plan:
    """One phase over the original records, of which only what π masked is noised."""
    if not any(MASK in text for rows in screened.stream("redacted") for text in rows["text"]):
        raise DataError(
            "selective_dpsgd has nothing to noise: the policy found nothing in this corpus, so every token would be trained "
            "on as it is; check the policy, or choose sgd or dpsgd"
        )
    records = screened.size("original")
    event = config.event(config.sampling_rate(records), target)
    rule = SelectiveState(config.clip, event.noise_multiplier, config.state_clip, event.state_noise, event.runs)
    optimiser = config.optimiser.build()
    phase = Phase("private", ("original",), records, Poisson(event.rate), rule, config.steps, optimiser)
    return Plan("selective_dpsgd", (phase,), 1, target, screened.key)


def guarantees(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """Every noise composed, the coins given away (`accounting/selective.py`); nothing where the policy does not see."""
    counts = merged(phases)
    single = cost(counts, "substitution")
    epsilon = math.inf if single is None else single.epsilon(evidence.delta)
    detail = {"epsilon_of_redaction": 0.0}
    noises = {event.effective for event in counts if isinstance(event, SelectiveGaussian)}
    if len(noises) == 1:
        detail["effective_noise_multiplier"] = noises.pop()
    unsure = "training read text without noise" if math.isinf(epsilon) else None
    yield with_status(
        "sdp", DETECTED, "substitution", epsilon, evidence.delta,
        "parameter and state noise composed, without amplification (guarantees.md §4.2)",
        (*NOISED, STABLE, *alignment(evidence)), evidence,
        curve=equal_worlds if single is None else single.curve, detail=detail, reason=unsure,
    )  # fmt: skip
    steps = [
        Selective(e, n, evidence.records_per_user or 1) for e, n in counts.items() if isinstance(e, SelectiveGaussian)
    ]
    if (size := evidence.records_per_user) and len(steps) == 1:
        yield with_status(
            "group-confidentiality", f"all secrets of one user that the policy detects, in at most {size} records",
            "substitution", steps[0].epsilon(evidence.delta), evidence.delta,
            "parameter and state noise of k records composed (guarantees.md §4.2)",
            (*NOISED, STABLE, *alignment(evidence)), evidence,
            curve=steps[0].curve, detail={"k": float(size)}, reason=unsure,
        )  # fmt: skip
    why = "what the policy misses was trained on without noise"
    yield no_guarantee("sdp", MISSED, "substitution", evidence, why, miss_rates(evidence))
    why = "public tokens are trained on without noise, so a record's presence may show"
    yield from no_record_privacy(evidence, RECORD, why)
