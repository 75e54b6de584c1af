"""Adapters: only they are trained, they move, and what is exported loads in a fresh process with the same loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

from processes import fresh
from taciturn.errors import MissingExtra, TaciturnError, UsageError
from taciturn.mechanisms.run import train
from taciturn.mechanisms.settings import RunConfig
from taciturn.models import lora
from taciturn.models.hf import export, load_adapted, load_exported, load_model
from taciturn.models.lora import Lora
from taciturn.models.loss import collate, record_losses
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.models.tokens import encode_all
from taciturn.reporting.export import export as export_run
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.readers import Corpus

peft = pytest.importorskip("peft", reason="adapters come with the extra taciturn[lora]")

TOKENIZER = byte_tokenizer()
V = len(TOKENIZER)
SIZES = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 24}
GPT2 = {
    "n_embd": 16,
    "n_layer": 2,
    "n_head": 2,
    "n_positions": 64,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
}
BASES: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("gpt2", GPT2),
    "gpt2-untied": ("gpt2", GPT2 | {"tie_word_embeddings": False}),
    "llama": ("llama", SIZES | {"num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": True}),
    "gpt_neox": ("gpt_neox", SIZES | {"max_position_embeddings": 64}),
    "opt": ("opt", {"ffn_dim": 24, "max_position_embeddings": 64, "word_embed_proj_dim": 16, "dropout": 0.0} | SIZES),
}


def base(name: str, folder: Path, rows: int = V - 1, auto: Any = AutoModelForCausalLM) -> str:
    """A published model; by default its vocabulary has no `<MASK>` yet."""
    kind, options = BASES[name] if name in BASES else (name, SIZES | {"max_position_embeddings": 64, "pad_token_id": 1})
    torch.manual_seed(2)
    path = folder / f"base-{rows}"
    auto.from_config(AutoConfig.for_model(kind, vocab_size=rows, **options)).save_pretrained(str(path))
    return str(path)


def moved(model: Any, seed: int = 0) -> Any:
    """The model after an update of everything it trains."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad:
                p.add_(torch.randn_like(p) * 0.2)
    return model.eval()


def losses(model: Any) -> torch.Tensor:
    tokens = encode_all(TOKENIZER, ["a record with <MASK> in it", "another"])
    with torch.no_grad():
        return record_losses(model, collate(tokens, np.arange(2), mask_id(TOKENIZER)))


FRESH = """
import json, os, torch, warnings
warnings.simplefilter("ignore")
from peft import AutoPeftModelForCausalLM, PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer
found = {}
for folder, base, ids in given:
    tokenizer = AutoTokenizer.from_pretrained(folder + "/adapter")
    plain = AutoModelForCausalLM.from_pretrained(base)
    if len(tokenizer) > plain.get_input_embeddings().weight.shape[0]:
        plain.resize_token_embeddings(len(tokenizer))
    os.chdir(os.path.dirname(base))  # an adapter names a base that is a folder by its last part alone
    models = [AutoModelForCausalLM.from_pretrained(folder), PeftModel.from_pretrained(plain, folder + "/adapter"),
              AutoPeftModelForCausalLM.from_pretrained(folder + "/adapter")]
    found[folder] = [float(m.eval()(input_ids=torch.tensor(ids), labels=torch.tensor(ids)).loss) for m in models]
print(json.dumps(found))
"""


def test_p35_exports_load_with_plain_calls_in_a_fresh_process(tmp_path: Path) -> None:
    """peft#1457: an adapter trained with an added token must find its embedding again. Bases with and without `<MASK>`."""
    ids = encode_all(TOKENIZER, ["what is <MASK> here"])[0][None]
    tensor = torch.from_numpy(ids.astype(np.int64))
    want, given = {}, []
    for name in BASES:
        for rows in (V - 1, V):
            where = base(name, tmp_path / name, rows)
            model = moved(load_model(where, TOKENIZER, adapter=Lora(r=4)))
            folder = tmp_path / name / f"model-{rows}"
            export(model, TOKENIZER, folder)
            with torch.no_grad():
                loss = float(model(input_ids=tensor, labels=tensor).loss)
            want[str(folder)] = pytest.approx([loss] * 3, abs=1e-5)
            given.append((str(folder), where, ids.tolist()))
            torch.testing.assert_close(losses(load_adapted(folder, where)), losses(model), rtol=0, atol=1e-4)
            assert "base_layer" not in " ".join(load_exported(folder)[0].state_dict())
    said = fresh(f"given = {given!r}\n" + FRESH)
    assert json.loads(said.splitlines()[-1]) == want


@pytest.mark.parametrize("name", BASES)
def test_only_the_adapter_is_trained(name: str, tmp_path: Path) -> None:
    model = load_model(base(name, tmp_path), TOKENIZER, adapter=Lora(r=2))
    trained = [n for n, p in model.named_parameters() if p.requires_grad]
    assert trained
    assert all("lora_" in n for n in trained)
    before = losses(model)
    torch.testing.assert_close(before, losses(load_model(base(name, tmp_path), TOKENIZER).eval()))
    assert not torch.allclose(losses(moved(model)), before)


