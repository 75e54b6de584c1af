"""What a plan will cost, read off the same events the ledger will hold."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isinf

from taciturn.mechanisms.config import NOTHING
from taciturn.mechanisms.signal import signal_warnings
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.calibrate import SMALLEST
from taciturn.privacy.accounting.calibrate import noise_multiplier as calibrated
from taciturn.privacy.accounting.events import Event, NonPrivate, PoissonGaussian, Relation
from taciturn.privacy.accounting.rounding import up
from taciturn.privacy.accounting.tradeoff import TradeOff
from taciturn.privacy.guarantees.claims import cost
from taciturn.privacy.guarantees.claims import epsilon_spent as spent_by
from taciturn.privacy.guarantees.guarantee import round_up
from taciturn.training.plan import Plan


def planned_epsilon(plan: Plan, relation: Relation | None = None) -> float | None:
    """ε of the whole plan at its target δ, by its own relation or another; None when the plan names no δ."""
    if plan.target.delta is None:
        return None
    return spent_by(plan.events(), relation or plan.relation, plan.target.delta, plan.group, plan.free)


def cost_lines(plan: Plan) -> list[str]:
    """The cost in words: one line per relation, how it stands to the target, and a warning where noise drowns all else.

    Without a δ there is no ε to state, and the warning stands alone.
    """
    if plan.target.delta is None:
        return signal_warnings(plan)
    private = [phase for phase in plan.phases if phase.private]
    unit: str = private[0].unit if private else "record"
    if any(phase.rule.sensitive for phase in private) or plan.free:
        unit = "detected"
    lines = []
    for relation, what in _CHANGES[unit]:
        epsilon = planned_epsilon(plan, relation)
        said = what.format(k=plan.group)
        number = "∞" if epsilon is None or isinf(epsilon) else f"{epsilon:.3f}"
        line = f"{relation} ({said}): ε = {number} at δ = {plan.target.delta:g}, unit {_UNITS[unit]}"
        lines.append(line + _attacked(plan, relation))
    planned, sigmas = planned_epsilon(plan), [phase.noise for phase in plan.phases if phase.private and phase.moves]
    lines += table_lines(plan)
    if plan.target.epsilon is not None and planned is not None:
        lines.append(against_target(plan.target.epsilon, planned, sigmas))
    return [*lines, *signal_warnings(plan)]


def table_lines(plan: Plan) -> list[str]:
    """What a table of values costs: ε of it alone, and the noise that the other steps would need without it."""
    tables, delta = [phase for phase in plan.phases if not phase.moves], plan.target.delta
    if not tables or delta is None:
        return []
    alone = compose({phase.event: plan.steps_of(phase) for phase in tables}, "substitution").epsilon(delta)
    said = f"of it the table of values alone: ε = {alone:.3f} at δ = {delta:g}"
    for phase in plan.phases:
        event = phase.event
        if plan.target.epsilon is not None and phase.moves and isinstance(event, PoissonGaussian):
            without = calibrated(plan.target.epsilon, delta, event.rate, plan.steps_of(phase), "substitution")
            said += f"; σ of phase {phase.name} is {phase.noise:.3g} beside it, {without:.3g} without"
    return [said]


def _attacked(plan: Plan, relation: Relation) -> str:
    """The most that an attack finds, where that is less than everything."""
    found, delta = cost(plan.events(), relation, plan.group, plan.free), plan.target.delta
    if found is None or delta is None:
        return ""
    told = TradeOff.of(found.curve(delta), found.epsilon(delta), delta)
    return f"; an attack finds at most {told.share()} at {told.alarms()} false alarms" if told.limits else ""


_UNITS = {
    "detected": "detected secret",
    "record": "record",
    "residual": "record",
    "user": "user",
    "user-entity": "user and entity",
}
_RECORD: tuple[tuple[Relation, str], ...] = (
    ("substitution", "a record becomes another"),
    ("add-remove", "a private record more or less"),
)
_CHANGES: dict[str, tuple[tuple[Relation, str], ...]] = {
    "record": _RECORD,
    "detected": (("substitution", "a secret that the policy detects becomes another"),),
    "residual": _RECORD[:1],
    "user": (("add-remove", "a user more or less"),),
    "user-entity": (("add-remove", "a user and an entity whose removal takes out {k} units"),),
}


def against_target(target: float, epsilon: float, sigmas: Sequence[float]) -> str:
    """Target and spent in one line; when more than 1 % of the target is left or it is exceeded, the reason.

    >>> against_target(4.0, 2.2, [1.5])
    'target ε = 4, spent 2.2 (55.0 %): noise_multiplier = 1.5 was set; leave it out and the target decides it'
    """
    line = f"target ε = {target:g}, spent {round_up(epsilon, 4)} ({epsilon / target:.1%})".replace("%", " %")
    if 0.99 * target <= epsilon <= up(target):
        return line
    if not sigmas:
        return f"{line}: no step has noise"
    if epsilon < target and max(sigmas) <= 1.01 * SMALLEST:
        return f"{line}: {SMALLEST:g} is the least noise_multiplier there is"
    return f"{line}: noise_multiplier = {max(sigmas):g} was set; leave it out and the target decides it"


def running(plan: Plan, marks: int = 12) -> Callable[..., float | None]:
    """ε spent after a number of steps, beside steps that were lost: an upper bound, exact at ``marks`` points of the private
    phases."""
    delta = plan.target.delta
    private = [step.number + 1 for step in plan.unroll() if step.phase.private]
    if delta is None or not private:
        return lambda *_: None
    events = [step.phase.event for step in plan.unroll() if step.phase.private]
    at = sorted({max(1, round(len(private) * i / marks)) for i in range(1, marks + 1)})
    known: dict[tuple[int, int], float] = {}

    def epsilon(done: int, lost: Mapping[Event, int] = NOTHING) -> float:
        noised = {event: count for event, count in lost.items() if not isinstance(event, NonPrivate)}
        n, also = bisect_right(private, done), sum(noised.values())
        if n + also == 0:
            return 0.0
        mark = at[bisect_left(at, n)] if n else 0
        if (mark, also) not in known:
            counts = Counter(events[:mark]) + Counter(noised)
            known[mark, also] = spent_by(counts, plan.relation, delta, plan.group, plan.free)
        return known[mark, also]

    return epsilon
