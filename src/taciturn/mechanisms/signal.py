"""Whether a plan can learn at all from its noised steps: noise against the most that clipped gradients can say.

A noised step moves the model by a mean gradient that in no direction is longer than C, and by noise of standard deviation
σC/B in every direction, with B the expected number of units a step (the constant divisor). r = σ/B is their ratio, the
effective noise multiplier of Li et al. 2022. Over T steps signal adds up as T·C at most and noise as √T·σC/B:
r/√T is the ratio of the whole run, up to a constant the "total amount of noise" of Sander, Stock, Sablayrolles 2023. Both
are the best case for the plan: gradients that all agree, none shorter than C. Over d trained weights the noise is √d times
longer than in one direction, so a plan below these limits may still learn little.
"""

from __future__ import annotations

from math import sqrt

from taciturn.training.phase import Phase
from taciturn.training.plan import Plan

SATURATED = 2.0
"""σ from which it grows at a given ε as fast as q·√T does, so that neither larger steps nor more of them change r/√T
(docs/budget.md has figures)."""

HELP = "a larger corpus, a larger ε or δ, fewer trained weights (LoRA or frozen parts), a model that knows public text"


def signal_warnings(plan: Plan) -> list[str]:
    """One line for each noised phase that cannot learn, or that learns at best from many steps together."""
    return [line for phase in plan.phases if (line := _doubt(phase, plan.steps_of(phase)))]


def cannot_learn(plan: Plan) -> list[str]:
    """Of these lines, those of phases that cannot learn at all."""
    phases = [(phase, plan.steps_of(phase)) for phase in plan.phases]
    return [line for phase, steps in phases if (line := _doubt(phase, steps)) and _whole(phase, steps) >= 1]


def _whole(phase: Phase, steps: int) -> float:
    """r/√T."""
    return ratio(phase) / sqrt(steps)


def ratio(phase: Phase) -> float:
    """r: the standard deviation of the noise on a step's mean gradient in any one direction, in units of C."""
    return phase.noise / phase.expected if phase.expected else float("inf")


def _doubt(phase: Phase, steps: int) -> str:
    if not (phase.private and phase.moves) or phase.rule.sensitive or not steps:
        return ""
    step, units = ratio(phase), _NAMES[phase.unit]
    if step < 1:
        return ""
    whole = _whole(phase, steps)
    facts = f"σ = {phase.noise:.3g} over {phase.expected:.3g} {units} a step, {steps:,} steps"
    more = f"more {units} a step, more steps"
    help = f"{HELP}; {more} at this σ, which costs ε" if phase.noise >= SATURATED else f"{more}, {HELP}"
    if whole >= 1:
        found = (
            f"cannot learn: {facts}. In every direction the noise of the whole run is {whole:.2g} × the most that all its "
            "gradients can add up to"
        )
    else:
        found = (
            f"is mostly noise: {facts}. In every direction a step's noise is {step:.2g} × the longest mean gradient, so "
            "only what many steps agree on can be learned"
        )
    return f"phase {phase.name} {found}. What would help: {help}"


_NAMES = {"record": "records", "residual": "records", "user": "users", "user-entity": "units"}
