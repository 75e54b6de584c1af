"""Whether a plan can learn at all from its noised steps: noise against the most that clipped gradients can say.

A noised step moves the model by a mean gradient that in no direction is longer than C, and by noise of standard deviation
σC/B in every direction, with B the expected number of units a step (the constant divisor). r = σ/B is their ratio, the
effective noise multiplier of Li et al. 2022 (section 3.2). Over T steps signal adds up as T·C at most and noise as √T·σC/B:
r/√T is the ratio of the whole run, up to a constant the "total amount of noise" of Sander, Stock, Sablayrolles 2023. Both
are the best case for the plan: gradients that all agree, none shorter than C. Over d trained weights the noise is √d times
longer than in one direction, so a plan below these limits may still learn little.
"""

from __future__ import annotations

from math import sqrt

from taciturn.training.plan import Phase, Plan, SelectiveState

HELP = "more {units} a step (a larger rate or batch, or a larger corpus), a larger ε or δ, fewer trained weights (LoRA or frozen \
parts), a model or a first phase that already knows the public text"


def doubts(plan: Plan) -> list[str]:
    """One line for each noised phase that cannot learn, or that learns at best from many steps together."""
    return [line for phase in plan.phases if (line := _doubt(phase, plan.steps_of(phase)))]


def ratio(phase: Phase) -> float:
    """r: the standard deviation of the noise on a step's mean gradient in any one direction, in units of C."""
    return phase.noise / phase.expected if phase.expected else float("inf")


def _doubt(phase: Phase, steps: int) -> str:
    if not phase.private or isinstance(phase.rule, SelectiveState) or not steps:
        return ""
    step, units = ratio(phase), _NAMES[phase.unit]
    if step < 1:
        return ""
    whole = step / sqrt(steps)
    facts = f"σ = {phase.noise:.3g} over {phase.expected:.3g} {units} a step"
    if whole >= 1:
        head = (
            f"phase {phase.name} cannot learn: {facts} and {steps:,} steps, so in every direction the noise of the whole run "
            f"is {whole:.2g} × the most that all its gradients can add up to"
        )
        return f"{head}; what would help: {HELP.format(units=units)}, more steps"
    return (
        f"phase {phase.name} is mostly noise: {facts}, so in every direction a step's noise is {step:.2g} × the longest mean "
        f"gradient, and only what its {steps:,} steps agree on can be learned; what would help: {HELP.format(units=units)}"
    )


_NAMES = {"record": "records", "residual": "records", "user": "users", "user-entity": "units"}
