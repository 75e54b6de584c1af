"""Batch, steps and σ for a target and a budget of compute, from the number of records alone.

All plans looked at read the same number of units in their noised steps, B·T, so they cost the same time. Of these the one is
taken whose noise over the whole run is smallest beside the most that its gradients can say: r/√T of
:mod:`taciturn.mechanisms.signal`, the total amount of noise of Sander, Stock and Sablayrolles 2023. That ratio alone would
always ask for fewer and larger steps, and no model is taught in one: at least ``least`` steps are taken, and of plans whose
ratios lie within ``CLOSE`` of the best the one with the most steps. Only counts are read, which a secret cannot change; that
the number of records is known is taken for granted here as in every plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from taciturn.errors import GuaranteeError, UsageError
from taciturn.mechanisms.config import parse
from taciturn.mechanisms.planning import make_plan
from taciturn.mechanisms.registry import mechanism
from taciturn.mechanisms.settings import RunConfig
from taciturn.mechanisms.signal import ratio
from taciturn.screening.corpus.screened import ScreenedCorpus

LEAST = 20
"""A choice, not a finding: Adam moves a weight by about its rate in a step, so few steps lead nowhere. Five steps of 256 and
twenty of 64 were not told apart (docs/results.md, section 7)."""
CLOSE = 1.05


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan of the budget: its configuration, σ and the ratio of its whole run."""

    config: RunConfig
    batch: int
    steps: int
    noise_multiplier: float
    ratio: float

    def to_json(self) -> dict[str, float]:
        names = ("batch", "steps", "noise_multiplier", "ratio")
        return {name: getattr(self, name) for name in names}


def search(config: RunConfig, screened: ScreenedCorpus, reads: int, least: int = LEAST) -> list[Candidate]:
    """Plans whose noised steps read ``reads`` units in all, the one to take first, the others by their number of steps.

    Raises UsageError where the mechanism has no batch and steps to choose, where those, a rate or σ are given, where no
    target is, or where ``reads`` does not suffice for ``least`` steps; GuaranteeError where no plan keeps the target.
    """
    module = mechanism(config.mechanism)
    path = _place(config, module.Config)
    if config.epsilon is None or config.delta is None:
        raise UsageError("a search needs a target: give epsilon and delta")
    if reads < least:
        raise UsageError(f"{reads} units read in all do not suffice for {least} steps: give more, e.g. {least * 256}")
    tried, refused = [], ""
    for steps in _steps(reads, least):
        batch = reads // steps
        chosen = config.model_copy(update={"options": _put(config.options, path, {"batch": batch, "steps": steps})})
        try:
            made = make_plan(chosen, screened)
        except (
            UsageError,
            GuaranteeError,
        ) as error:  # a batch larger than the corpus, steps that alternation cannot share
            refused = str(error)
            continue
        (phase,) = [each for each in made.phases if each.private and each.moves]
        total = ratio(phase) / sqrt(made.steps_of(phase))
        tried.append(Candidate(chosen, batch, steps, phase.noise, total))
    if not tried:
        raise GuaranteeError(f"no plan that reads {reads} units in at least {least} steps can be made: {refused}")
    return best_first(tried)


def best_first(tried: Sequence[Candidate]) -> list[Candidate]:
    """The one to take, then the others in their order."""
    lowest = min(each.ratio for each in tried)
    best = max((each for each in tried if each.ratio <= CLOSE * lowest), key=lambda each: each.steps)
    return [best, *(each for each in tried if each is not best)]


def _steps(reads: int, least: int) -> list[int]:
    """least, 2·least, … as long as a step reads a unit."""
    found = [least]
    while 2 * found[-1] <= reads:
        found.append(2 * found[-1])
    return found[:8]


def _place(config: RunConfig, options: Any) -> tuple[str, ...]:
    """Where in the options batch and steps stand."""
    path: tuple[str, ...] = ("private",) if "private" in options.model_fields else ()
    table = options.model_fields["private"].annotation if path else options
    if not {"batch", "steps"} <= set(getattr(table, "model_fields", ())):
        raise UsageError(f"{config.mechanism} has no batch and steps to search: crt, dpsgd, jft, user_dp have")
    parse(options, config.options, f"options of {config.mechanism}")
    given = config.options
    for key in path:
        given = given.get(key, {})
    if fixed := sorted({"batch", "steps", "rate", "noise_multiplier"} & set(given)):
        raise UsageError(
            f"a search chooses batch, steps and σ: leave {' and '.join('.'.join((*path, f)) for f in fixed)} out"
        )
    return path


def _put(options: dict[str, Any], path: Sequence[str], values: dict[str, int]) -> dict[str, Any]:
    if not path:
        return {**options, **values}
    return {**options, path[0]: _put(options.get(path[0], {}), path[1:], values)}
