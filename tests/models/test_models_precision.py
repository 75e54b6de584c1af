"""Frozen weights at half the memory: bit for bit what they were, or not at all."""

from __future__ import annotations

import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

from taciturn.models.four_bit import widen_frozen
from taciturn.models.half import HalfConv1D, HalfLinear, halve_frozen
from taciturn.models.hf import export, load_exported, load_model
from taciturn.models.lora import Lora, merge
from taciturn.models.loss import collate, record_losses
from taciturn.models.saved_dtype import rounded
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.models.tokens import encode_all
from taciturn.persample.capture import captured
from taciturn.persample.clip import clipped_sum
from taciturn.persample.sums import Sums

pytest.importorskip("peft", reason="adapters come with the extra taciturn[lora]")

TOKENIZER = byte_tokenizer()
BASES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64, "tie_word_embeddings": False},
    "llama": {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 24,
              "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": True},
}  # fmt: skip


def adapted(name: str, folder: Path, published: torch.dtype) -> Any:
    """A base published in a type, with an adapter that is not zero."""
    torch.manual_seed(2)
    config = AutoConfig.for_model(name, vocab_size=len(TOKENIZER), **BASES[name])
    AutoModelForCausalLM.from_config(config).to(published).save_pretrained(str(folder))
    model = load_model(str(folder), TOKENIZER, adapter=Lora(r=2)).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad:
                p.add_(torch.randn_like(p) * 0.2)
    return model


