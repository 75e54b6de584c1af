"""What `taciturn check` finds: what is trained, what has no rule, and what a pass costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

from taciturn.cli.main import run
from taciturn.models.hf import checkpoint_activations
from taciturn.models.loss import record_losses
from taciturn.models.source import random_model
from taciturn.persample.capture import captured
from taciturn.persample.isolated import without_dropout
from taciturn.training.check import assure, check, counted, pass_bytes, random_batch

GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64, "vocab_size": 500}
LLAMA = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 500,
}
BERT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48, "vocab_size": 500}


def made(kind: str, options: dict[str, Any], auto: Any = AutoModelForCausalLM) -> Any:
    torch.manual_seed(0)
    return auto.from_config(AutoConfig.for_model(kind, **options))


def recurrent(spec: str) -> Any:
    torch.manual_seed(0)
    return random_model(spec, {"vocab_size": 500, "hidden_size": 24, "embedding_size": 16})


MODELS = {
    "gpt2": lambda: made("gpt2", GPT2),
    "llama": lambda: made("llama", LLAMA | {"intermediate_size": 48, "max_position_embeddings": 64}),
    "lstm": lambda: recurrent("lstm"),
    "awd-lstm": lambda: recurrent("awd-lstm"),
    "bert": lambda: made("bert", BERT | {"max_position_embeddings": 64}, AutoModelForSequenceClassification),
}


def allocator_peak(model: Any, rows: int, width: int, classify: bool) -> int:
    """Most bytes the CPU's allocator had handed out and not got back, over a real pass."""
    model.train()
    batch = random_batch(model, (width,) * rows, classify)
    with (
        captured(model, rows),
        without_dropout(model),
        profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen,
    ):
        record_losses(model, batch).sum().backward()
    events = [e for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return peak


@pytest.mark.parametrize("name", MODELS)
def test_a_pass_costs_what_the_allocator_gives_out(name: str) -> None:
    classify = name == "bert"
    model = MODELS[name]()
    want = allocator_peak(model, 4, 32, classify)
    held, peak = pass_bytes(model, 4, 32, classify)
    assert peak == pytest.approx(want, rel=0.1)
    assert 0 < held <= peak


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model_is_supported(name: str) -> None:
    found = check(MODELS[name](), classify=name == "bert", tokens=256, max_length=32)
    assert found.problems == []
    assert found.difference is not None
    assert found.difference < 1e-4
    assert found.padding is not None
    assert found.padding < 1e-4
    assert found.memory is not None
    assert (found.memory.rows, found.memory.width) == (8, 32)
    assert found.trainable == found.parameters
    assert found.memory.sums == 4 * found.trainable
    assert found.memory.optimiser == 8 * found.trainable
    assert found.memory.total == found.memory.weights + 3 * found.memory.sums + found.memory.peak


def test_memory_grows_with_the_budget_and_checkpointing_lowers_it() -> None:
    small, large = (pass_bytes(MODELS["gpt2"](), rows, 64, False)[0] for rows in (2, 8))
    assert large == pytest.approx(4 * small, rel=0.02)
    model = MODELS["gpt2"]()
    checkpoint_activations(model)
    assert pass_bytes(model, 8, 64, False)[0] < 0.8 * large


def test_frozen_parts_cost_no_sums() -> None:
    model = MODELS["gpt2"]()
    model.transformer.wte.weight.requires_grad_(False)
    found = check(model, tokens=128, max_length=32)
    assert found.parameters - found.trainable == 500 * 32
    assert "Embedding" in found.layers  # of positions


class Odd(nn.Module):
    """A layer with a weight of its own."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.scale = inner, nn.Parameter(torch.ones(1))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner(*args, **kwargs) * self.scale


def test_what_has_no_rule_is_named_and_run_one_record_at_a_time() -> None:
    model = MODELS["gpt2"]()
    model.transformer.h[0].mlp.c_proj = Odd(model.transformer.h[0].mlp.c_proj)
    found = check(model, tokens=128, max_length=32)
    assert found.generic == ("transformer.h.0.mlp.c_proj (Odd)",)
    assert found.problems == []
    assert found.memory is not None


class Deciding(Odd):
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return super().forward(*args, **kwargs) * (2 if self.scale.item() > 3 or args[0].sum().item() > 3 else 1)


def test_what_cannot_be_run_one_record_at_a_time_is_refused_by_name() -> None:
    model = MODELS["gpt2"]()
    model.transformer.h[0].mlp.c_proj = Deciding(model.transformer.h[0].mlp.c_proj)
    found = check(model)
    assert any("(Deciding), and it cannot be run one record at a time" in problem for problem in found.problems)
    assert found.memory is None


class Reversed(nn.Module):
    """Turns the batch around on the way through."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x.flip(0)).flip(0)


def test_a_model_that_mixes_records_is_found_out() -> None:
    model = MODELS["gpt2"]()
    model.transformer.h[0].mlp.c_proj = Reversed(model.transformer.h[0].mlp.c_proj)
    assert any("differ from one record at a time" in problem for problem in check(model).problems)


def test_the_command_prints_and_returns_what_it_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = tmp_path / "shape.json"
    shape.write_text(json.dumps({"model_type": "gpt2"} | GPT2))
    options = ["--tokens", "256", "--max-length", "32", "--json"]
    assert run(["check", str(shape), *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"] == "GPT2LMHeadModel"
    assert found["problems"] == []
    assert found["memory"]["total"] > found["memory"]["weights"]
    assert run(["check", str(shape), "--tokens", "256"]) == 0
    assert "parameters are trained, in 8 Conv1D, 5 LayerNorm" in " ".join(capsys.readouterr().out.split())
    assert run(["check", "gtp2.json"]) == 2
    assert "MODEL 'gtp2.json' cannot be loaded" in capsys.readouterr().err


def test_the_command_names_what_is_unsupported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = tmp_path / "shape.json"
    mixture = {"num_local_experts": 2, "num_experts_per_tok": 1, "intermediate_size": 24, "num_key_value_heads": 2}
    shape.write_text(json.dumps({"model_type": "llama4_text", "max_position_embeddings": 64} | LLAMA | mixture))
    assert run(["check", str(shape), "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert any("Llama4TextExperts" in name for name in found["generic"])
    assert any("differ from one record at a time" in problem for problem in found["problems"])
    shape.write_text(json.dumps({"model_type": "mixtral", "max_position_embeddings": 64} | LLAMA | mixture))
    assert run(["check", str(shape), "--tokens", "64"]) == 0
    assert "MixtralExperts" in capsys.readouterr().out
    shape.write_text(json.dumps({"model_type": "mamba", "state_size": 4, "hidden_size": 16, "num_hidden_layers": 1}))
    assert run(["check", str(shape), "--tokens", "64"]) == 0
    assert "for want of a rule: backbone.layers.0.mixer (MambaMixer)" in capsys.readouterr().out
    shape.write_text(json.dumps({"model_type": "t5"}))
    assert run(["check", str(shape), "--task", "classify"]) == 2
    assert "reads one text and writes another" in capsys.readouterr().err
    pytest.importorskip("peft", reason="adapters come with the extra taciturn[lora]")
    shape.write_text(json.dumps({"model_type": "gpt2"} | GPT2))
    assert run(["check", str(shape), "--lora", "2", "--tokens", "64", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["layers"] == {"Linear": 16}


def test_the_look_before_the_first_step_holds_two_copies_of_what_is_trained() -> None:
    """What is left of a sum, and the gradient that a pass of one record keeps; it held three, its sums and those of passes
    that are to be compared among them."""
    model = made("llama", LLAMA | {"hidden_size": 128, "intermediate_size": 1024, "max_position_embeddings": 64})
    trained = sum(4 * p.numel() for p in model.parameters())
    with counted() as count:
        assert assure(model) < 1e-5
    assert count.peak < 2.1 * trained
    assert all(p.grad is None for p in model.parameters())
