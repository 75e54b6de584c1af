"""What may be given by keyword, for type checkers and editors: each table of run.toml, and what screen, audit, certify,
generate, export and synthesize take. A misspelt name is found before anything runs; values are checked when they are used.

Every table here has the fields of the class it stands for (tests/test_typed.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from taciturn.auditing.canaries.templates import Planted
    from taciturn.auditing.exposure.search import Notify, Search
    from taciturn.auditing.extraction.decoding import Decoding
    from taciturn.auditing.extraction.secrets import Known
    from taciturn.auditing.extraction.spans import Finder
    from taciturn.auditing.membership.membership import Score
    from taciturn.auditing.run import Coins, Source, Text
    from taciturn.screening.bridges import Bridge
    from taciturn.screening.cleaning.clean import Clean
    from taciturn.screening.corpus.options import Order
    from taciturn.screening.dedup import Scope
    from taciturn.screening.engines.choose import Engine
    from taciturn.screening.policies.public import Public
    from taciturn.text.segment import Unit


class ScreenOptions(TypedDict, total=False):
    """See :func:`taciturn.screening.pipeline.screen`."""

    unit: Unit | None
    dedup: Scope
    order: Order
    clean: Clean
    clean_most: float
    skeletons: bool
    bridge: Bridge
    miss_rate: float
    miss_seed: int
    public: Public | None
    max_bad: int
    keep_originals: bool
    out: str | os.PathLike[str] | None
    workers: int
    engine: Engine


class OptimiserOptions(TypedDict, total=False):
    """See :class:`taciturn.training.schedules.Optimiser`."""

    name: str
    lr: float
    momentum: float
    weight_decay: float
    schedule: str
    warmup: float
    max_grad_norm: float | None
    nesterov: bool
    betas: tuple[float, float]
    eps: float
    schedule_options: Mapping[str, Any] | None


class PublicOptions(TypedDict, total=False):
    """See :class:`taciturn.mechanisms.config.PublicSteps`."""

    packed: int
    kept: float
    epochs: int
    batch_size: int
    optimiser: OptimiserOptions


class FilledOptions(TypedDict, total=False):
    """See :class:`taciturn.mechanisms.values.FilledSteps`."""

    packed: int
    kept: float
    epochs: int
    batch_size: int
    optimiser: OptimiserOptions
    fill: Literal["none", "learned"]
    fill_loss: bool
    values: ValuesOptions


class PrivateOptions(TypedDict, total=False):
    """See :class:`taciturn.mechanisms.crt.RecordSteps`; targets and kept are crt's alone."""

    batch: int
    rate: float | None
    steps: int
    clip: float
    noise_multiplier: float | None
    clipping: Literal["flat", "per-layer", "automatic", "adaptive"]
    quantile: float
    quantile_rate: float
    count_noise: float | None
    optimiser: OptimiserOptions
    targets: Literal["all", "marked"]
    kept: float


class ValuesOptions(TypedDict, total=False):
    """See :class:`taciturn.mechanisms.values.ValueTable`."""

    mu: float | None
    protect_copies: int
    delta: float | None
    record_weight: float
    candidates: int
    public: Sequence[Path]


class ScreenedOptions(TypedDict, total=False):
    """See :class:`taciturn.mechanisms.jft.Screened`."""

    ids: Path
    checked: int
    missed: int


class LocalOptions(TypedDict, total=False):
    """See :class:`taciturn.mechanisms.user_dp.Local`."""

    lr: float
    batch_size: int
    epochs: int


class LoraOptions(TypedDict, total=False):
    """See :class:`taciturn.models.lora.Lora`."""

    r: int
    alpha: int
    dropout: float
    targets: Literal["all-linear"] | Sequence[str]
    modules_to_save: Sequence[str]
    start: str | None


class ModelOptions(TypedDict, total=False):
    """See :class:`taciturn.mechanisms.settings.ModelConfig`."""

    name: str
    tokenizer: str
    max_length: int | None
    options: Mapping[str, Any]
    task: Literal["causal", "classify", "masked", "prompt"]
    labels: Sequence[str]
    lora: LoraOptions | None
    frozen: Sequence[str]
    dtype: Literal["float32", "bf16", "fp16"]
    base_bits: Literal[4] | None
    gradient_checkpointing: bool
    chat_template: str
    loss_on: Literal["all", "assistant"]
    prompt: str | None
    words: Mapping[str, str] | None


