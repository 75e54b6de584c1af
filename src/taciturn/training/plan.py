"""A training run as data: its phases, how often they come up, its model, seeds and target. Nothing here knows torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge

from taciturn.errors import UsageError
from taciturn.models.lora import Lora
from taciturn.privacy.accounting.events import Event, Part, Relation
from taciturn.text.urls import without_folders
from taciturn.training.phase import Phase

LEARNED = "bpe:"
"""Begins the name of a tokenizer that is learned from the public records of the corpus."""


@dataclass(frozen=True, slots=True)
class Model:
    """name, options, task, labels, lora (what `taciturn.models.hf.load_model` calls adapter), frozen and
    gradient_checkpointing: as that function takes them. tokenizer: as `taciturn.models.tokenizers.load_tokenizer` takes it.
    dtype: of matrix products in training; weights, norms and noise are float32 in any case. base_bits: 4 keeps frozen linear
    layers in 4 bits (:mod:`taciturn.models.four_bit`). chat_template, loss_on: of
    conversations, as `taciturn.models.template.set_template` and `taciturn.models.chat.ChatCoder` take them. prompt, words:
    the template and the words of :class:`taciturn.models.prompt.Prompt`."""

    name: str
    tokenizer: str = "auto"
    max_length: Annotated[int, Ge(3)] | None = None
    options: dict[str, Any] | None = None
    task: Literal["causal", "classify", "masked", "prompt"] = "causal"
    labels: tuple[str, ...] = ()
    lora: Lora | None = None
    frozen: tuple[str, ...] = ()
    dtype: Literal["float32", "bf16", "fp16"] = "float32"
    base_bits: Literal[4] | None = None
    gradient_checkpointing: bool = False
    chat_template: str = "auto"
    loss_on: Literal["all", "assistant"] = "all"
    prompt: str | None = None
    words: dict[str, str] | None = None


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
    """Everything that decides a run. ``phases`` run in order, ``repeat`` times over (``once`` ones the first time).

    average: decay of the moving average of the weights that is evaluated and exported, None for the last weights.
    relation, group, free: what the target is about: so many units that change together by this relation, for which the parts
    ``free`` are the same in both worlds (beside public ones and skeletons).
    """

    mechanism: str
    phases: tuple[Phase, ...]
    repeat: int
    target: Target
    corpus_key: str
    model: Model = Model("lstm", "bytes")
    seeds: Seeds = Seeds()
    relation: Relation = "substitution"
    average: float | None = None
    group: int = 1
    free: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        if self.average is not None and not 0 < self.average < 1:
            raise UsageError(f"average: expected a decay between 0 and 1 such as 0.999, found {self.average!r}")

    def unroll(self, first: int = 0) -> Iterator[Step]:
        """Every step of the run from number ``first`` on, in order; there are no others."""
        number = 0
        done = dict.fromkeys((p.name for p in self.phases), 0)
        for round in range(self.repeat):
            for phase in self.phases:
                for _ in range(0 if phase.once and round else phase.steps):
                    if number >= first:
                        yield Step(number, phase, done[phase.name], round)
                    done[phase.name] += 1
                    number += 1

    @property
    def total_steps(self) -> int:
        return sum(map(self.steps_of, self.phases))

    def steps_of(self, phase: Phase) -> int:
        """Steps of ``phase`` in the whole run."""
        return phase.steps if phase.once else self.repeat * phase.steps

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
            "group": self.group,
            "free": list(self.free),
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
                    "unit": phase.unit,
                    "rows": None if phase.rows is None else _digest(phase.rows),
                    "fill": None if phase.fill is None else asdict(phase.fill),
                    "packed": phase.packed,
                    "once": phase.once,
                    "targets": phase.targets,
                    "kept": phase.kept,
                }
                for phase in self.phases
            ],
            "repeat": self.repeat,
            "average": self.average,
            "model": _placeless(asdict(self.model)),
            "seeds": {**asdict(self.seeds), "noise": "os" if self.seeds.noise is None else self.seeds.noise},
            "corpus_key": self.corpus_key,
        }

    @property
    def key(self) -> str:
        """Digest of the plan: a resumed run must have the same."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _placeless(model: dict[str, Any]) -> dict[str, Any]:
    """What is published of a model: names of files and folders, not where they lie on a machine."""
    named: dict[str, Any] = {key: without_folders(model[key]) for key in ("name", "tokenizer", "chat_template")}
    lora = model["lora"]
    if lora and lora["start"]:
        named["lora"] = {**lora, "start": without_folders(lora["start"])}
    return {**model, **named}


def _digest(rows: tuple[int, ...]) -> dict[str, Any]:
    """Which rows, without a list of them."""
    text = ",".join(map(str, rows))
    return {"records": len(rows), "digest": hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}
