"""TrainingArguments: every field is part of a plan, of no consequence, or refused by name."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest
from transformers import TrainingArguments

import taciturn as tt
from taciturn.errors import UsageError
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.trainer import arguments
from taciturn.trainer.fields import HARMLESS, MAPPED, REFUSED

BATCH = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 5}


@pytest.fixture(scope="module")
def screened() -> ScreenedCorpus:
    texts = ["thank you for the parcel"] * 30 + [f"call me at (555) 010-7{i:03}" for i in range(60)]
    return tt.screen(tt.read(texts), tt.policy("pii"), tt.policy("conservative"))


def args(**given: Any) -> TrainingArguments:
    return TrainingArguments(**{"output_dir": "runs/x", **BATCH, **given})


def another(value: Any) -> Any:
    """A value that differs."""
    if isinstance(value, bool):
        return not value
    return {"random": "sequential", "no": "steps"}.get(getattr(value, "value", ""), "another")


def test_every_field_is_in_one_table_with_its_reason() -> None:
    tables = (MAPPED, HARMLESS, REFUSED)
    assert sum(map(len, tables)) == len({*MAPPED, *HARMLESS, *REFUSED})
    assert {field.name for field in fields(TrainingArguments)} == {*MAPPED, *HARMLESS, *REFUSED}
    assert all(why for table in tables for why in table.values())


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_honoured_is_refused_by_name(name: str, screened: ScreenedCorpus) -> None:
    given = args()
    setattr(given, name, another(getattr(given, name)))
    with pytest.raises(UsageError, match=rf"\b{name} = "):
        arguments.translate(given, "crt", screened, {})


def test_what_is_of_no_consequence_changes_nothing(screened: ScreenedCorpus) -> None:
    plain = arguments.translate(args(), "crt", screened, {})
    given = args()
    for name in HARMLESS:
        setattr(given, name, another(getattr(given, name)))
    assert arguments.translate(given, "crt", screened, {}) == plain


CHANGES: dict[str, Any] = {
    "per_device_train_batch_size": 3, "gradient_accumulation_steps": 2, "num_train_epochs": 2.0, "learning_rate": 0.25,
    "lr_scheduler_type": "cosine", "warmup_steps": 3, "optim": "sgd", "weight_decay": 0.5, "adam_beta1": 0.5,
    "adam_beta2": 0.75, "adam_epsilon": 1e-3, "max_grad_norm": 0.5, "bf16": True, "fp16": True, "seed": 7, "data_seed": 8,
    "save_total_limit": 5, "report_to": ["wandb"], "ddp_timeout": 60, "activation_checkpointing": True,
    "gradient_checkpointing": True,
}  # fmt: skip
"""Fields that change what is translated; the others of MAPPED are the trainer's own (test_private_trainer.py)."""


@pytest.mark.parametrize("name", CHANGES)
def test_each_field_that_is_mapped_changes_the_plan(name: str, screened: ScreenedCorpus) -> None:
    given = args()
    value = CHANGES[name]
    kind = type(getattr(given, name))
    setattr(given, name, kind(value) if hasattr(kind, "__members__") else value)
    assert arguments.translate(given, "crt", screened, {}) != arguments.translate(args(), "crt", screened, {})


