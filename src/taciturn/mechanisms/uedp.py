"""User-entity differential privacy, with an estimator whose guarantee can be proved (docs/guarantees.md §4.4).

A unit is a user's sentences about one set of entities; a sentence in which nothing is detected is an entity of its own
(UeDP V.B). Each unit has a coin, one gradient clipped to β, and a constant divisor, so removing a user and an entity only
deletes units, and what it costs is a curve in how many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from taciturn.errors import DataError, UsageError
from taciturn.mechanisms.config import OptimiserConfig, Strict
from taciturn.mechanisms.corpus import mentions_in
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import TwoLevelGaussian
from taciturn.privacy.accounting.largest_group import largest_group
from taciturn.privacy.accounting.user_entity import TwoLevel, noise_for
from taciturn.privacy.accounting.user_entity import Units as Curve
from taciturn.privacy.guarantees.claims import Phases, law, merged
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.premises import NOISED, UNITS
from taciturn.privacy.guarantees.statements import by_units
from taciturn.privacy.guarantees.status import equal_worlds, with_status
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import ClipNoise
from taciturn.training.plan import Plan, Target
from taciturn.training.samplers import PoissonKinds, UserEntity
from taciturn.training.units.deletions import deletion_bounds, deletion_quantiles, deletions
from taciturn.training.units.grouping import Caps, by_user_entity, capped, kinds, row_keys
from taciturn.training.units.row_groups import Units

SUMMARY = "users and the entities they write about, protected together; a curve in the units a removal takes out"
THEOREM = "deletion of units (guarantees.md §4.4)"
MOST = 1000
"""Largest k that a certificate looks for ε ≤ 10 at."""


Weight = Annotated[float, Field(gt=0, le=1)]


class Config(Strict):
    """user_rate, entity_rate, extended_rate: q_u, q_e and q_s; without extended sentences (f_E) q_s = 0.

    coins: unit: a unit joins by a coin of its own, of rate q_u·q_e or q_u·q_s. two-level: by its user's coin and those of
    all its entities; ``limits`` (units of a user, users of an entity, units of both) is then a contract with the corpus.
    weights: w_e and w_s, of clipped gradients; constants, as a weight that followed counts would change with a removal.
    k: how many units go with the user and the entity that the target is about. units_per_user, units_per_entity,
    rows_per_unit, selects: as :class:`taciturn.training.units.grouping.Caps` has them.
    """

    coins: Literal["unit", "two-level"] = "unit"
    user_rate: float = Field(0.05, gt=0, le=1)
    entity_rate: float = Field(0.5, gt=0, le=1)
    extended_rate: float = Field(1.0, ge=0, le=1)
    weights: tuple[Weight, Weight] = (1.0, 1.0)
    steps: int = Field(200, ge=1)
    clip: float = Field(0.1, gt=0)
    noise_multiplier: float | None = Field(None, gt=0)
    k: int | None = Field(None, ge=1)
    limits: tuple[int, int, int] | None = None
    units_per_user: int | None = Field(None, ge=1)
    units_per_entity: int | None = Field(None, ge=1)
    rows_per_unit: int | None = Field(None, ge=1)
    selects: bool = False
    optimiser: OptimiserConfig = OptimiserConfig(lr=1e-3)

    @property
    def caps(self) -> Caps:
        return Caps(self.units_per_user, self.units_per_entity, self.rows_per_unit, self.selects)

    @property
    def rates(self) -> tuple[float, float]:
        """Of units of detected and of extended entities."""
        return self.user_rate * self.entity_rate, self.user_rate * self.extended_rate


def plan(screened: ScreenedCorpus, config: Config, target: Target) -> Plan:
    """One noised phase over units."""
    found = units(screened, config)["private"]
    counts = kinds(found)
    if config.coins == "unit":
        sampler: PoissonKinds | UserEntity = PoissonKinds(config.rates, counts, config.weights)
    else:
        sampler = _two_level(found, config)
    rule = ClipNoise(config.clip, _noise(config, target))
    optimiser = config.optimiser.build()
    phase = Phase("private", ("original",), len(found), sampler, rule, config.steps, optimiser, unit="user-entity")
    return Plan("uedp", (phase,), 1, target, screened.key, relation="add-remove", group=config.k or 1)


def _two_level(found: Units, config: Config) -> UserEntity:
    """The coins of users and entities, after a look whether the corpus keeps its contract."""
    if config.limits is None or config.selects:
        raise UsageError(
            "uedp with two-level coins: give limits (units of a user, users of an entity, units of both) and no "
            "cap that selects; its guarantee is for corpora within them"
        )
    at = deletion_bounds(found)
    there = (at.units_per_user, at.users_per_entity, at.units_per_user_entity)
    if any(here > limit for here, limit in zip(there, config.limits, strict=True)):
        raise DataError(
            f"limits: expected at most {config.limits} (units of a user, users of an entity, units of both), found {there}; "
            "raise them, or screen with larger records or fewer kinds of entities"
        )
    m = found.mentions
    assert m is not None
    q_u, q_e, q_s = config.user_rate, config.entity_rate, config.extended_rate
    n_e, n_s = kinds(found)
    held = sum(q_e ** len(m.of(int(found.rows[found.offsets[unit]]))) for unit in range(n_e))
    counts = (int(m.users.max()) + 1, m.detected, m.total - m.detected)
    expected = q_u * (held * config.weights[0] + q_s * n_s * config.weights[1])
    return UserEntity(q_u, q_e, q_s, counts, expected, config.limits)


def _noise(config: Config, target: Target) -> float:
    if config.noise_multiplier is not None:
        return config.noise_multiplier
    if target.epsilon is None or target.delta is None:
        raise UsageError("give epsilon and delta to calibrate the noise to, or a noise_multiplier")
    delta = target.delta
    if config.coins == "unit":
        if config.k is None:
            raise UsageError(
                "uedp: ε is a curve in how many units a removal takes out, so a target needs k; `taciturn plan` with a "
                "noise_multiplier shows where this corpus stands"
            )
        k = config.k
        return noise_for(
            target.epsilon,
            lambda sigma: Curve((max(config.rates),), sigma, config.steps, config.selects).epsilon(k, delta),
        )
    assert config.limits is not None
    rate, limits = max(config.entity_rate, config.extended_rate), config.limits
    return noise_for(
        target.epsilon, lambda sigma: TwoLevel(config.user_rate, rate, *limits, sigma, config.steps).epsilon(delta)
    )


def units(screened: ScreenedCorpus, config: Config) -> dict[str, Units]:
    """(user, entity set of a sentence), those about detected entities first."""
    keys = row_keys(screened.texts("original"), 0)
    found = capped(by_user_entity(mentions_in(screened)), config.caps, keys)[0]
    return {"private": replace(found, worth=np.repeat(config.weights, kinds(found)).astype(np.float32))}


def facts(screened: ScreenedCorpus, config: Config) -> dict[str, float]:
    """Where the corpus stands on the curve, and what caps dropped."""
    every = by_user_entity(mentions_in(screened))
    found, dropped = capped(every, config.caps, row_keys(screened.texts("original"), 0))
    at, (n_e, n_s) = deletion_quantiles(found), kinds(found)
    return {
        "median": at.median, "p95": at.p95, "largest": at.largest, "pairs": at.pairs, "detected": n_e, "extended": n_s,
        "dropped_units": dropped.units, "dropped_records": dropped.rows, "dropped_users": dropped.users,
        "within_10": float(deletions(found)[:11].sum()) / max(at.pairs, 1), **({"target_k": config.k} if config.k else {}),
    }  # fmt: skip


def guarantees(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """ε_k where the corpus stands, or of two-level coins within the limits (guarantees.md §4.4)."""
    counts, about = merged(phases), evidence.units
    two_level = [event for event in counts if isinstance(event, TwoLevelGaussian)]
    if two_level:
        within, run = two_level[0], law(counts)
        unit = (
            f"whether one user and one detected entity were there (at most {within.units_per_user} units of a user, "
            f"{within.users_per_entity} users of an entity, {within.units_per_user_entity} units of both)"
        )
        yield with_status(
            "uedp", unit, "add-remove", math.inf if run is None else run.epsilon(evidence.delta), evidence.delta,
            "two-level coins (guarantees.md §4.4)", (*NOISED, UNITS), evidence,
            curve=equal_worlds if run is None else run.curve,
        )  # fmt: skip
        return
    profile = compose(counts, "substitution" if evidence.selects else "add-remove")
    largest = (
        {} if profile.reason else {"largest_k_within_epsilon_10": largest_group(profile, evidence.delta, most=MOST)}
    )
    where = {
        "median": "the median pair",
        "p95": "95 % of pairs",
        "largest": "every pair",
        "target_k": "what the target is about",
    }
    said: dict[int, list[str]] = {}
    for name in where:
        if name in about:
            said.setdefault(int(about[name]), []).append(where[name])
    for k, names in sorted(said.items()):
        unit = f"whether one user and one detected entity, with {k} units or fewer, were there ({', '.join(names)})"
        detail = {name: float(value) for name, value in {**about, **largest}.items()}
        yield by_units("uedp", unit, counts, k, THEOREM, evidence, selects=evidence.selects, detail=detail)
