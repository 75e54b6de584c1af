# ruff: noqa: ARG002 — callbacks have the arguments of TrainerCallback
"""The Trainer's habits over the one engine: the same run as `taciturn.train`, its callbacks, and what comes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, TrainerCallback, TrainingArguments, pipeline

import taciturn as tt
from taciturn.errors import DataError, Interrupted, MismatchError, UsageError
from taciturn.models.tokenizers import bpe_tokenizer
from taciturn.screening.corpus.screened import ScreenedCorpus

TEXTS = ["thank you for the parcel"] * 20 + [f"call me at (555) 010-7{i:03}" for i in range(40)]
SMALL = {"num_train_epochs": 1, "per_device_train_batch_size": 10, "learning_rate": 1e-2, "disable_tqdm": True}


@pytest.fixture(scope="module")
def screened() -> ScreenedCorpus:
    return tt.screen(tt.read(TEXTS), tt.policy("pii"), tt.policy("conservative"))


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    tokenizer = bpe_tokenizer(TEXTS[:20], 300)
    config = GPT2Config(vocab_size=len(tokenizer), n_positions=64, n_embd=16, n_layer=1, n_head=2)
    return GPT2LMHeadModel(config), tokenizer


class Watch(TrainerCallback):
    """Writes down what it is told."""

    def __init__(self, stop: int = 0) -> None:
        self.told: list[str] = []
        self.logs: list[dict[str, float]] = []
        self.stop = stop

    def on_init_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.told.append("init")

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.told.append("begin")

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        assert model is None, "weights in between are not shown"
        self.told.append(f"step {state.global_step} of {state.max_steps}")
        control.should_training_stop = state.global_step == self.stop

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        self.logs.append(logs)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.told.append("save")

    def on_train_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        assert model is not None
        self.told.append("end")


def test_an_object_is_trained_certified_and_saved_for_the_hub(made: tuple[Any, Any], screened: ScreenedCorpus) -> None:
    model, tokenizer = made
    model.transformer.wpe.weight.requires_grad_(False)
    before = {name: t.clone() for name, t in model.state_dict().items()}
    watch = Watch()
    args = TrainingArguments("runs/x", logging_steps=2, save_steps=3, logging_first_step=True, **SMALL)
    trainer = tt.PrivateTrainer(
        model, args, screened, tokenizer, epsilon=8, delta=1e-3, callbacks=[watch], allow=["cannot-learn"]
    )
    trainer.train()
    total = trainer.state.max_steps
    assert watch.told[:3] == ["init", "begin", f"step 1 of {total}"]
    assert watch.told[-2:] == ["save", "end"]
    assert [each for each in watch.told if each.startswith("step")] == [
        f"step {i + 1} of {total}" for i in range(total)
    ]
    assert watch.told.count("save") == -(-total // 3)
    rows = trainer.run.metrics()
    noised = {row["step"] for row in rows if row["phase"] == "private"}
    assert noised
    for row in trainer.state.log_history:
        assert ("loss" in row) == (row["step"] not in noised or (row["step"] == min(noised) and total % 2 == 1))
        assert row["learning_rate"] > 0 or row["step"] == total
    assert not torch.equal(model.transformer.wte.weight[:50], before["transformer.wte.weight"][:50])
    assert torch.equal(model.transformer.wpe.weight, before["transformer.wpe.weight"])
    certificate = trainer.certificate
    assert certificate.epsilon_spent <= 8
    trainer.save_model("model")
    assert not tt.verify("model/certificate.json")
    assert {"README.md", "config.json", "model.safetensors", "tokenizer.json"} <= {
        p.name for p in Path("model").iterdir()
    }
    assert len(pipeline("text-generation", "model")("thank", max_new_tokens=3)) == 1
    exported = GPT2LMHeadModel.from_pretrained("model").state_dict()
    assert all(torch.equal(exported[name], t) for name, t in model.state_dict().items())


def test_the_plan_is_one_written_by_hand(made: tuple[Any, Any], screened: ScreenedCorpus) -> None:
    """A thin door: nothing of what runs is the trainer's own."""
    model, tokenizer = made
    args = TrainingArguments("runs/x", **SMALL)
    trainer = tt.PrivateTrainer(model, args, screened, tokenizer, epsilon=8, delta=1e-3, allow=["cannot-learn"])
    adam = {"name": "adamw", "lr": 1e-2, "schedule": "linear"}
    by_hand = tt.plan(
        "crt", screened, "runs/x/base", epsilon=8, delta=1e-3, seeds={"model": 42, "data": 42}, allow=["cannot-learn"],
        public={"epochs": 1, "batch_size": 10, "optimiser": {**adam, "max_grad_norm": 1.0}},
        private={"steps": round(len(screened.texts("private")) / 10), "batch": 10, "clip": 1.0, "optimiser": adam},
    )  # fmt: skip
    assert trainer.plan.plan.to_json() == by_hand.plan.to_json()


