"""plan.json as a verifier reads it: a closed set of fields, each number within limits. `training/plan.py` writes it.

What decides a guarantee (relation, group, phases with events and steps, target, seeds) is checked by value; how a model is
made and trained (model, sampler, rule, optimiser, fill) by the names of its fields: it is quoted, and nothing is computed
from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from taciturn.errors import DataError, TaciturnError, nearest
from taciturn.privacy import limits
from taciturn.privacy.accounting.event_files import from_json
from taciturn.privacy.accounting.events import NonPrivate, Part, Relation

PLAN = "plan.json"

SAMPLERS = {
    "Shuffle": {"batch_size"},
    "Poisson": {"rate"},
    "PoissonKinds": {"rates", "counts", "weights"},
    "UserEntity": {"user_rate", "entity_rate", "extended_rate", "counts", "expected", "limits"},
}
_CLIP = {"clip", "noise_multiplier", "clipping", "quantile", "quantile_rate", "count_noise"}
RULES = {
    "Plain": set[str](),
    "ClipNoise": _CLIP,
    "SelectiveState": {"clip", "noise_multiplier", "state_clip", "state_noise", "runs"},
    "Residual": {"noised", "batch_size"},
    "LocalUpdates": {"clip", "noise_multiplier", "lr", "batch_size", "epochs", "caps"},
    "Counts": {"noise_multiplier", "threshold", "record_weight", "keys", "shares", "one_sided", "copies"},
}
PARTS = {
    "optimiser": {
        "name", "lr", "weight_decay", "momentum", "nesterov", "betas", "eps", "schedule", "schedule_options", "warmup",
        "max_grad_norm",
    },
    "fill": {"source", "loss", "longest", "table", "candidates", "known"},
    "rows": {"records", "digest"},
    "model": {
        "name", "tokenizer", "max_length", "options", "task", "labels", "lora", "frozen", "dtype", "base_bits",
        "gradient_checkpointing", "chat_template", "loss_on", "prompt", "words",
    },
}  # fmt: skip

Name = Annotated[str, Field(max_length=64)]
Count = Annotated[int, Field(ge=0, le=limits.COUNT)]
Steps = Annotated[int, Field(ge=0, le=limits.STEPS)]
Object = dict[str, Any]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class _Target(_Closed):
    epsilon: float = Field(gt=0, le=limits.EPSILON)
    delta: float = Field(ge=limits.DELTA, lt=1)


class _Seeds(_Closed):
    model: int = 0
    data: int = 0
    noise: int | Literal["os"]


class _Phase(_Closed):
    name: Name
    reads: list[Part] = Field(max_length=8)
    records: Count | None = None
    steps: Steps
    event: Object
    sampler: Object | None = None
    rule: Object | None = None
    optimiser: Object | None = None
    unit: Literal["record", "user", "user-entity", "residual"] = "record"
    rows: Object | None = None
    fill: Object | None = None
    packed: Count = 0
    once: bool = False
    targets: Literal["all", "marked"] = "all"
    kept: float = Field(1.0, ge=0, le=1)


class _Plan(_Closed):
    mechanism: Name
    relation: Relation
    group: int = Field(1, ge=1, le=limits.GROUP)
    free: list[Part] = Field(default=[], max_length=8)
    target: _Target | None
    phases: list[_Phase] = Field(min_length=1, max_length=limits.PHASES)
    repeat: Steps = 1
    average: float | None = Field(None, gt=0, lt=1)
    model: Object | None = None
    seeds: _Seeds
    corpus_key: str = Field(max_length=128)


def checked(plan: Mapping[str, Any]) -> None:
    """DataError names the first field that no plan has, lacks, or cannot have such a value in."""
    try:
        known = _Plan.model_validate_json(orjson.dumps(plan))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise DataError(f"{PLAN}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    names = [phase.name for phase in known.phases]
    if len(set(names)) != len(names):
        raise DataError(f"{PLAN}: phases: two have the same name")
    _named("model", known.model, PARTS["model"])
    for number, phase in enumerate(known.phases):
        where = f"phases.{number}"
        try:
            noised = not isinstance(from_json(phase.event), NonPrivate)
        except TaciturnError as error:
            raise DataError(f"{PLAN}: {where}.event: {error}") from error
        if noised and not phase.records:
            raise DataError(
                f"{PLAN}: {where}.records: expected how many units its steps with noise draw from, found "
                f"{'none' if phase.records is None else phase.records}; δ is held against one over that number"
            )
        _kind(f"{where}.sampler", phase.sampler, SAMPLERS)
        _kind(f"{where}.rule", phase.rule, RULES)
        if phase.rule is not None and phase.rule["name"] == "Residual":
            _named(f"{where}.rule.noised", phase.rule.get("noised"), _CLIP)
        for part in ("optimiser", "rows", "fill"):
            _named(f"{where}.{part}", getattr(phase, part), PARTS[part])


def _kind(where: str, value: Object | None, kinds: Mapping[str, set[str]]) -> None:
    if value is None:
        return
    name = value.get("name")
    if not isinstance(name, str) or name not in kinds:
        raise DataError(f"{PLAN}: {where}.name: {limits.short(name)} is unknown; {nearest(str(name)[:64], kinds)}")
    _named(where, value, kinds[name] | {"name"})


def _named(where: str, value: Any, fields: set[str]) -> None:
    """``value`` is an object whose fields are some of ``fields``, or is none."""
    if value is None:
        return
    if not isinstance(value, dict):
        raise DataError(f"{PLAN}: {where}: expected an object, found {type(value).__name__}")
    for name in value:
        if name not in fields:
            raise DataError(f"{PLAN}: {where}: {limits.short(name)} is not a field; {nearest(name[:64], fields)}")
