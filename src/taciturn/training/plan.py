"""A training run as data: phases, samplers, rules and what each step costs. Nothing here knows torch.

The privacy event of a phase is derived from its sampler and rule, so the rate and the noise that are accounted for are
the ones that run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any, Literal

from taciturn.errors import UsageError
from taciturn.models.lora import Lora
from taciturn.privacy.events import Event, NonPrivate, PoissonGaussian
from taciturn.training.schedules import Optimiser

Part = Literal["public", "private", "skeletons", "redacted", "original"]


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Minibatches of a fresh permutation, every record once an epoch. No privacy: for parts that cost nothing."""

    batch_size: int


@dataclass(frozen=True, slots=True)
class Poisson:
    """Each record joins each step independently with probability ``rate``; a step may be empty, and still is one."""

    rate: float


@dataclass(frozen=True, slots=True)
class Plain:
    """Mean loss per token, no clipping, no noise."""


@dataclass(frozen=True, slots=True)
class ClipNoise:
    """Per-record gradients clipped to ``clip``, summed, plus Gaussian noise, over the constant q·N.

    clipping: flat; per-layer (each of L layers to clip/√L); automatic (normalised to clip); adaptive (flat, and ``clip``
    follows the ``quantile`` of the gradient norms at speed ``quantile_rate``, from a count noised with ``count_noise``).
    noise_multiplier: of the whole step. With adaptive clipping the sum gets more noise than that and the count the rest:
    a record moves the pair (sum/(z_Δ·C), (count − ½)/σ_b) by at most √(z_Δ⁻² + (2σ_b)⁻²) = 1/noise_multiplier
    (Andrew et al. 2021, Theorem 1).
    """

    clip: float
    noise_multiplier: float
    clipping: Literal["flat", "per-layer", "automatic", "adaptive"] = "flat"
    quantile: float = 0.5
    quantile_rate: float = 0.2
    count_noise: float = 10.0

    def __post_init__(self) -> None:
        if self.adapts and self.count_noise <= self.noise_multiplier / 2:
            raise UsageError(
                f"count_noise {self.count_noise:g} must be above half the noise multiplier {self.noise_multiplier:g}: the "
                "count alone would cost more than the whole step may"
            )

    @property
    def adapts(self) -> bool:
        return self.clipping == "adaptive"

    @property
    def factors(self) -> str:
        """The name of the clipping rule in `taciturn.persample.clip.RULES`."""
        return "flat" if self.adapts else self.clipping

    @property
    def sum_noise(self) -> float:
        """z_Δ: the noise multiplier of the sum of gradients."""
        if not self.adapts or self.noise_multiplier == 0:
            return self.noise_multiplier
        return float((self.noise_multiplier**-2 - (2 * self.count_noise) ** -2) ** -0.5)


@dataclass(frozen=True, slots=True)
class Phase:
    """``steps`` updates over the records of ``reads`` (their number is ``records``), each time the phase comes up.

    Raises UsageError for a sampler, or a sampler and a rule together, that have no accounting, naming the guarantee they
    would break.
    """

    name: str
    reads: tuple[Part, ...]
    records: int
    sampler: Shuffle | Poisson
    rule: Plain | ClipNoise
    steps: int
    optimiser: Optimiser

    def __post_init__(self) -> None:
        if type(self.sampler) not in (Shuffle, Poisson):
            raise UsageError(
                f"phase {self.name!r}: a phase draws its own records, by Shuffle(batch_size) or Poisson(rate); found a "
                f"{type(self.sampler).__name__}. The ε of a run holds for records drawn independently at the rate that is "
                "accounted for, and a sampler or loader from outside breaks that guarantee without a sign of it"
            )
        if isinstance(self.rule, ClipNoise) and not isinstance(self.sampler, Poisson):
            raise UsageError(
                f"phase {self.name!r}: clipped and noised steps need Poisson sampling, got {type(self.sampler).__name__}. "
                "Amplification by sampling, and with it ε, holds for records drawn independently; shuffled batches have "
                "another, larger cost that is not accounted for here"
            )
        if isinstance(self.rule, Plain) and isinstance(self.sampler, Poisson):
            raise UsageError(f"phase {self.name!r}: plain steps take shuffled batches")

    @property
    def event(self) -> Event:
        """What one step of this phase costs."""
        if isinstance(self.rule, ClipNoise) and isinstance(self.sampler, Poisson):
            return PoissonGaussian(self.sampler.rate, self.rule.noise_multiplier)
        return NonPrivate(tuple(self.reads))

    @property
    def private(self) -> bool:
        return isinstance(self.rule, ClipNoise)


