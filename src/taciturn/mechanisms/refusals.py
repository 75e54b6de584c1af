"""What makes a plan an error unless it is allowed by name: nothing of it is unsound, and nearly all of it is a mistake.

large-delta   δ is not below one over the number of units that noise protects
full-batch    the batch is larger than the corpus, so every unit is in every step
cannot-learn  the noise of a phase is more than all its gradients can add up to (signal.py)
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from taciturn.errors import UsageError
from taciturn.mechanisms.signal import cannot_learn
from taciturn.privacy.guarantees.evidence import Allow
from taciturn.training.plan import Plan

DEFAULT_DELTA = 1e-5


def protected(plan: Plan) -> int | None:
    """How many units steps with noise draw from; None where no step has noise."""
    return max((phase.records for phase in plan.phases if phase.private), default=None)


def refusals(plan: Plan, options: Any) -> dict[Allow, str]:
    """Name → what is the matter, in words. options: the mechanism's own."""
    found: dict[Allow, str] = {}
    units, delta = protected(plan), plan.target.delta or DEFAULT_DELTA
    if units and delta >= 1 / units:
        found["large-delta"] = (
            f"δ = {delta:g} is not below 1/{units}, one over the number of units that noise protects, and to publish one of "
            "them whole would keep such a promise; choose a smaller δ"
        )
    batch = max((each.batch for each in _sampled(options)), default=0)
    if units and batch > units:
        found["full-batch"] = (
            f"a batch of {batch} is larger than the {units} units there are: every step reads all of them, and sampling "
            "hides nobody; choose a smaller batch (or rate = 1, if that is what you want)"
        )
    if lines := cannot_learn(plan):
        found["cannot-learn"] = "; ".join(lines)
    return found


def _sampled(options: Any) -> list[Any]:
    """The tables of ``options`` whose sampling rate is a batch over the size of the corpus."""
    tables = [options, *(getattr(options, name, None) for name in ("private", "light"))]
    return [each for each in tables if getattr(each, "batch", None) and getattr(each, "rate", None) is None]


def refuse(plan: Plan, options: Any, allow: Collection[str]) -> None:
    """Raises UsageError for what is the matter with a plan and was not allowed."""
    if left := {name: why for name, why in refusals(plan, options).items() if name not in allow}:
        flags = " ".join(f"--allow {name}" for name in left)
        raise UsageError(f"{'. '.join(left.values())}. To do it all the same: {flags} (allow in run.toml)")
