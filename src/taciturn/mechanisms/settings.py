"""run.toml: everything that decides a run, read strictly and written complete."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import tomli_w
from pydantic import BeforeValidator, Field, model_validator

from taciturn.errors import UsageError
from taciturn.mechanisms.config import Strict, existing, parse, table_of
from taciturn.mechanisms.registry import mechanism
from taciturn.models.lora import ALL, Lora
from taciturn.models.prompt import Prompt
from taciturn.privacy.guarantees.evidence import Allow
from taciturn.text.atomic import write_text
from taciturn.training.plan import Model


class LoraConfig(table_of(Lora)):  # type: ignore[misc]
    """See :class:`taciturn.models.lora.Lora`."""

    targets: Literal["all-linear"] | tuple[str, ...] = "all-linear"

    def build(self) -> Lora:
        targets = ALL if isinstance(self.targets, str) else self.targets
        return Lora(**{**self.model_dump(), "targets": targets})


class ModelConfig(table_of(Model)):  # type: ignore[misc]
    """name: lstm, awd-lstm, a config.json, a folder, a .gguf file or a hub name; tokenizer: auto, bytes, a folder, or
    bpe:N, learned from public records, which is no guarantee where these are protected too (dpsgd, user_dp, uedp).

    options: fields of the model's configuration. labels: the classes of task classify. lora: a table, empty for the
    defaults, trains an adapter instead of the model. frozen: patterns of parameter names that stay as they are.
    chat_template: auto (the tokenizer's own), plain (contents joined by line ends) or a file with a Jinja template.
    loss_on: what counts in a conversation, all of it or what the assistant says. prompt, words: of task prompt, a template
    with {text}, {mask} and for pairs {second}, and the word of each label; see :class:`taciturn.models.prompt.Prompt`.
    """

    options: dict[str, Any] = Field(default_factory=dict)
    lora: LoraConfig | None = None

    @model_validator(mode="after")
    def _prompted(self) -> Self:
        given = self.prompt is not None, self.words is not None
        if any(given) != (self.task == "prompt") or any(given) != all(given):
            raise ValueError("prompt and words belong to task prompt, which needs both")
        if self.prompt is not None and self.words is not None:
            try:
                names = Prompt(self.prompt, self.words).names
            except UsageError as error:
                raise ValueError(str(error)) from None
            if self.labels and self.labels != names:
                raise ValueError("labels: of task prompt they are the keys of words; leave them out")
        return self

    def build(self) -> Model:
        lora = None if self.lora is None else self.lora.build()
        return Model(**{**self.model_dump(), "lora": lora})


class SeedsConfig(Strict):
    """noise = "os" (the default) takes noise and private sampling from the operating system's entropy."""

    model: int = 0
    data: int = 0
    noise: int | str = "os"


class TrainConfig(Strict):
    """How to run; nothing here changes an update; ``average`` and ``save_dtype`` alone change the model that comes out.

    checkpoint_steps, checkpoint_minutes: whichever comes first; ``keep`` checkpoints stay. average: decay of a moving
    average of the weights, e.g. 0.999, which is then what is evaluated and exported (it is part of the plan). valid:
    held-out files, which must not hold training secrets; valid_is: whether their text is public, private or of unknown
    kind, as decisions that look at what is not public are a condition of every statement; valid_text, valid_chat,
    valid_text_pair, valid_label: how they are read, as screening reads text, chat, text_pair and label. report_to: who
    gets the numbers of metrics.jsonl too. shard: with several processes, cut the model over them instead of a copy in each.
    timeout_minutes: how long they wait for one another. frozen_cache: a file that keeps what the frozen layers at the front
    make of each record, to be read again instead of computed in this run and in others; as secret as the text
    (:mod:`taciturn.training.frozen.cache`). save_dtype: of the weights in the run's model, rounded after the last step;
    base: that of the base (:mod:`taciturn.models.saved_dtype`).
    """

    token_budget: int = Field(8192, ge=16)
    checkpoint_steps: int = Field(500, ge=1)
    checkpoint_minutes: float = Field(5.0, gt=0)
    keep: int = Field(2, ge=1)
    average: float | None = Field(None, gt=0, lt=1)
    save_dtype: Literal["base", "float32", "bf16"] = "base"
    report_to: tuple[Literal["tensorboard", "wandb", "mlflow"], ...] = ()
    shard: bool = False
    timeout_minutes: float = Field(10.0, gt=0)
    frozen_cache: str | None = None
    evaluations: int = Field(8, ge=0)
    valid: tuple[str, ...] = ()
    valid_is: Literal["public", "private", "unknown"] = "unknown"
    valid_text: str = "text"
    valid_chat: str | None = None
    valid_text_pair: str | None = None
    valid_label: str | None = None
    valid_limit: int = Field(2000, ge=1)


class RunConfig(Strict):
    """run.toml. The mechanism's own options stand in ``options``. corpus: a screened folder or its URL,
    of which a run notes the copy it read. name: what reports call the run, else its folder's. allow: what would else be an
    error in the plan, by name (see :mod:`taciturn.mechanisms.refusals`)."""

    mechanism: str
    corpus: Annotated[str, BeforeValidator(os.fspath)]
    name: str | None = Field(None, min_length=1, max_length=100)
    model: ModelConfig
    epsilon: float | None = Field(None, gt=0)
    delta: float | None = Field(None, gt=0, lt=1)
    options: dict[str, Any] = Field(default_factory=dict)
    seeds: SeedsConfig = SeedsConfig()
    train: TrainConfig = TrainConfig()
    allow: tuple[Allow, ...] = ()


def load_config(path: Path) -> RunConfig:
    """Read run.toml; UsageError names a wrong key, its file and the nearest known one."""
    try:
        raw = tomllib.loads(existing(path, "configuration file; `taciturn plan … -o run.toml` writes one").read_text())
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not valid TOML ({error})") from None
    return parse(RunConfig, raw, str(path))


def save_config(config: RunConfig, path: Path) -> None:
    """Write the complete configuration, defaults spelled out."""
    options = parse(mechanism(config.mechanism).Config, config.options, "options").model_dump(mode="json")
    data = {**config.model_dump(mode="json"), "options": options}
    write_text(path, tomli_w.dumps(_without_none(data)))


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_none(v) for k, v in value.items() if v is not None}
    return value