class SeedsOptions(TypedDict, total=False):
    """See :class:`taciturn.mechanisms.settings.SeedsConfig`."""

    model: int
    data: int
    noise: int | str


class TrainOptions(TypedDict, total=False):
    """See :class:`taciturn.mechanisms.settings.TrainConfig`."""

    token_budget: int
    checkpoint_steps: int
    checkpoint_minutes: float
    keep: int
    average: float | None
    save_dtype: Literal["base", "float32", "bf16"]
    report_to: Sequence[Literal["tensorboard", "wandb", "mlflow"]]
    shard: bool
    timeout_minutes: float
    frozen_cache: str | None
    evaluations: int
    valid: Sequence[str]
    valid_is: Literal["public", "private", "unknown"]
    valid_text: str
    valid_chat: str | None
    valid_text_pair: str | None
    valid_label: str | None
    valid_limit: int


class MechanismOptions(TypedDict, total=False):
    """The options of every mechanism, by name; which takes which is told when a plan is made."""

    fill: Literal["none", "public-model", "self", "learned"]
    fill_loss: bool
    common: Literal["fill", "stay"]
    values: ValuesOptions
    skeletons: bool
    schedule: Literal["public-first", "alternate"]
    public: PublicOptions
    private: PrivateOptions
    skeleton_batch: int
    batch: int
    rate: float | None
    steps: int
    clip: float
    noise_multiplier: float | None
    clipping: Literal["flat", "per-layer", "automatic", "adaptive"]
    quantile: float
    quantile_rate: float
    count_noise: float | None
    optimiser: OptimiserOptions
    unit: Literal["record", "user"]
    reads: Literal["original", "redacted"]
    redacted: FilledOptions
    light: PrivateOptions | None
    screened: ScreenedOptions | None
    start: Literal["redacted", "skeletons"]
    share: float
    packed: int
    kept: float
    epochs: int
    batch_size: int
    treat: Literal["mask", "remove"]
    state_clip: float
    state_noise: float | None
    runs: int
    coins: Literal["unit", "two-level"]
    user_rate: float
    entity_rate: float
    extended_rate: float
    weights: tuple[float, float]
    k: int | None
    limits: tuple[int, int, int] | None
    units_per_user: int | None
    units_per_entity: int | None
    rows_per_unit: int | None
    selects: bool
    estimator: Literal["f_E", "f_E+"]
    scale: float
    caps: tuple[float, float, float]
    local: LocalOptions | None


class AuditInputs(TypedDict, total=False):
    """See :func:`taciturn.auditing.run.audit`."""

    canaries: Planted | Sequence[Planted] | str | Path | None
    copies: int | None
    secrets: Sequence[Known] | str | Path | None
    members: Sequence[Text] | None
    nonmembers: Sequence[Text] | None
    reference: Source | None
    references: Sequence[Source]
    population: Sequence[str] | None
    score: Score
    group_size: int
    coins: Coins
    base: Source | None
    policy: Finder | str | Sequence[str] | None
    decoding: Decoding
    samples: int | None
    probability: float
    search: Search
    candidates: int | None
    most_minutes: float
    notify: Notify | None
    seed: int


class Labels(TypedDict, total=False):
    """See :func:`taciturn.mechanisms.certify.certify`."""

    labelled: int | None
    missed: int | None
    missed_by_both: int | None
    recall: Path | None
    confidence: float | None
    selected: bool
    private_validation: bool | None


class DrawOptions(TypedDict, total=False):
    """See :func:`taciturn.models.generation.generate`."""

    samples: int
    max_tokens: int
    temperature: float
    top_k: int
    seed: int


class HubOptions(TypedDict, total=False):
    """See :class:`taciturn.reporting.hub.Hub`."""

    base_model: str | None
    language: Sequence[str]
    license: str | None
    tags: Sequence[str]


class SynthesisOptions(TypedDict, total=False):
    """See :class:`taciturn.synthesis.settings.Settings`."""

    seed: int
    max_tokens: int
    temperature: float
    top_k: int
    top_p: float
    batch: int
    format: Literal["jsonl", "parquet"]
    keep_copies: bool
    labels: Sequence[str]
    template: str
    prompts: Sequence[str]
    skeletons: Sequence[str]
    policy: str