def test_a_classifiers_new_head_is_trained_whole(tmp_path: Path) -> None:
    for name, heads in (("bert", {"classifier", "pooler"}), ("roberta", {"classifier"})):
        where = base(name, tmp_path / name, V, AutoModelForMaskedLM)
        model = load_model(where, TOKENIZER, task="classify", labels=["a", "b"], adapter=Lora(r=2))
        trained = [n for n, p in model.named_parameters() if p.requires_grad and "lora_" not in n]
        assert all(any(head in n for n in trained) for head in heads)
        assert all(any(head in n for head in heads) for n in trained)
        moved(model)
        export(model, TOKENIZER, tmp_path / name / "model")
        ids = torch.arange(12)[None]
        want = model(input_ids=ids).logits
        torch.testing.assert_close(load_exported(tmp_path / name / "model")[0](input_ids=ids).logits, want)
        torch.testing.assert_close(load_adapted(tmp_path / name / "model", where)(input_ids=ids).logits, want)


def test_a_masked_model(tmp_path: Path) -> None:
    where = base("bert", tmp_path, V - 1, AutoModelForMaskedLM)
    model = moved(load_model(where, TOKENIZER, task="masked", adapter=Lora(r=2)))
    export(model, TOKENIZER, tmp_path / "model")
    ids = torch.tensor([[3, 4, mask_id(TOKENIZER), 5]])
    want = model(input_ids=ids).logits
    torch.testing.assert_close(load_exported(tmp_path / "model")[0](input_ids=ids).logits, want)
    torch.testing.assert_close(load_adapted(tmp_path / "model", where)(input_ids=ids).logits, want)


def test_several_adapters_and_only_the_active_one_is_trained(tmp_path: Path) -> None:
    where = base("llama", tmp_path)
    model = moved(load_model(where, TOKENIZER, adapter=Lora(r=2)))
    first = losses(model)
    model = lora.add(model, Lora(r=3, targets=("q_proj", "v_proj")), name="second")
    trained = [n for n, p in model.named_parameters() if p.requires_grad]
    assert trained
    assert all(".second." in n for n in trained)
    moved(model, 1)
    second = losses(model)
    assert not torch.allclose(first, second)
    saved = lora.save(model, TOKENIZER, tmp_path / "adapter")
    assert saved == tmp_path / "adapter" / "second"
    model.set_adapter("default")
    torch.testing.assert_close(losses(model), first)
    model.set_adapter("second")
    torch.testing.assert_close(losses(lora.merge(model)), second)
    torch.testing.assert_close(losses(model), second)  # merging left it as it was
    again = load_model(where, TOKENIZER, adapter=Lora(start=str(saved)))
    torch.testing.assert_close(losses(again.eval()), second)
    assert sum(p.numel() for p in again.parameters() if p.requires_grad) == sum(
        p.numel() for n, p in model.named_parameters() if ".second." in n and "lora_" in n
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (Lora(targets=("q_proj",)), "Layers of this model that take an adapter: c_attn, c_fc, c_proj"),
        (Lora(modules_to_save=("wte",)), "the embedding and the head of this model are one weight"),
        (Lora(start="nowhere"), "expected a folder with an adapter of this model"),
    ],
)
def test_what_does_not_fit_is_refused(options: Lora, says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says):
        load_model(base("gpt2", tmp_path), TOKENIZER, adapter=options)


def test_random_weights_take_no_adapter() -> None:
    with pytest.raises(UsageError, match="an adapter belongs to published weights"):
        load_model("lstm", TOKENIZER, adapter=Lora())


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lora, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"pip install 'taciturn\[lora\]'"):
        load_model(base("gpt2", tmp_path), TOKENIZER, adapter=Lora())


TEXTS = ["hello there, good day"] * 6 + [f"my number is (555) 010-77{i:02}, call me" for i in range(9)]


@pytest.mark.parametrize(("optimiser", "dtype"), [("sgd", "float32"), ("adamw", "float32"), ("adamw", "bf16")])
def test_p03_a_run_moves_every_tensor_of_the_adapter_and_none_of_the_base(
    optimiser: str, dtype: str, tmp_path: Path
) -> None:
    """opacus#820: an adapter that never moved looked healthy. B is zero at first, so A has no gradient in a plain step."""
    screened = screen(Corpus.from_texts(TEXTS), policy("phone"), policy("conservative"))
    steps = {"name": optimiser, "lr": 0.1}
    raw = {
        "mechanism": "crt",
        "corpus": "memory",
        "delta": 1e-3,
        "model": {
            "name": base("gpt2", tmp_path),
            "tokenizer": "bytes",
            "lora": {"r": 2, "targets": ["c_attn"]},
            "dtype": dtype,
            "gradient_checkpointing": dtype == "bf16",
        },
        "options": {
            "public": {"epochs": 2, "batch_size": 4, "optimiser": steps},
            "private": {"steps": 3, "batch": 4, "noise_multiplier": 1.0, "optimiser": steps},
        },
        "seeds": {"noise": 3},
    }
    run = train(RunConfig.model_validate(raw), tmp_path / "run", screened=screened)
    start = load_model(raw["model"]["name"], TOKENIZER, 0, adapter=Lora(r=2, targets=("c_attn",)))
    end = load_adapted(run.model_folder, raw["model"]["name"])
    for (name, a), b in zip(start.named_parameters(), end.parameters(), strict=True):
        assert torch.equal(a, b) == ("lora_" not in name), name
    assert export_run(tmp_path / "run", tmp_path / "out") <= 1e-5
    assert (tmp_path / "out" / "adapter" / "adapter_model.safetensors").is_file()
    weights = run.model_folder / "adapter" / "adapter_model.safetensors"
    from safetensors.torch import load_file, save_file

    save_file({k: v + 0.1 for k, v in load_file(weights).items()}, weights, {"format": "pt"})
    with pytest.raises(TaciturnError, match="the adapter's"):
        export_run(tmp_path / "run", tmp_path / "broken")
    assert not (tmp_path / "broken").exists()
    assert not (tmp_path / "broken.partial").exists()
