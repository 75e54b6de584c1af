"""What the configuration of a run may say, shared by every mechanism; unknown keys are errors that name the nearest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

from taciturn.errors import UsageError, nearest, similar
from taciturn.privacy.accounting.calibrate import noise_multiplier as calibrated
from taciturn.privacy.accounting.events import Event
from taciturn.training.phase_terms import ClipNoise
from taciturn.training.plan import Target
from taciturn.training.schedules import Optimiser

Config = TypeVar("Config", bound=BaseModel)
NOTHING: Mapping[Event, int] = MappingProxyType({})


class Strict(BaseModel):
    """A table of a configuration file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def table_of(source: type, **own: Any) -> Any:
    """A table with the fields, types, limits and defaults of the dataclass ``source``, so that no setting is written twice.
    own: fields that come before them, as ``pydantic.create_model`` takes them."""
    hints = get_type_hints(source, include_extras=True)
    given: dict[str, Any] = {
        f.name: (hints[f.name], ... if f.default is MISSING else f.default) for f in fields(source)
    }
    return create_model(f"{source.__name__}Table", __base__=Strict, __module__=__name__, **{**own, **given})


class OptimiserConfig(table_of(Optimiser)):  # type: ignore[misc]
    """See :class:`taciturn.training.schedules.Optimiser`, which also checks how the values go together."""

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        try:
            self.build()
        except UsageError as error:
            raise ValueError(str(error)) from None
        return self

    def build(self) -> Optimiser:
        return Optimiser(**self.model_dump())


class PublicSteps(Strict):
    """Noiseless training: epochs over the readable text in shuffled minibatches. packed: batches are laid end to end and cut
    into blocks of so many tokens, for which nothing is guaranteed; 0 for records as they are. kept: at the end the weights
    are (1 − kept)·(as the run began) + kept·(as trained), WiSE-FT (Wortsman et al. 2022)."""

    packed: int = Field(0, ge=0)
    kept: float = Field(1.0, ge=0, le=1)
    epochs: int = Field(3, ge=1)
    batch_size: int = Field(32, ge=1)
    optimiser: OptimiserConfig = OptimiserConfig(lr=1e-3, max_grad_norm=1.0)


class PrivateSteps(Strict):
    """DP-SGD. rate: Poisson rate, else ``batch``/N. steps: in the whole run. noise_multiplier: σ, else calibrated to ε.

    clipping and what follows it: see :class:`taciturn.training.phase_terms.ClipNoise`. count_noise: σ of the count that
    adaptive clipping looks at, a twentieth of the expected batch by default (Andrew et al. 2021, section 3.1).
    """

    batch: int = Field(256, ge=1)
    rate: float | None = Field(None, gt=0, le=1)
    steps: int = Field(200, ge=1)
    clip: float = Field(1.0, gt=0)
    noise_multiplier: float | None = Field(None, gt=0)
    clipping: Literal["flat", "per-layer", "automatic", "adaptive"] = "flat"
    quantile: float = Field(0.5, gt=0, lt=1)
    quantile_rate: float = Field(0.2, gt=0)
    count_noise: float | None = Field(None, gt=0)
    optimiser: OptimiserConfig = OptimiserConfig(lr=1e-3)

    def rule(self, records: int, target: Target, beside: Mapping[Event, int] = NOTHING) -> ClipNoise:
        """What one step does, with the noise that keeps the run, and what is released ``beside`` it, within the target."""
        sigma = self.noise(records, target, beside)
        if self.clipping != "adaptive":
            return ClipNoise(self.clip, sigma, self.clipping)
        count = self.count_noise or max(self.sampling_rate(records) * records / 20, sigma)
        return ClipNoise(self.clip, sigma, self.clipping, self.quantile, self.quantile_rate, count)

    def sampling_rate(self, records: int) -> float:
        """q; a function of the number of records only, which a secret cannot change."""
        return self.rate if self.rate is not None else min(1.0, self.batch / max(records, 1))

    def noise(self, records: int, target: Target, beside: Mapping[Event, int] = NOTHING) -> float:
        """σ as given, or the smallest that keeps the run within the target by substitution."""
        if self.noise_multiplier is not None:
            return self.noise_multiplier
        if target.epsilon is None or target.delta is None:
            raise UsageError("give epsilon and delta to calibrate the noise to, or a noise_multiplier")
        return calibrated(target.epsilon, target.delta, self.sampling_rate(records), self.steps, "substitution", beside)


def parse(model: type[Config], raw: dict[str, Any], where: str) -> Config:
    """Validate one table; errors name the key, what was found, and the nearest known key."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        problems = []
        for e in error.errors(include_url=False):
            path = ".".join(str(part) for part in e["loc"]) or "together"
            if e["type"] == "extra_forbidden":
                known = _known(model, e["loc"][:-1])
                problems.append(f"unknown key {path!r} ({nearest(str(e['loc'][-1]), known)})")
            elif e["type"] == "value_error":
                problems.append(f"{path}: {e['ctx']['error']}")
            elif e["type"] == "literal_error" and isinstance(e["input"], str):
                choices = re.findall(r"'([^']*)'", e["ctx"]["expected"])
                problems.append(f"{path}: {e['input']!r} is unknown: {nearest(e['input'], choices)}")
            else:
                problems.append(f"{path}: {e['msg']}, found {e['input']!r}")
        raise UsageError(f"{where}: " + "; ".join(problems)) from None


def _known(model: type[BaseModel], path: tuple[Any, ...]) -> list[str]:
    here: Any = model
    for part in path:
        field = getattr(here, "model_fields", {}).get(part)
        here = field.annotation if field is not None else here
    return list(getattr(here, "model_fields", {}))


def existing(path: Path, what: str) -> Path:
    """``path`` if it is there, else a UsageError that says what was expected."""
    if not path.exists():
        raise UsageError(f"{path}: no such {what}{similar(path)}")
    return path
