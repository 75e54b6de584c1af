"""What a run is given beside its plan: whether it fits, and what all processes must have alike."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
from torch import nn

from taciturn.errors import UsageError
from taciturn.models.tokens import Tokens
from taciturn.training.distributed.processes import World
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import Counts
from taciturn.training.plan import Plan
from taciturn.training.state.stuck_tensors import fingerprint
from taciturn.training.units.row_groups import Units
from taciturn.training.updates import release
from taciturn.training.values.slots import Slots

LIBRARIES = ("taciturn", "torch", "transformers", "numpy")


def check_given(plan: Plan, data: Mapping[str, Tokens | Slots], units: Mapping[str, Units]) -> None:
    """Raises UsageError and DataError for records and units that are not those of the plan's phases."""
    for phase in plan.phases:
        tokens = data[phase.name]
        if isinstance(phase.rule, Counts) != isinstance(tokens, Slots):
            raise UsageError(f"phase {phase.name!r}: Slots are what counts are of, and of nothing else")
        if isinstance(phase.rule, Counts) and isinstance(tokens, Slots) and phase.rule.one_sided and not tokens.known:
            raise UsageError(
                f"phase {phase.name!r}: its rule counts what is known to stand behind masks, and these Slots were found by "
                "laying texts beside each other, which moves further than Δ: give what is known, or one_sided = False"
            )
        if not isinstance(tokens, Tokens | Slots):
            raise UsageError(
                f"phase {phase.name!r}: expected its records as Tokens, found a {type(tokens).__name__}. The plan draws the "
                "batches; a loader of its own would draw them at a rate the accountant does not know, and the stated ε "
                "would not hold"
            )
        release.of(phase.rule)  # a rule that nothing carries out is named before anything is written
        if isinstance(tokens, Tokens) and phase.rule.sensitive and tokens.sensitive is None:
            raise UsageError(
                f"phase {phase.name!r}: its rule noises sensitive tokens, and its records do not say which those are"
            )
        if (phase.unit == "record") == (phase.name in units):
            raise UsageError(f"phase {phase.name!r} draws units of the kind {phase.unit!r}: give units, but for record")
        phase.check_drawn_from(len(units[phase.name]) if phase.name in units else len(tokens))


def check_cut(plan: Plan, world: World, cached: bool = False) -> None:
    """Raises UsageError for a plan that a model cut over the processes of ``world`` cannot follow, and where what its frozen
    layers make is to be kept."""
    if cached:
        raise UsageError(
            "train.frozen_cache with train.shard: layers that are cut are not skipped; leave one of them out"
        )
    if world.size > 1 and any(map(looks_back, plan.phases)):
        raise UsageError(
            "a phase that fills masks by the initial model, or stays near it, needs it whole: leave shard out"
        )
    if world.size > 1 and plan.model.base_bits is not None:
        raise UsageError("base_bits with train.shard: a base in 4 bits is not cut; leave one of them out")
    if plan.model.dtype == "fp16":
        raise UsageError(
            "shard with dtype fp16: an overflow in one process would have to be tried again by all; choose bf16 or float32"
        )


def looks_back(phase: Phase) -> bool:
    """Whether a phase needs the model as the run began."""
    return phase.kept < 1 or (phase.fill is not None and phase.fill.source == "initial" and phase.fill.asks)


def facts(plan: Plan, data: Mapping[str, Tokens | Slots], units: Mapping[str, Units]) -> dict[str, str]:
    """What all processes must have alike; hashes and versions only."""
    records = {f"the records of phase {name}": _digest(each) for name, each in data.items()}
    drawn = {f"the units of phase {name}": _hash(each.rows, each.offsets, each.weights) for name, each in units.items()}
    versions = {f"the version of {name}": version(name) for name in LIBRARIES}
    return {"the plan": plan.key, **versions, **records, **drawn}


def weights(model: nn.Module) -> dict[str, str]:
    """The same of a model that every process has a copy of; no tensor is copied."""
    found = [fingerprint(t).tolist() for t in model.state_dict().values()]
    return {"the model's weights": hashlib.blake2b(str(found).encode(), digest_size=16).hexdigest()}


def _digest(tokens: Tokens | Slots) -> str:
    if isinstance(tokens, Slots):
        return tokens.digest
    return _hash(tokens.flat, tokens.offsets, tokens.scored, tokens.labels, tokens.sensitive)


def _hash(*parts: Any) -> str:
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        if part is not None:
            found.update(np.ascontiguousarray(part).data)  # no copy: it may be larger than memory
    return found.hexdigest()
