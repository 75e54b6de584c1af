"""From a configuration to a plan, and what will be said of it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from math import inf

from taciturn.errors import GuaranteeError, UsageError
from taciturn.mechanisms.config import parse
from taciturn.mechanisms.corpus import check_counts
from taciturn.mechanisms.corpus_evidence import evidence, learns_tokens, unsure_validation
from taciturn.mechanisms.cost import planned_epsilon
from taciturn.mechanisms.refusals import refuse
from taciturn.mechanisms.registry import guarantees, mechanism
from taciturn.mechanisms.settings import RunConfig
from taciturn.privacy.certificates.composed_runs import compose_runs, promised
from taciturn.privacy.certificates.history import paid_by_run
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.private_selection import Runs
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.training.plan import Plan, Seeds, Target


def make_plan(config: RunConfig, screened: ScreenedCorpus, salt: bytes = b"") -> Plan:
    """The plan a configuration comes to on this corpus; pure, and calibrates the noise when no σ is given.

    The plan is published with the certificate and names the corpus by a hash under ``salt``: the content key itself
    depends on every secret, so whoever knows the rest of the text could test guesses against it.
    """
    module = mechanism(config.mechanism)
    options = parse(module.Config, config.options, f"options of {config.mechanism}")
    noise = config.seeds.noise
    if isinstance(noise, str) and noise != "os":
        raise UsageError(f'seeds.noise: expected "os" or a number, found {noise!r}')
    seeds = Seeds(config.seeds.model, config.seeds.data, None if isinstance(noise, str) else noise)
    made = module.plan(screened, options, Target(config.epsilon, config.delta))
    assert isinstance(made, Plan)
    _reachable(made)
    refuse(made, options, config.allow)
    blinded = hashlib.blake2b(made.corpus_key.encode(), key=salt, digest_size=16).hexdigest()
    made = replace(made, corpus_key=blinded, model=config.model.build(), seeds=seeds, average=config.train.average)
    if config.epsilon is not None and learns_tokens(made):
        raise GuaranteeError(
            f"tokenizer {config.model.tokenizer} is learned without noise from public records, and {made.mechanism} is to "
            "protect these as well, so no target can be kept: choose bytes, or a tokenizer that was made from other text"
        )
    return made


def expected_guarantees(config: RunConfig, plan: Plan, screened: ScreenedCorpus) -> list[Guarantee]:
    """What a certificate will say if ``plan`` is run as it is."""
    phases = {phase.name: {phase.event: plan.steps_of(phase)} for phase in plan.phases}
    return guarantees(plan.mechanism, phases, evidence_of(config, plan, screened))


def if_chosen(config: RunConfig, plan: Plan, screened: ScreenedCorpus, runs: Runs) -> list[Guarantee]:
    """What a certificate will say of a run of ``plan`` that is the best of ``runs`` many like it."""
    phases = {phase.name: {phase.event: plan.steps_of(phase)} for phase in plan.phases}
    evidence = evidence_of(config, plan, screened)
    found = compose_runs(paid_by_run(plan.to_json(), phases, evidence.seeded_noise), evidence.delta, runs)
    return promised(found, phases, evidence)


def evidence_of(config: RunConfig, plan: Plan, screened: ScreenedCorpus, validated: bool | None = None) -> Evidence:
    """What is known of a run of ``plan`` beside its steps. validated: whether it has validation text, where that is more
    than the configuration names. Raises DataError where the plan's numbers of units are not those of the corpus."""
    module = mechanism(config.mechanism)
    options = parse(module.Config, config.options, f"options of {config.mechanism}")
    check_counts(plan, screened, module.units(screened, options) if hasattr(module, "units") else {})
    facts = module.facts(screened, options) if hasattr(module, "facts") else {}
    private = unsure_validation(config.train, screened, validated)
    return replace(evidence(plan, screened, facts, options), private_validation=private)


def _reachable(plan: Plan) -> None:
    """Refuse a target that no noise can keep: what the policy misses is in what is read plainly."""
    if plan.target.epsilon is None or planned_epsilon(plan) != inf:
        return
    plainly = sorted({part for phase in plan.phases if not phase.private for part in phase.reads})
    raise GuaranteeError(
        f"{plan.mechanism} reads {' and '.join(plainly)} text without noise, so a secret that the policy misses costs ε = ∞ "
        "and no target can be kept: leave epsilon out, or choose a mechanism with noise on all that may hold secrets"
    )


def within_target(plan: Plan) -> None:
    """Refuse a plan that would spend more than its target. Raises GuaranteeError."""
    epsilon = planned_epsilon(plan)
    if plan.target.epsilon is not None and epsilon is not None and epsilon > plan.target.epsilon:
        raise GuaranteeError(
            f"{plan.mechanism} would spend ε = {epsilon:.4g} at δ = {plan.target.delta:g} where the target is "
            f"{plan.target.epsilon:g}: raise the noise, lower rate or steps, or leave the target out"
        )