def test_the_plan_is_what_the_arguments_say(screened: ScreenedCorpus) -> None:
    private = len(screened.texts("private"))
    given = args(
        num_train_epochs=4, learning_rate=0.25, warmup_steps=7, lr_scheduler_type="cosine", weight_decay=0.5,
        adam_beta1=0.5, max_grad_norm=0.75, seed=3, data_seed=4, bf16=True, use_cpu=True,
        lr_scheduler_kwargs={"num_cycles": 2},
    )  # fmt: skip
    said = arguments.translate(given, "crt", screened, {})
    model = {"name": "lstm", **said.model}
    plan = tt.plan(
        "crt",
        screened,
        model,
        tokenizer="bytes",
        epsilon=3,
        delta=1e-4,
        seeds=said.seeds,
        train=said.train,
        **said.options,
    ).plan
    plain, noised = plan.phases
    assert (noised.records, noised.sampler.rate) == (private, pytest.approx(10 / private))
    assert noised.steps == round(4 * private / 10)
    assert noised.clip == 0.75
    assert plain.sampler.batch_size == 10
    assert plain.optimiser.max_grad_norm == 0.75
    for phase in plan.phases:
        optimiser = phase.optimiser
        assert (optimiser.name, optimiser.lr, optimiser.weight_decay) == ("adamw", 0.25, 0.5)
        assert (optimiser.betas, optimiser.schedule) == ((0.5, 0.999), "cosine")
        assert int(optimiser.warmup * phase.steps) == 7
    assert (plan.seeds.model, plan.seeds.data, plan.seeds.noise) == (3, 4, None)
    assert plan.model.dtype == "bf16"
    assert plan.target.epsilon == 3


def test_options_go_before_arguments_and_max_steps_counts_noised_ones(screened: ScreenedCorpus) -> None:
    own = {"public": {"epochs": 1, "optimiser": {"lr": 0.5}}, "private": {"clipping": "automatic"}}
    said = arguments.translate(args(max_steps=11), "crt", screened, own)
    assert said.options["public"]["epochs"] == 1
    assert said.options["public"]["optimiser"]["lr"] == 0.5
    assert said.options["public"]["optimiser"]["schedule"] == "linear"
    assert said.options["private"]["steps"] == 11
    assert said.options["private"]["clipping"] == "automatic"
    with pytest.raises(UsageError, match="max_steps = 11 counts noised steps"):
        arguments.translate(args(max_steps=11), "crt", screened, {})
    assert arguments.translate(args(max_steps=11), "dpsgd", screened, {}).options["steps"] == 11


@pytest.mark.parametrize("name", ["crt", "crt_residual", "dpsgd", "jft", "redacted", "sgd"])
def test_mechanisms_that_draw_records_can_be_planned(name: str, screened: ScreenedCorpus) -> None:
    said = arguments.translate(args(), name, screened, {})
    target = {} if name in ("redacted", "sgd") else {"epsilon": 3, "delta": 1e-4}
    made = tt.plan(name, screened, "lstm", tokenizer="bytes", **target, **said.options)
    assert made.plan.total_steps > 0


def test_what_no_plan_can_say_is_refused_with_the_reason(screened: ScreenedCorpus) -> None:
    for given, said in (
        ({"optim": "adafactor"}, "optim = 'adafactor'"),
        ({"num_train_epochs": 1.5}, "whole epochs"),
        ({"max_grad_norm": 0.0}, "max_grad_norm: noised steps clip"),
        ({"warmup_steps": 10_000}, "warmup_steps = 10000"),
        ({"report_to": "comet_ml"}, "report_to: 'comet_ml'"),
        ({"save_strategy": "epoch"}, "save_strategy = 'epoch'"),
        ({"logging_strategy": "epoch"}, "logging_strategy = 'epoch'"),
        ({"activation_checkpointing_kwargs": {"use_reentrant": True}}, "use_reentrant"),
    ):
        with pytest.raises(UsageError, match=said):
            arguments.translate(args(**given), "crt", screened, {})
    with pytest.raises(UsageError, match="say nothing of uedp"):
        arguments.translate(args(), "uedp", screened, {})


def test_a_field_of_a_derived_class_is_refused_where_it_differs(screened: ScreenedCorpus) -> None:
    @dataclass
    class Config(TrainingArguments):
        packing: bool = False

    arguments.translate(Config("runs/x"), "crt", screened, {})
    with pytest.raises(UsageError, match="packing = True: a field that is not known here"):
        arguments.translate(Config("runs/x", packing=True), "crt", screened, {})


def test_the_page_names_every_field_that_is_mapped() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "hugging-face.md").read_text("utf-8")
    assert not [name for name in MAPPED if f"`{name}`" not in page]
