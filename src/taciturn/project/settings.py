"""project.toml: every setting of every step, read strictly. comments.py has a comment for each."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from taciturn.auditing.canaries.templates import Planted, Template, draw
from taciturn.errors import UsageError
from taciturn.mechanisms.config import Strict, existing, parse, table_of
from taciturn.mechanisms.registry import mechanism
from taciturn.mechanisms.settings import ModelConfig, RunConfig, SeedsConfig, TrainConfig
from taciturn.privacy.guarantees.evidence import Allow
from taciturn.screening.bridges import Bridge
from taciturn.screening.cleaning.clean import MOST, Clean
from taciturn.screening.corpus.options import Order
from taciturn.screening.dedup import Scope
from taciturn.screening.policies import Policy, policy
from taciturn.screening.policies.public import Public
from taciturn.screening.policies.public_kinds import Kind
from taciturn.screening.policies.registry import split
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers import Corpus, read
from taciturn.text.segment import Unit
from taciturn.text.urls import is_url


class Read(table_of(ReadOptions, paths=(tuple[str, ...], Field(min_length=1)))):  # type: ignore[misc]
    """See :class:`taciturn.text.read_options.ReadOptions`. paths: files, globs, URLs, or ``hf:`` names."""

    def corpus(self, base: Path) -> Corpus:
        """The files, by paths relative to ``base``."""
        options = self.model_dump(exclude={"paths"})
        return read(
            *(path if path.startswith("hf:") or is_url(path) else str(base / path) for path in self.paths), **options
        )


class Split(Strict):
    """One random split into what is trained on and what is not."""

    held_out: float = Field(0.0, ge=0, lt=1)
    seed: int = 0


class Canaries(Strict):
    """See :mod:`taciturn.auditing.canaries.templates`."""

    number: int = Field(0, ge=0)
    copies: int = Field(4, ge=1)
    template: str = "My ID is: {}"
    alphabet: str = "0123456789"
    length: int = Field(6, ge=1)
    seed: int = 0

    def planted(self) -> Planted | None:
        """The canaries; None for none."""
        if not self.number:
            return None
        template = Template(self.template, self.alphabet, self.length)
        return Planted(template, tuple(draw(template, self.number, self.seed)), self.copies)


class Screen(Strict):
    """See :func:`taciturn.screening.pipeline.screen`."""

    policy: tuple[str, ...] = Field(min_length=1)
    conservative: tuple[str, ...] = Field(("conservative",), min_length=1)
    policy_file: str | None = None
    public_values: tuple[str, ...] = ()
    public_kinds: tuple[Kind, ...] = ()
    unit: Unit | None = None
    clean: Clean = "none"
    clean_most: float = Field(MOST, gt=0, le=1)
    dedup: Scope = "suspicious"
    order: Order = "redact-first"
    skeletons: bool = True
    bridge: Bridge = "particles"
    originals: bool = True
    max_bad: int = Field(0, ge=0)
    workers: int = Field(1, ge=1)
    engine: Literal["local", "ray"] = "local"

    def policies(self, base: Path) -> tuple[Policy, Policy]:
        """π and π_c."""
        file = None if self.policy_file is None else base / self.policy_file
        return policy(*split(self.policy), file=file), policy(*split(self.conservative), file=file)

    def public(self, base: Path) -> Public | None:
        """What π_c leaves unmarked."""
        return Public.read([base / name for name in self.public_values], self.public_kinds)


class Certify(Strict):
    """See :func:`taciturn.mechanisms.certify.certify`. groups: name → file of secrets, one a line."""

    recall: str | None = None
    confidence: float | None = Field(None, gt=0, lt=1)
    groups: dict[str, str] = Field(default_factory=dict)


class Audit(Strict):
    """See :func:`taciturn.auditing.run.audit`. texts: most members and most non-members of membership attacks."""

    attacks: tuple[Literal["exposure", "extraction", "membership", "group-membership"], ...] = ()
    texts: int = Field(500, ge=2)
    group_size: int = Field(20, ge=1)
    samples: int | None = Field(None, ge=1)
    probability: float = Field(0.5, gt=0, le=1)
    seed: int = 0


class Report(Strict):
    output: str | None = "report.html"


class Export(Strict):
    output: str | None = "model"


NOISELESS = ("sgd", "redacted")
"""Mechanisms that no target fits."""


class Plan(Strict):
    """What run.toml says, but for the corpus. epsilon: 3 where nothing is said, none for ``NOISELESS``."""

    mechanism: str = "crt"
    epsilon: float | None = Field(3.0, gt=0)
    delta: float | None = Field(1e-5, gt=0, lt=1)
    model: ModelConfig = ModelConfig(name="lstm")
    options: dict[str, Any] = Field(default_factory=dict)
    seeds: SeedsConfig = SeedsConfig()
    train: TrainConfig = TrainConfig()
    allow: tuple[Allow, ...] = ()

    def config(self, corpus: Path, base: Path) -> RunConfig:
        """run.toml for a screened corpus. Paths are relative to ``base``."""
        local = base / self.model.name
        model = self.model.model_copy(update={"name": str(local.resolve())}) if local.exists() else self.model
        train = self.train.model_copy(
            update={"valid": tuple(str((base / path).resolve()) for path in self.train.valid)}
        )
        parse(mechanism(self.mechanism).Config, self.options, f"options of {self.mechanism}")
        asked = "epsilon" in self.model_fields_set or self.mechanism not in NOISELESS
        return RunConfig(
            mechanism=self.mechanism,
            corpus=str(corpus.resolve()),
            model=model,
            epsilon=self.epsilon if asked else None,
            delta=self.delta,
            options=self.options,
            seeds=self.seeds,
            train=train,
            allow=self.allow,
        )


class Settings(Strict):
    """The whole file. folder: where everything is written, beside the file. name: what reports and cards call its models."""

    folder: str
    name: str | None = Field(None, min_length=1, max_length=80)
    read: Read
    split: Split = Split()
    canaries: Canaries = Canaries()
    screen: Screen
    plan: Plan = Plan()
    certify: Certify = Certify()
    audit: Audit = Audit()
    report: Report = Report()
    export: Export = Export()


@dataclass(frozen=True, slots=True)
class Project:
    """A project file, and what its paths are relative to."""

    path: Path
    settings: Settings

    @property
    def base(self) -> Path:
        return self.path.absolute().parent

    @property
    def folder(self) -> Path:
        return self.base / self.settings.folder

    @property
    def name(self) -> str:
        """As the file says; else its own name, or, of a project.toml, that of the folder it lies in."""
        return self.settings.name or named(self.path)


def named(path: Path) -> str:
    """What a project is called whose file does not say it.

    >>> named(Path("/home/ann/mail/project.toml")), named(Path("chats.toml"))
    ('mail', 'chats')
    """
    return path.stem if path.stem != "project" else path.absolute().parent.name or path.stem


def load(path: Path) -> Project:
    """Read project.toml and check what needs no data; UsageError names a wrong key and the nearest known one."""
    try:
        raw = tomllib.loads(existing(path, "project file; `taciturn init FILES` writes one").read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML ({error})") from None
    settings = parse(Settings, raw, str(path))
    plan, audit = settings.plan, settings.audit
    parse(mechanism(plan.mechanism).Config, plan.options, f"{path}: plan.options of {plan.mechanism}")
    if {"exposure", "extraction"} & set(audit.attacks) and not settings.canaries.number:
        raise UsageError(
            f"{path}: audit.attacks names exposure or extraction, which need canaries: set canaries.number"
        )
    if {"membership", "group-membership"} & set(audit.attacks) and not settings.split.held_out:
        raise UsageError(f"{path}: audit.attacks names membership, which needs split.held_out above 0")
    return Project(path, settings)
