"""UeDP's Algorithm 1 as printed, but for the size of its noise, which the authors' code squares (Lai et al. 2022).

Users are drawn, then entities; a drawn user trains on those of its sentences that hold a drawn entity, and what it moved is
clipped. Its Theorem 1 does not hold (docs/guarantees.md §4.4); a larger bound does, and both are stated. The factor
1/(q_e·W_e + q_s·W_s) of Eq. 4 scales signal and noise alike: here it belongs to the optimiser's rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field

from taciturn.errors import UsageError
from taciturn.mechanisms.config import OptimiserConfig, Strict
from taciturn.mechanisms.corpus import mentions_in
from taciturn.mechanisms.user_dp import Local
from taciturn.privacy.accounting.accountant import accountant_name
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.privacy.guarantees.claims import Phases, merged
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.premises import NOISED, UNITS
from taciturn.privacy.guarantees.published_uedp import exchanged, published_bound, published_claim
from taciturn.privacy.guarantees.status import with_status
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import LocalUpdates
from taciturn.training.plan import Plan, Target
from taciturn.training.samplers import UserEntity
from taciturn.training.units.deletions import holders
from taciturn.training.units.row_groups import Mentions, Units, grouped

SUMMARY = "UeDP's Algorithm 1 as printed: its own ε as a published claim, and a bound that holds"
WHY = "the paper takes the mean number of drawn users for the largest, and an update that changes for one that goes"
PAIR = "whether one user and one detected entity were there"


class Config(Strict):
    """user_rate, entity_rate, extended_rate: q_u, q_e, q_s. estimator: f_E leaves extended sentences out. scale: z, noise
    over the paper's sensitivity; or noise_multiplier, noise over the clip norm. caps: ŵ_u, ŵ_e, ŵ_s of the weights of
    users and entities (lines 3–5). The optimiser adds the mean of what users moved: sgd at lr 1."""

    user_rate: float = Field(0.05, gt=0, le=1)
    entity_rate: float = Field(0.5, gt=0, le=1)
    extended_rate: float = Field(1.0, ge=0, le=1)
    estimator: Literal["f_E", "f_E+"] = "f_E+"
    steps: int = Field(200, ge=1)
    clip: float = Field(0.1, gt=0)
    scale: float = Field(2.5, gt=0)
    noise_multiplier: float | None = Field(None, gt=0)
    caps: tuple[float, float, float] = (1.0, 1.0, 1.0)
    local: Local = Local()
    optimiser: OptimiserConfig = OptimiserConfig(name="sgd", lr=1.0)

    @property
    def q_s(self) -> float:
        return 0.0 if self.estimator == "f_E" else self.extended_rate


def plan(screened: ScreenedCorpus, config: Config, target: Target) -> Plan:
    """One phase of noised local updates."""
    if target.epsilon is not None:
        raise UsageError(
            "uedp-published takes no target ε, as its own number is not a guarantee: set options.scale, and read both "
            "numbers off the certificate; uedp takes a target"
        )
    found = units(screened, config)["private"]
    m, worth = found.mentions, found.worth
    assert m is not None
    assert worth is not None
    sampler = UserEntity(
        config.user_rate,
        config.entity_rate,
        config.q_s,
        (len(found), m.detected, m.total - m.detected),
        config.user_rate * float(worth.sum()),
    )
    # Eq. 6 times the divisor: z·(q_u·|U| + 1)·max(w_u)·β on the sum; σ is in units of β.
    sensitivity = (config.user_rate * len(found) + 1) * float(worth.max())
    noise = config.noise_multiplier or config.scale * sensitivity
    rule = LocalUpdates(config.clip, noise, **config.local.model_dump(), caps=config.caps)
    phase = Phase(
        "private", ("original",), len(found), sampler, rule, config.steps, config.optimiser.build(), unit="user"
    )
    return Plan("uedp-published", (phase,), 1, target, screened.key, relation="add-remove")


def units(screened: ScreenedCorpus, config: Config) -> dict[str, Units]:
    """Users with their weights, and the weights of entities (lines 3–5)."""
    m = mentions_in(screened)
    cap_u, cap_e, cap_s = config.caps
    users = grouped(m.users, int(m.users.max()) + 1)
    held = np.bincount(m.entities, minlength=m.total)
    caps = np.where(np.arange(m.total) < m.detected, cap_e, cap_s)
    weighed = replace(m, weights=np.minimum(held / caps, 1).astype(np.float32))
    worth = np.minimum(users.counts / cap_u, 1).astype(np.float32)
    return {"private": replace(users, mentions=weighed, worth=worth)}


def facts(screened: ScreenedCorpus, config: Config) -> dict[str, float]:
    """What the published number and the bound need to know of the corpus."""
    found = units(screened, config)["private"]
    m, worth = found.mentions, found.worth
    assert m is not None
    assert worth is not None
    sensitivity = (config.user_rate * len(found) + 1) * float(worth.max())
    noise = config.noise_multiplier or config.scale * sensitivity
    return {
        "users": len(found), "detected": m.detected, "extended": m.total - m.detected, "holders": holders(m),
        "sensitive_share": _sensitive(m), "entity_rate": config.entity_rate, "scale": noise / sensitivity,
    }  # fmt: skip


def _sensitive(m: Mentions) -> float:
    """Share of sentences with a detected entity."""
    return float(1 - m.extended.mean())


def guarantees(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """A bound that holds, and the paper's own number (guarantees.md §4.4)."""
    about = evidence.units
    ((event, steps),) = ((e, n) for e, n in merged(phases).items() if isinstance(e, PoissonGaussian))
    bound = published_bound(int(about["holders"]), event.rate, event.noise_multiplier, steps, evidence.delta)
    detail = {"holders": about["holders"], "epsilon_chain": bound.chain, "epsilon_direct": bound.direct}
    yield with_status(
        "uedp", f"{PAIR} (held by at most {int(about['holders'])} users)", "add-remove", bound.epsilon, evidence.delta,
        "clipped users in and out (guarantees.md §4.4)", (*NOISED, UNITS), evidence,
        curve=exchanged(int(about["holders"]), event.rate, event.noise_multiplier, steps).curve, detail=detail,
    )  # fmt: skip
    if not evidence.seeded_noise:
        claim = published_claim(
            event.rate, about["entity_rate"], about["sensitive_share"], about["scale"], steps, evidence.delta
        )
        yield Guarantee(
            "uedp", PAIR, "add-remove", claim.epsilon, evidence.delta, "published-claim", "UeDP Theorem 1, as published",
            accountant_name(), reason=WHY, detail={"rate": claim.rate, "order": float(claim.order)},
        )  # fmt: skip