NOISE: dict[str, Any] = {"allow": ["cannot-learn"], "private": {"noise_multiplier": 1.0}}


def test_a_callback_may_stop_a_run_which_then_goes_on(made: tuple[Any, Any], screened: ScreenedCorpus) -> None:
    model, tokenizer = made
    args = TrainingArguments("runs/x", save_strategy="no", logging_strategy="no", **SMALL)
    trainer = tt.PrivateTrainer(
        model, args, screened, tokenizer, delta=1e-3, callbacks=[watch := Watch(stop=2)], **NOISE
    )
    with pytest.raises(Interrupted, match="after step 2"):
        trainer.train()
    assert watch.told[-1] == "save"
    assert not watch.logs
    other = GPT2LMHeadModel(model.config)
    with pytest.raises(MismatchError, match="begun with other weights"):
        tt.PrivateTrainer(other, args, screened, tokenizer, delta=1e-3, **NOISE)
    again = tt.PrivateTrainer(model, args, screened, tokenizer, delta=1e-3, **NOISE)
    with pytest.raises(UsageError, match="newest checkpoint"):
        again.train("runs/x/checkpoints/step-000000002.pt")
    again.train(resume_from_checkpoint=True)
    steps = [row["step"] for row in again.run.metrics() if row["kind"] == "step"]
    assert steps == list(range(1, again.state.max_steps + 1))
    with pytest.raises(DataError):
        tt.PrivateTrainer("runs/x/base", args, screened, delta=1e-3, **NOISE).train()


def test_an_adapter_by_its_configuration(made: tuple[Any, Any], screened: ScreenedCorpus) -> None:
    from peft import LoraConfig, get_peft_model

    model, tokenizer = made
    lora = LoraConfig(r=2, lora_alpha=4, target_modules=["c_attn"], task_type="CAUSAL_LM", fan_in_fan_out=True)
    args = TrainingArguments("runs/x", **SMALL)
    trainer = tt.PrivateTrainer(model, args, screened, tokenizer, delta=1e-3, peft_config=lora, **NOISE)
    trainer.train()
    assert trainer.plan.plan.model.lora is not None
    assert (trainer.plan.plan.model.lora.r, trainer.plan.plan.model.lora.targets) == (2, ("c_attn",))
    assert (Path("runs/x/model/adapter") / "adapter_config.json").is_file()
    assert json.loads(Path("runs/x/plan.json").read_text())["model"]["lora"]["alpha"] == 4
    wrong = LoraConfig(r=2, use_dora=True)
    with pytest.raises(UsageError, match="use_dora"):
        tt.PrivateTrainer(model, args, screened, tokenizer, delta=1e-3, peft_config=wrong, **NOISE)
    adapted = get_peft_model(GPT2LMHeadModel(model.config), lora)
    with pytest.raises(UsageError, match="carries an adapter"):
        tt.PrivateTrainer(adapted, TrainingArguments("runs/y"), screened, tokenizer, delta=1e-3, **NOISE)


def test_what_is_not_taken_is_refused_before_anything_is_written(
    made: tuple[Any, Any], screened: ScreenedCorpus
) -> None:
    model, tokenizer = made
    args = TrainingArguments("runs/x", **SMALL)

    class Gradients(TrainerCallback):
        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None: ...

    class Saves(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_save = True

    for given, said in (
        ({"data_collator": print}, "takes no data_collator"),
        ({"optimizers": (None, None)}, "takes no optimizers"),
        ({"compute_metrics": print}, "takes no compute_metrics"),
    ):
        with pytest.raises(UsageError, match=said):
            tt.PrivateTrainer(model, args, screened, tokenizer, delta=1e-3, **NOISE, **given)
    with pytest.raises(UsageError, match="expected a screened corpus, found list"):
        tt.PrivateTrainer(model, args, TEXTS, tokenizer)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"expected transformers\.TrainingArguments, found dict"):
        tt.PrivateTrainer(model, {}, screened, tokenizer)
    with pytest.raises(UsageError, match="needs its tokenizer"):
        tt.PrivateTrainer(model, args, screened, **NOISE)
    with pytest.raises(UsageError, match="PrivateSteps"):
        tt.PrivateTrainer(model.transformer, args, screened, tokenizer, **NOISE)
    assert not Path("runs").exists()
    with pytest.raises(UsageError, match="on_pre_optimizer_step, which is never called: gradients are not shown"):
        tt.PrivateTrainer(model, args, screened, tokenizer, delta=1e-3, callbacks=[Gradients], **NOISE)
    trainer = tt.PrivateTrainer(model, args, screened, tokenizer, delta=1e-3, callbacks=[Saves], **NOISE)
    with pytest.raises(UsageError, match="Saves set should_save"):
        trainer.train()
