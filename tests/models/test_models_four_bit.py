"""Frozen layers in 4 bits: the numbers of NormalFloat, exact gradients around them, and an export of what was trained."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import norm
from transformers import AutoConfig, AutoModelForCausalLM

from taciturn.cli.main import run
from taciturn.errors import MissingExtra, UsageError
from taciturn.mechanisms.run import train
from taciturn.mechanisms.settings import RunConfig
from taciturn.models import four_bit
from taciturn.models.four_bit import BLOCK, FourBitLinear, quantize_frozen, widen_frozen
from taciturn.models.hf import checkpoint_activations, export, load_adapted, load_exported, load_model
from taciturn.models.lora import Lora, add, merge
from taciturn.models.loss import collate, record_losses
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.models.tokens import encode_all
from taciturn.persample.capture import captured
from taciturn.persample.clip import clipped_sum
from taciturn.persample.sums import Sums
from taciturn.reporting.export import export as export_run
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.readers import Corpus
from taciturn.training.check import assure
from taciturn.training.fits import fits

pytest.importorskip("peft", reason="adapters come with the extra taciturn[lora]")
pytest.importorskip("bitsandbytes", reason="4 bits come with the extra taciturn[4bit]")

TOKENIZER = byte_tokenizer()
SHAPE = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 192,
         "num_key_value_heads": 2, "max_position_embeddings": 64, "vocab_size": len(TOKENIZER)}  # fmt: skip


def published(folder: Path) -> str:
    torch.manual_seed(2)
    AutoModelForCausalLM.from_config(AutoConfig.for_model("llama", **SHAPE)).save_pretrained(str(folder))
    return str(folder)


def adapted(folder: Path, quantised: bool = True) -> Any:
    """A base with an adapter that is not zero."""
    model = load_model(published(folder), TOKENIZER, adapter=Lora(r=2)).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad:
                p.add_(torch.randn_like(p) * 0.2)
    if quantised:
        quantize_frozen(model)
    return model


def layers(model: Any) -> list[FourBitLinear]:
    return [m for m in model.modules() if isinstance(m, FourBitLinear)]


def levels() -> np.ndarray:
    """The 16 numbers of NormalFloat: quantiles of the normal law, 8 above zero and 7 below it (QLoRA, appendix E)."""
    offset = 0.9677083
    above = norm.ppf(np.linspace(offset, 0.5, 9)[:-1])
    below = -norm.ppf(np.linspace(offset, 0.5, 8)[:-1])
    found = np.sort(np.concatenate([above, [0.0], below]))
    return found / found.max()


def test_each_weight_is_the_nearest_level_of_its_block() -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(192, 12, bias=False)
    weight = model.weight.detach().double().reshape(-1, BLOCK)
    four_bit._quantize(model)
    assert isinstance(model, FourBitLinear)
    assert model.weight.numel() == 192 * 12 // 2
    scale = weight.abs().amax(1, keepdim=True)
    table = torch.from_numpy(levels())
    nearest = table[(weight[..., None] / scale[..., None] - table).abs().argmin(-1)] * scale
    found = model.whole(torch.float32)
    torch.testing.assert_close(found.double().reshape(-1, BLOCK), nearest, rtol=0, atol=1e-6)
    assert torch.equal(model.whole(torch.bfloat16), found.bfloat16())


def results(model: Any, half: bool) -> list[torch.Tensor]:
    """Losses of two records, their norms, and the clipped sums of what is trained."""
    batch = collate(encode_all(TOKENIZER, ["a record with <MASK> in it", "another"]), np.arange(2), mask_id(TOKENIZER))
    sums = Sums()
    with captured(model, 2) as tape:
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            losses = record_losses(model, batch)
        kept = losses.detach().clone()
        norms = clipped_sum(model, tape, losses, 0.5, sums)
    return [kept, norms, *(sums[name] for name in sums)]


@pytest.mark.parametrize("half", [True, False], ids=["autocast", "float32"])
def test_gradients_are_those_over_the_whole_weights(half: bool, tmp_path: Path) -> None:
    model = adapted(tmp_path / "base")
    whole = deepcopy(model)
    widen_frozen(whole)
    assert len(layers(model)) == 14
    assert not layers(whole)
    for ours, theirs in zip(results(model, half), results(whole, half), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)
    assert assure(model, longest=40) == assure(whole, longest=40)
    apart = results(adapted(tmp_path / "base", quantised=False), half)
    assert not torch.allclose(results(model, half)[0], apart[0], rtol=1e-4)


def test_memory_of_the_base(tmp_path: Path) -> None:
    model = adapted(tmp_path / "base")
    kept = sum(p.nbytes for m in layers(model) for p in m.parameters(recurse=False))
    assert kept == sum(m.in_features * m.out_features for m in layers(model)) * (1 / 2 + 4 / BLOCK)
    assert type(model.get_output_embeddings()) is torch.nn.Linear
    assert not any(p.requires_grad for m in layers(model) for p in m.parameters())


def test_the_export_is_what_was_trained(tmp_path: Path) -> None:
    model = adapted(tmp_path / "base")
    q = model.get_submodule("base_model.model.model.layers.0.self_attn.q_proj")
    update = 2 * q.lora_B["default"].weight.double() @ q.lora_A["default"].weight.double()
    want = q.base_layer.whole(torch.float32).double() + update * (q.scaling["default"] / 2)
    merged = merge(model)
    torch.testing.assert_close(merged.model.layers[0].self_attn.q_proj.weight.double(), want, rtol=0, atol=1e-6)
    assert not layers(merged)
    assert layers(model), "the model itself stays as it is"
    export(model, TOKENIZER, tmp_path / "out")
    ids = torch.arange(12)[None]
    logits = model(input_ids=ids).logits
    torch.testing.assert_close(load_exported(tmp_path / "out")[0](input_ids=ids).logits, logits, rtol=0, atol=1e-5)
    again = load_adapted(tmp_path / "out", str(tmp_path / "base"))
    assert len(layers(again)) == 14
    assert not any(p.requires_grad for p in again.parameters())
    torch.testing.assert_close(again(input_ids=ids).logits, logits, rtol=0, atol=1e-6)
    next_run = load_model(str(tmp_path / "out"), TOKENIZER, adapter=Lora(r=2))
    assert not hasattr(next_run.config, "taciturn_base_bits"), "a run from there begins with a plain base"


def test_a_run(tmp_path: Path) -> None:
    """Trained and exported; the checkpoints hold none of the base."""
    texts = [f"my number is (555) 010-77{i:02}, call me" for i in range(9)] + ["hello there, good day"] * 6
    corpus = Corpus.from_texts(texts)
    screened = screen(corpus, policy("phone"), policy("conservative"))
    config = RunConfig(
        mechanism="dpsgd",
        corpus="memory",
        delta=1e-3,
        model={"name": published(tmp_path / "base"), "tokenizer": "bytes", "lora": {"r": 2}, "base_bits": 4},
        options={"noise_multiplier": 1.0, "steps": 3, "batch": 5},
        seeds={"noise": 3},
    )
    train(config, tmp_path / "run", screened=screened)
    [*_, last] = sorted((tmp_path / "run" / "checkpoints").glob("step-*.pt"))
    kept = torch.load(last, weights_only=True)["model"]
    assert kept
    assert all("lora_" in name for name in kept)
    export_run(tmp_path / "run", tmp_path / "exported")  # compares the copy and the adapter on its base
    assert "The base was kept in 4 bits" in (tmp_path / "exported" / "README.md").read_text()
    assert json.loads((tmp_path / "run" / "plan.json").read_text())["model"]["base_bits"] == 4


def test_what_does_not_fit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="this model has none: add lora"):
        quantize_frozen(load_model(published(tmp_path / "base"), TOKENIZER))
    monkeypatch.setattr(four_bit, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"pip install 'taciturn\[4bit\]'"):
        adapted(tmp_path / "base")


def test_what_fits_is_counted_from_shapes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def counted(device: str, bits: int | None) -> Any:
        with torch.device(device):
            model = AutoModelForCausalLM.from_config(AutoConfig.for_model("llama", **SHAPE))
            model = add(model, Lora(r=2))
        if bits:
            quantize_frozen(model)
        checkpoint_activations(model)
        return fits(model, memory=10**9, width=48, dtype="float32")

    plain, small = counted("meta", None), counted("meta", 4)
    assert small == counted("cpu", 4)
    weights = sum(m.in_features * m.out_features for m in layers(adapted(tmp_path / "base")))
    assert plain.weights - small.weights == weights * 4 - weights // 2 - weights * 4 // BLOCK
    command = f"check {published(tmp_path / 'base')} --memory 1 --lora 2 --base-bits 4 --dtype float32 --json"
    assert run(command.split()) == 0
    assert json.loads(capsys.readouterr().out)["weights"] == small.weights
    assert run(f"check {tmp_path / 'base'} --lora 2 --base-bits 4 --tokens 64".split()) == 0
