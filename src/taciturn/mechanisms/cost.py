"""What a plan will cost, read off the same events the ledger will hold."""

from __future__ import annotations

from collections.abc import Callable

from taciturn.privacy.accountant import compose
from taciturn.training.plan import Plan


def planned_epsilon(plan: Plan, relation: str = "substitution") -> float | None:
    """ε of the whole plan at its target δ; None when the plan names no δ."""
    if plan.target.delta is None:
        return None
    return compose(plan.events(), relation).epsilon(plan.target.delta)  # type: ignore[arg-type]


def spent(plan: Plan) -> list[str]:
    """The cost in words, one line per relation."""
    lines = []
    for relation, what in (
        ("substitution", "a record becomes another"),
        ("add-remove", "a private record more or less"),
    ):
        epsilon = planned_epsilon(plan, relation)
        lines.append(f"{relation} ({what}): ε = {epsilon:.3f} at δ = {plan.target.delta:g}, unit record")
    return lines


def running(plan: Plan, marks: int = 12) -> Callable[[int], float | None]:
    """ε spent after a number of steps: an upper bound, exact at ``marks`` points of the private phases."""
    delta = plan.target.delta
    private = [step.number + 1 for step in plan.unroll() if step.phase.private]
    if delta is None or not private:
        return lambda _: None
    events = [step.phase.event for step in plan.unroll() if step.phase.private]
    at = sorted({max(1, round(len(private) * i / marks)) for i in range(1, marks + 1)})
    known: dict[int, float] = {}

    def epsilon(done: int) -> float:
        n = sum(1 for number in private if number <= done)
        if n == 0:
            return 0.0
        mark = next(m for m in at if m >= n)
        if mark not in known:
            known[mark] = compose(events[:mark], "substitution").epsilon(delta)
        return known[mark]

    return epsilon