@dataclass(frozen=True, slots=True)
class Model:
    """name, options, task, labels, lora (what `taciturn.models.hf.load_model` calls adapter), frozen and
    gradient_checkpointing: as that function takes them. tokenizer: as `taciturn.models.tokens.load_tokenizer` takes it.
    dtype: of matrix products in training; weights, norms and noise are float32 in any case. chat_template, loss_on: of
    conversations, as `taciturn.models.template.set_template` and `taciturn.models.chat.ChatCoder` take them."""

    name: str
    tokenizer: str = "auto"
    max_length: int | None = None
    options: dict[str, Any] | None = None
    task: Literal["causal", "classify", "masked"] = "causal"
    labels: tuple[str, ...] = ()
    lora: Lora | None = None
    frozen: tuple[str, ...] = ()
    dtype: Literal["float32", "bf16", "fp16"] = "float32"
    gradient_checkpointing: bool = False
    chat_template: str = "auto"
    loss_on: Literal["all", "assistant"] = "all"


@dataclass(frozen=True, slots=True)
class Seeds:
    """model: initial weights and dropout. data: the order of public batches. noise: None draws noise *and private
    samples* from the operating system's entropy; a number makes a run repeatable, its certificate not for release."""

    model: int = 0
    data: int = 0
    noise: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One update: its number in the run, in its phase, and how often the phase has come up before."""

    number: int
    phase: Phase
    in_phase: int
    round: int


@dataclass(frozen=True, slots=True)
class Target:
    """What a run may spend: confidentiality ε at δ, by substitution. None where nothing was asked for."""

    epsilon: float | None = None
    delta: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that decides a run. ``phases`` run in order, ``repeat`` times over.

    average: decay of the moving average of the weights that is evaluated and exported, None for the last weights.
    """

    mechanism: str
    phases: tuple[Phase, ...]
    repeat: int
    target: Target
    corpus_key: str
    model: Model = Model("lstm", "bytes")
    seeds: Seeds = Seeds()
    relation: str = "substitution"
    average: float | None = None

    def __post_init__(self) -> None:
        if self.average is not None and not 0 < self.average < 1:
            raise UsageError(f"average: expected a decay between 0 and 1 such as 0.999, found {self.average!r}")

    def unroll(self, first: int = 0) -> Iterator[Step]:
        """Every step of the run from number ``first`` on, in order; there are no others."""
        number = 0
        done = dict.fromkeys((p.name for p in self.phases), 0)
        for round in range(self.repeat):
            for phase in self.phases:
                for _ in range(phase.steps):
                    if number >= first:
                        yield Step(number, phase, done[phase.name], round)
                    done[phase.name] += 1
                    number += 1

    @property
    def total_steps(self) -> int:
        return self.repeat * sum(phase.steps for phase in self.phases)

    def steps_of(self, phase: Phase) -> int:
        """Steps of ``phase`` in the whole run."""
        return self.repeat * phase.steps

    def events(self) -> dict[Event, int]:
        """How often each event happens in the whole run."""
        counts: dict[Event, int] = {}
        for phase in self.phases:
            if phase.steps:
                counts[phase.event] = counts.get(phase.event, 0) + self.steps_of(phase)
        return counts

    def to_json(self) -> dict[str, Any]:
        """What plan.json holds; the certificate quotes it and ``verify`` recomputes from it."""
        return {
            "mechanism": self.mechanism,
            "relation": self.relation,
            "target": None if self.target.epsilon is None else asdict(self.target),
            "phases": [
                {
                    "name": phase.name,
                    "reads": list(phase.reads),
                    "records": phase.records,
                    "steps": self.steps_of(phase),
                    "event": phase.event.to_json(),
                    "sampler": {"name": type(phase.sampler).__name__, **asdict(phase.sampler)},
                    "rule": {"name": type(phase.rule).__name__, **asdict(phase.rule)},
                    "optimiser": asdict(phase.optimiser),
                }
                for phase in self.phases
            ],
            "repeat": self.repeat,
            "average": self.average,
            "model": asdict(self.model),
            "seeds": {**asdict(self.seeds), "noise": "os" if self.seeds.noise is None else self.seeds.noise},
            "corpus_key": self.corpus_key,
        }

    @property
    def key(self) -> str:
        """Digest of the plan: a resumed run must have the same."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def epoch_steps(records: int, sampler: Shuffle | Poisson) -> int:
    """Steps of one epoch: every record once (shuffle), or once on average (Poisson; CRT, Algorithm 1, footnote 3)."""
    if isinstance(sampler, Shuffle):
        return ceil(records / sampler.batch_size)
    return max(1, round(1 / sampler.rate)) if records else 0