def results(model: Any, half: bool) -> list[torch.Tensor]:
    """Losses of two records and the clipped sums of what is trained."""
    batch = collate(encode_all(TOKENIZER, ["a record with <MASK> in it", "another"]), np.arange(2), mask_id(TOKENIZER))
    sums = Sums()
    with captured(model, 2) as tape:
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            losses = record_losses(model, batch)
        kept = losses.detach().clone()
        clipped_sum(model, tape, losses, 0.5, sums)
    return [kept, *(sums[name] for name in sums)]


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("half", [True, False], ids=["autocast", "float32"])
def test_nothing_changes_but_the_memory(name: str, half: bool, tmp_path: Path) -> None:
    model = adapted(name, tmp_path / "base", torch.bfloat16)
    other = deepcopy(model)
    saved = halve_frozen(other)
    layers = [m for m in other.modules() if isinstance(m, HalfLinear | HalfConv1D)]
    assert saved == 2 * sum(m.weight.numel() for m in layers) > 0
    for ours, theirs in zip(results(other, half), results(model, half), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("name", BASES)
def test_what_is_trained_shared_or_finer_than_bfloat16_stays(name: str, tmp_path: Path) -> None:
    fine = adapted(name, tmp_path / "fine", torch.float32)
    assert halve_frozen(fine) == 0
    model = adapted(name, tmp_path / "base", torch.bfloat16)
    halve_frozen(model)
    kinds = {n: p.dtype for n, p in model.named_parameters()}
    assert {kinds[n] for n, p in model.named_parameters() if p.requires_grad} == {torch.float32}
    assert {t for n, t in kinds.items() if "embed" in n or "wte" in n or "norm" in n or "ln_" in n} == {torch.float32}


@pytest.mark.parametrize("name", BASES)
def test_an_adapter_is_added_to_whole_weights(name: str, tmp_path: Path) -> None:
    model = adapted(name, tmp_path / "base", torch.bfloat16)
    want = merge(model).state_dict()
    halve_frozen(model)
    found = merge(model).state_dict()
    assert found.keys() == want.keys()
    assert all(torch.equal(found[n], want[n]) for n in want)
    assert any(isinstance(m, HalfLinear | HalfConv1D) for m in model.modules()), "the model itself stays as it is"
    export(model, TOKENIZER, tmp_path / "out")
    loaded = load_exported(tmp_path / "out")[0].state_dict()
    assert all(torch.equal(loaded[n], want[n]) for n in want)
    widen_frozen(model)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert not any(isinstance(m, HalfLinear | HalfConv1D) for m in model.modules())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("name", BASES)
def test_layers_rounded_one_by_one_are_the_whole_model_rounded(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    model = adapted(name, tmp_path / "base", torch.bfloat16)
    want = rounded(merge(model), dtype)
    halve_frozen(model)
    found = rounded(merge(model, dtype), dtype)
    assert found.keys() == want.keys()
    assert all(torch.equal(found[n], want[n]) and found[n].dtype == dtype for n in want)


def test_what_a_family_keeps_whole_is_not_rounded(tmp_path: Path) -> None:
    model = adapted("llama", tmp_path / "base", torch.bfloat16)
    model.get_base_model()._keep_in_fp32_modules_strict = {"q_proj"}
    want, found = (rounded(merged, torch.bfloat16) for merged in (merge(model), merge(model, torch.bfloat16)))
    assert all(torch.equal(found[n], want[n]) for n in want)
    assert {each.dtype for n, each in found.items() if "q_proj" in n} == {torch.float32}


def base(name: str, folder: Path, published: torch.dtype, **more: Any) -> str:
    torch.manual_seed(2)
    config = AutoConfig.for_model(name, vocab_size=len(TOKENIZER), **{**BASES[name], **more})
    AutoModelForCausalLM.from_config(config).to(published).save_pretrained(str(folder))
    return str(folder)


def state(model: Any) -> dict[str, tuple[type, torch.Tensor]]:
    """Parameters and buffers, those of no file too, with the kinds of their modules."""
    modules = dict(model.named_modules())
    named = [*model.named_parameters(remove_duplicate=False), *model.named_buffers()]
    return {name: (type(modules[name.rpartition(".")[0]]), each.detach()) for name, each in named}


HOW: dict[str, dict[str, Any]] = {
    "adapter": {"adapter": Lora(r=2)},
    "frozen": {"frozen": ["*.0.*"]},
    "whole head": {"adapter": Lora(r=2, modules_to_save=("lm_head",))},
    "nothing frozen": {},
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", BASES)
def test_read_as_published_is_what_float32_halved_is(name: str, how: str, tmp_path: Path) -> None:
    """Weights, adapters drawn from the seed, buffers: to the bit, in the same types, in the same kinds of layers."""
    if how == "whole head" and BASES[name]["tie_word_embeddings"]:
        pytest.skip("its head is its embedding")
    folder = base(name, tmp_path / "base", torch.bfloat16)
    read = state(load_model(folder, TOKENIZER, 3, **HOW[how], half=True))
    whole = load_model(folder, TOKENIZER, 3, **HOW[how])
    halve_frozen(whole)
    want = state(whole)
    assert read.keys() == want.keys()
    for each, (kind, tensor) in want.items():
        assert read[each][0] is kind, each
        assert read[each][1].dtype == tensor.dtype, each
        assert torch.equal(read[each][1], tensor), each
    halves = [each for each, (kind, _) in read.items() if kind in (HalfLinear, HalfConv1D)]
    assert bool(halves) == (how != "nothing frozen")


@pytest.mark.parametrize("name", BASES)
def test_a_vocabulary_that_grows_reads_alike(name: str, tmp_path: Path) -> None:
    folder = base(name, tmp_path / "base", torch.bfloat16, pad_token_id=None)
    larger = byte_tokenizer()
    larger.add_tokens(["<one more>"])
    read = state(load_model(folder, larger, 3, adapter=Lora(r=2), half=True))
    whole = load_model(folder, larger, 3, adapter=Lora(r=2))
    halve_frozen(whole)
    assert all(torch.equal(read[each][1], tensor) for each, (_, tensor) in state(whole).items())


def test_files_that_hold_one_finer_number_are_read_whole(tmp_path: Path) -> None:
    folder = base("llama", tmp_path / "base", torch.bfloat16)
    path = Path(folder) / "model.safetensors"
    tensors = load_file(path)
    fine = "model.layers.0.mlp.up_proj.weight"
    tensors[fine] = tensors[fine].float() + 2**-20
    save_file(tensors, path, {"format": "pt"})
    read = load_model(folder, TOKENIZER, adapter=Lora(r=2), half=True)
    assert torch.equal(state(read)["base_model.model.model.layers.0.mlp.up_proj.base_layer.weight"][1], tensors[fine])
    kinds = {type(module) for name, module in read.named_modules() if name.endswith("q_proj.base_layer")}
    assert kinds == {HalfLinear}  # what loses nothing is halved afterwards


MOST = "most = lambda: int(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])\n"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks the system how much memory it gave at most")
def test_reading_and_merging_take_the_memory_of_the_files(tmp_path: Path) -> None:
    """Of a base of 67 million numbers in linear layers, in a process each; what is mapped from its file counts too."""
    shape = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 8,
             "num_key_value_heads": 8}  # fmt: skip
    folder = base("llama", tmp_path / "base", torch.bfloat16, **shape)

    def peaks(half: bool, *steps: str) -> list[int]:
        """Above what the process had before: after reading, and after each step."""
        code = (
            f"from pathlib import Path\nimport torch, peft\nfrom taciturn.models.hf import load_model\n{MOST}"
            "from taciturn.models.half import halve_frozen\nfrom taciturn.models.lora import Lora, merge\n"
            "from taciturn.models.saved_dtype import rounded\nfrom taciturn.models.tokenizers import byte_tokenizer\n"
            "before = most()\n"
            f"model = load_model({folder!r}, byte_tokenizer(), adapter=Lora(r=2), half={half})\n"
            "halve_frozen(model)\nprint(most() - before)\n"
        ) + "".join(f"{step}\nprint(most() - before)\n" for step in steps)
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return [1024 * int(line) for line in said.stdout.splitlines()]

    size = (Path(folder) / "model.safetensors").stat().st_size
    assert size > 120e6
    assert peaks(False)[0] > 2.2 * size
    one_by_one = "made = rounded(merge(model, torch.bfloat16), torch.bfloat16); del made"
    read, rounding, whole = peaks(True, one_by_one, "rounded(merge(model), torch.bfloat16)")
    assert read < 1.2 * size
    assert rounding < 3.3 * size < 3.7 * size < whole
