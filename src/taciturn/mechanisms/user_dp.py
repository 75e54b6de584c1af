"""User-level differential privacy by federated averaging (McMahan, Ramage, Talwar, Zhang 2018).

Users are drawn by Poisson coins, what each user adds is clipped, and noise is added to the sum: adding or removing a user
with everything it wrote is one unit of the mechanism. With ``local`` a user's share is what it moved a copy of the model
by (DP-FedAvg); without, it is the gradient of the mean loss of its records (DP-FedSGD), which is quicker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from pydantic import Field

from taciturn.errors import UsageError
from taciturn.mechanisms.config import PrivateSteps, Strict
from taciturn.mechanisms.corpus import mentions_in
from taciturn.privacy.accounting.user_entity import noise_for, user_profile
from taciturn.privacy.guarantees.claims import Phases, merged
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.statements import by_units
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import ClipNoise, LocalUpdates
from taciturn.training.plan import Plan, Target
from taciturn.training.samplers import Poisson
from taciturn.training.units.grouping import by_user
from taciturn.training.units.row_groups import Units

SUMMARY = "users drawn, clipped and noised as wholes; whether a person took part stays open"
USER = "whether one user, with all records, was there"


class Local(Strict):
    """SGD of a user on its own records. batch_size, epochs: of these records."""

    lr: float = Field(0.1, gt=0)
    batch_size: int = Field(16, ge=1)
    epochs: int = Field(1, ge=1)


class Config(PrivateSteps):
    """rate and batch are of users. local: several steps on a copy of the model instead of one gradient; the optimiser then
    adds what came out, so that sgd at lr 1 is the paper's."""

    local: Local | None = None

    def sigma(self, users: int, target: Target) -> float:
        """σ as given, or the smallest that keeps the run within the target, for a user more or less."""
        if self.noise_multiplier is not None:
            return self.noise_multiplier
        if target.epsilon is None or target.delta is None:
            raise UsageError("give epsilon and delta to calibrate the noise to, or a noise_multiplier")
        rate, delta = self.sampling_rate(users), target.delta
        return noise_for(target.epsilon, lambda sigma: user_profile(rate, sigma, self.steps).epsilon(delta))


def plan(screened: ScreenedCorpus, config: Config, target: Target) -> Plan:
    """One noised phase over users."""
    users = len(units(screened, config)["private"])
    known = config.model_copy(update={"noise_multiplier": config.sigma(users, target)})
    rule: ClipNoise | LocalUpdates = known.rule(users, target)
    if config.local is not None:
        if config.clipping != "flat":
            raise UsageError(f"user_dp with local updates clips flat, found clipping = {config.clipping!r}")
        rule = LocalUpdates(config.clip, known.sigma(users, target), **config.local.model_dump())
    rate, optimiser = Poisson(config.sampling_rate(users)), config.optimiser.build()
    phase = Phase("private", ("original",), users, rate, rule, config.steps, optimiser, unit="user")
    return Plan("user_dp", (phase,), 1, target, screened.key, relation="add-remove")


def units(screened: ScreenedCorpus, config: Config) -> dict[str, Units]:
    """Whose each record is; one of which nobody knows it counts as a user's only one. A gradient is of the mean loss of a
    user's records; of a local update every batch is, so there a record weighs 1 (McMahan et al. 2018, Algorithm 1)."""
    found = by_user(mentions_in(screened, entities=False))
    if config.local is not None:
        found = replace(found, weights=np.ones_like(found.weights))
    return {"private": found}


def guarantees(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """Add/remove privacy of a user (guarantees.md §4.3)."""
    theorem = "Poisson-sampled Gaussian mechanism over users (guarantees.md §4.3)"
    yield by_units("user-dp", USER, merged(phases), 1, theorem, evidence)
