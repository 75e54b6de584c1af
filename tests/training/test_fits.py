"""What fits on a device, from shapes: against passes that are counted, and what sharing a model saves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from taciturn.cli.main import run
from taciturn.errors import UsageError
from taciturn.models.half import halve_frozen
from taciturn.models.hf import checkpoint_activations
from taciturn.training.check import pass_bytes
from taciturn.training.fits import SPARE, fits

GB = 10**9
SHAPES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 32, "n_layer": 3, "n_head": 2, "n_positions": 64, "vocab_size": 300},
    "llama": {"num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48,
              "num_key_value_heads": 2, "max_position_embeddings": 64, "vocab_size": 300},
}  # fmt: skip


def made(name: str, device: str = "meta", **more: Any) -> Any:
    with torch.device(device):
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **SHAPES[name], **more))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("rows", [3, 12])
def test_two_passes_tell_what_others_hold(name: str, rows: int) -> None:
    found = fits(made(name), memory=GB, width=48, dtype="float32")
    _, peak = pass_bytes(made(name, "cpu"), rows, 48, False)
    assert found.first + (rows - 1) * found.each == pytest.approx(peak, rel=0.02)


@pytest.mark.parametrize("name", SHAPES)
def test_as_many_records_as_fit_and_not_one_more(name: str) -> None:
    found = fits(made(name), memory=40_000_000, width=48)
    assert found.rows > 4
    needed = found.fixed + found.first + (found.rows - 1) * found.each
    assert needed <= SPARE * found.memory < needed + found.each
    assert found.token_budget == found.rows * 48
    assert fits(made(name), memory=found.fixed, width=48).rows == 0


def test_a_model_without_weights_is_counted_like_one_with() -> None:
    assert fits(made("llama"), memory=GB, width=32) == fits(made("llama", "cpu"), memory=GB, width=32)


def test_what_lowers_the_need() -> None:
    plain = fits(made("llama"), memory=GB, width=48)
    again = made("llama", "cpu")
    checkpoint_activations(again)
    assert fits(again, memory=GB, width=48).each < plain.each
    frozen, halved = made("llama"), made("llama")
    for model in (frozen, halved):
        for name, p in model.named_parameters():
            p.requires_grad_("layers.0" in name)
    lighter = fits(frozen, memory=GB, width=48)
    assert lighter.sums < plain.sums / 2
    assert lighter.optimiser == 2 * lighter.sums
    saved = halve_frozen(halved)
    assert fits(halved, memory=GB, width=48).weights == lighter.weights - saved
    shared = fits(made("llama"), memory=GB, width=48, gpus=4)
    assert (shared.weights, shared.sums) == (plain.weights // 4, plain.sums // 4)
    assert shared.whole > 0


def test_no_device_is_an_error() -> None:
    with pytest.raises(UsageError, match="at least one device"):
        fits(made("gpt2"), memory=GB, width=8, gpus=0)


def test_the_command_needs_a_configuration_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = AutoConfig.for_model("llama", **SHAPES["llama"])
    config.architectures = ["LlamaForCausalLM"]
    config.save_pretrained(tmp_path / "model")
    assert not list((tmp_path / "model").glob("*.safetensors"))
    command = f"check {tmp_path / 'model'} --memory 0.05 --max-length 48"
    assert run(command.split()) == 0
    told = capsys.readouterr().out
    assert "train.token_budget = " in told
    assert run([*command.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert f"up to {found['rows']} records" in told
    assert found["token_budget"] == 48 * found["rows"]
    assert run(f"check {tmp_path / 'model'} --memory 0.0001 --max-length 48".split()) == 2
    assert "does not fit" in capsys.readouterr().out
    assert run(f"check {tmp_path / 'model'} --memory 0.05 --gpus 2 --lora 2 --max-length 48".split()) == 0
    assert "each of 2 devices" in capsys.readouterr().out
