"""What the steps of a project share: its settings, its folders and what was made in them, each read when it is needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from taciturn.auditing.canaries.templates import Planted
from taciturn.auditing.finding import Finding
from taciturn.auditing.finding import load as load_findings
from taciturn.mechanisms.planning import make_plan
from taciturn.mechanisms.settings import RunConfig
from taciturn.privacy.certificates.certificate import CERTIFICATE, Certificate
from taciturn.privacy.guarantees.evidence import Allow
from taciturn.project.done_steps import State, key_of
from taciturn.project.settings import Project
from taciturn.project.split import Texts, texts
from taciturn.screening.corpus.manifest import Input
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.corpus.screened import load as load_screened
from taciturn.training.plan import Plan

Notify = Callable[[Any], None]

_PUBLIC = ("public_values", "public_kinds")  # their content is part of a key, where there is any


@dataclass(frozen=True, slots=True)
class Show:
    """How progress is told. say: a line; screening, training: a display (of a target ε) that takes their progress."""

    say: Callable[[str], None]
    screening: Callable[[str], AbstractContextManager[Notify]]
    training: Callable[[str, float | None], AbstractContextManager[Notify]]


@dataclass
class Shared:
    """again: train anew although this project has paid for a run already. allow: beside what the settings allow."""

    project: Project
    state: State
    show: Show
    again: bool = False
    allow: tuple[Allow, ...] = ()

    @cached_property
    def texts(self) -> Texts:
        return texts(self.project)

    @cached_property
    def screened(self) -> ScreenedCorpus:
        return load_screened(self.screened_folder)

    @cached_property
    def screened_folder(self) -> Path:
        return self.state.place("screened", self.screen_key)

    @cached_property
    def config(self) -> RunConfig:
        config = self.project.settings.plan.config(self.screened_folder, self.project.base)
        update: dict[str, Any] = {"allow": tuple(dict.fromkeys((*config.allow, *self.allow)))}
        if self.own_validation:
            update["train"] = config.train.model_copy(update={"valid_is": "private"})
        return config.model_copy(update=update)

    @property
    def own_validation(self) -> bool:
        """Whether validation text is what the split keeps out of this corpus, which is private whatever anybody declares."""
        return bool(self.project.settings.split.held_out) and not self.project.settings.plan.train.valid

    @cached_property
    def plan(self) -> Plan:
        return make_plan(self.config, self.screened)

    @cached_property
    def run_folder(self) -> Path:
        return self.state.place("runs", self.train_key)

    @property
    def planted(self) -> Planted | None:
        return self.project.settings.canaries.planted()

    @cached_property
    def screen_key(self) -> str:
        """A hash of the files and of all that decides what a screened corpus is."""
        chosen = self.project.settings
        files = chosen.read.corpus(self.project.base)
        inputs = [Input(name=name, digest=digest).model_dump() for name, digest in files.digests().items()]
        settings = chosen.screen.model_dump(
            mode="json", exclude={"workers", "engine", "max_bad", "policy_file", *_PUBLIC}
        )
        policies = [policy.identity for policy in chosen.screen.policies(self.project.base)]
        public = chosen.screen.public(self.project.base)
        spared = [] if public is None else [public.definition()]
        reading = chosen.read.model_dump(mode="json", exclude={"paths"})
        planted = chosen.canaries.model_dump(mode="json") if chosen.canaries.number else None
        held_out = chosen.split.model_dump(mode="json") if chosen.split.held_out else None
        return key_of("screen", inputs, reading, settings, policies, planted, held_out, *spared)

    @cached_property
    def train_key(self) -> str:
        """A hash of the plan: of everything that decides the model and what it costs, and nothing else."""
        return key_of("train", self.screen_key, json.loads(json.dumps(self.plan.to_json())))

    @property
    def certificate(self) -> Certificate:
        return Certificate.read(self.run_folder / CERTIFICATE)

    @property
    def findings(self) -> list[Finding]:
        path = self.run_folder / "audit.json"
        return load_findings(path) if self.project.settings.audit.attacks and path.is_file() else []
