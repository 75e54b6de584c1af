"""The number type of a run's files is that of its base, from the run to what others load; float32 stays as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, TrainingArguments

import taciturn as tt
from taciturn.cli.main import run as command
from taciturn.errors import TaciturnError, UsageError
from taciturn.models.hf import export, load_adapted, load_exported
from taciturn.models.lora import merge
from taciturn.models.saved_dtype import rounded, saved_dtype
from taciturn.models.source import random_model, shapes
from taciturn.models.tokenizers import bpe_tokenizer, byte_tokenizer

TEXTS = ["thank you for the parcel"] * 20 + [f"call me at (555) 010-7{i:03}" for i in range(30)]
SMALL: dict[str, Any] = {
    "public": {"epochs": 1, "batch_size": 10},
    "private": {"steps": 4, "batch": 5, "noise_multiplier": 1.0},
}
WEIGHTS = "model.safetensors"


def published(folder: Path, dtype: torch.dtype) -> Path:
    """A GPT-2 with its tokenizer, as a hub has it."""
    torch.manual_seed(0)
    tokenizer = bpe_tokenizer(TEXTS[:20], 300)
    config = GPT2Config(vocab_size=len(tokenizer), n_positions=32, n_embd=16, n_layer=1, n_head=2)
    GPT2LMHeadModel(config).to(dtype).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def planned(base: Path, lora: bool = False, **how: Any) -> Any:
    screened = tt.screen(tt.read(TEXTS), tt.policy("pii"), tt.policy("conservative"))
    model: Any = {"name": str(base), "lora": {"r": 2, "targets": ["c_attn"]} if lora else None}
    return tt.plan(
        "crt", screened, model, tokenizer=str(base), delta=1e-3, allow=["cannot-learn"], seeds={"noise": 3}, train=how,
        **SMALL,
    )  # fmt: skip


def trained(base: Path, out: Path, lora: bool = False, **how: Any) -> Any:
    return tt.train(planned(base, lora, **how), out, progress=False)


def dtypes(folder: Path) -> set[torch.dtype]:
    return {tensor.dtype for tensor in load_file(folder / WEIGHTS).values()}


def newest(run: Path) -> dict[str, torch.Tensor]:
    [*_, last] = sorted((run / "checkpoints").glob("step-*.pt"))
    held: dict[str, torch.Tensor] = torch.load(last, weights_only=True)["model"]
    return held


@pytest.mark.parametrize("lora", [False, True], ids=["whole", "adapter"])
def test_a_bfloat16_base_stays_one_from_the_run_to_the_hub(lora: bool, tmp_path: Path) -> None:
    base = published(tmp_path / "base", torch.bfloat16)
    run = trained(base, tmp_path / "run", lora)
    assert {t.dtype for t in newest(run.folder).values()} == {torch.float32}, "a run goes on from float32"
    run.certify()
    run.export(tmp_path / "hub")
    for folder in (run.folder / "model", tmp_path / "hub"):
        assert dtypes(folder) == {torch.bfloat16}
        assert json.loads((folder / "config.json").read_text())["dtype"] == "bfloat16"
        assert AutoModelForCausalLM.from_pretrained(folder).dtype == torch.bfloat16
    assert not tt.verify(run.folder / "certificate.json")
    assert not tt.verify(tmp_path / "hub" / "certificate.json")
    card = " ".join((tmp_path / "hub" / "README.md").read_text().split())
    assert "The weights are bfloat16: trained in float32 and rounded after the last step" in card
    assert command(["report", str(run.folder), "-o", str(tmp_path / "report.html")]) == 0
    assert "weights saved in" in (tmp_path / "report.html").read_text()
    assert run.generate("thank", max_tokens=2, temperature=0)
    others = [f"call me at (555) 010-8{i:03}" for i in range(30)]
    assert run.audit(["membership"], members=TEXTS[20:], nonmembers=others)


def test_whole_weights_are_those_of_the_last_checkpoint_rounded_once(tmp_path: Path) -> None:
    run = trained(published(tmp_path / "base", torch.bfloat16), tmp_path / "run", checkpoint_steps=1)
    last, files = newest(run.folder), load_file(run.folder / "model" / WEIGHTS)
    assert files
    for name, tensor in files.items():
        assert torch.equal(tensor, last[name].bfloat16()), name
    assert any(not torch.equal(t.bfloat16().float(), t) for t in last.values()), "training was finer than its files"


def test_an_adapter_stays_float32_and_an_adapter_that_is_another_is_not_exported(tmp_path: Path) -> None:
    base = published(tmp_path / "base", torch.bfloat16)
    run = trained(base, tmp_path / "run", lora=True)
    folder = run.folder / "model"
    path = folder / "adapter" / "adapter_model.safetensors"
    adapter = load_file(path)
    assert {t.dtype for t in adapter.values()} == {torch.float32}
    again = merge(load_adapted(folder, str(base)))
    files = load_file(folder / WEIGHTS)
    assert all(torch.equal(t, files[name]) for name, t in rounded(again, torch.bfloat16).items() if name in files)
    run.export(tmp_path / "hub")
    save_file({k: v + 0.1 for k, v in adapter.items()}, path, {"format": "pt"})
    with pytest.raises(TaciturnError, match="the adapter's"):
        run.export(tmp_path / "broken")
    assert not (tmp_path / "broken").exists()


def test_a_resumed_run_ends_with_the_same_files(tmp_path: Path) -> None:
    """What is resumed is float32: a rounded start would end elsewhere."""
    base = published(tmp_path / "base", torch.bfloat16)
    whole = trained(base, tmp_path / "whole", checkpoint_steps=1)
    plan = planned(base, checkpoint_steps=1)

    def stop(step: Any) -> None:
        if step.step.number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tt.train(plan, tmp_path / "run", notify=stop, progress=False)
    tt.train(plan, tmp_path / "run", resume=True, progress=False)
    assert (tmp_path / "run" / "model" / WEIGHTS).read_bytes() == (whole.folder / "model" / WEIGHTS).read_bytes()


@pytest.mark.parametrize(
    ("base", "asked", "found"),
    [
        (torch.float32, "base", torch.float32),
        (torch.float16, "base", torch.float32),
        (torch.bfloat16, "float32", torch.float32),
        (torch.float32, "bf16", torch.bfloat16),
    ],
)
def test_which_type_is_written(base: torch.dtype, asked: Any, found: torch.dtype, tmp_path: Path) -> None:
    run = trained(published(tmp_path / "base", base), tmp_path / "run", save_dtype=asked)
    assert dtypes(run.folder / "model") == {found}
    run.certify()
    run.export(tmp_path / "hub")
    assert ("bfloat16" in (tmp_path / "hub" / "README.md").read_text()) == (found == torch.bfloat16)


def test_a_float32_model_is_written_as_transformers_writes_it(tmp_path: Path) -> None:
    torch.manual_seed(0)
    for tied in (True, False):
        config = GPT2Config(vocab_size=270, n_positions=32, n_embd=16, n_layer=1, n_head=2, tie_word_embeddings=tied)
        model = GPT2LMHeadModel(config)
        export(model, byte_tokenizer(), tmp_path / f"ours-{tied}")
        model.save_pretrained(tmp_path / f"theirs-{tied}")
        for name in (WEIGHTS, "config.json", "generation_config.json"):
            assert (tmp_path / f"ours-{tied}" / name).read_bytes() == (tmp_path / f"theirs-{tied}" / name).read_bytes()


def test_ties_stay_and_the_model_is_not_changed(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=270, n_positions=32, n_embd=16, n_layer=1, n_head=2))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    made = rounded(model, torch.bfloat16)
    assert made["lm_head.weight"] is made["transformer.wte.weight"]
    export(model, byte_tokenizer(), tmp_path / "out", torch.bfloat16)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert model.dtype == torch.float32
    loaded = load_exported(tmp_path / "out")[0]
    assert loaded.dtype == torch.float32
    assert all(torch.equal(t, before[name].bfloat16().float()) for name, t in loaded.state_dict().items())


def test_what_a_family_keeps_in_float32_stays() -> None:
    """Routers of DeepSeek: transformers loads them in float32 whatever is asked for."""
    sizes = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 2}
    experts = {
        "first_k_dense_replace": 1,
        "n_routed_experts": 8,
        "n_group": 2,
        "topk_group": 1,
        "num_experts_per_tok": 2,
    }
    ranks = {"q_lora_rank": 8, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "v_head_dim": 4, "qk_nope_head_dim": 4}
    more = {"intermediate_size": 24, "moe_intermediate_size": 8, "vocab_size": 270}
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("deepseek_v3", **sizes, **experts, **ranks, **more))
    fine = {name for name, tensor in rounded(model, torch.bfloat16).items() if tensor.dtype == torch.float32}
    assert fine == {f"model.layers.1.mlp.gate.{name}" for name in ("weight", "e_score_correction_bias")}


def test_a_shape_whose_file_names_bfloat16_is_trained_and_saved_in_float32(tmp_path: Path) -> None:
    shape = {"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "dtype": "bfloat16"}
    (tmp_path / "shape.json").write_text(json.dumps(shape))
    spec = str(tmp_path / "shape.json")
    for model in (random_model(spec), shapes(spec)):
        assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert saved_dtype("base", spec) == saved_dtype("base", "lstm") == torch.float32


def test_a_base_out_of_reach_is_named_before_a_step(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder; expected one with config"):
        saved_dtype("base", str(tmp_path / "nothing"))


def test_the_trainer_gives_back_a_bfloat16_object(tmp_path: Path) -> None:
    base = published(tmp_path / "base", torch.bfloat16)
    model = GPT2LMHeadModel.from_pretrained(base)
    assert model.dtype == torch.bfloat16
    args = TrainingArguments(
        str(tmp_path / "run"), num_train_epochs=1, per_device_train_batch_size=10, disable_tqdm=True, report_to=[]
    )
    screened = tt.screen(tt.read(TEXTS), tt.policy("pii"), tt.policy("conservative"))
    trainer = tt.PrivateTrainer(
        model, args, screened, bpe_tokenizer(TEXTS[:20], 300), delta=1e-3, allow=["cannot-learn"],
        private={"noise_multiplier": 1.0},
    )  # fmt: skip
    trainer.train()
    files = load_file(tmp_path / "run" / "model" / WEIGHTS)
    assert {t.dtype for t in files.values()} == {torch.bfloat16}
    assert all(torch.equal(t, model.state_dict()[name]) for name, t in files.items())
