"""Every family of models loads from a configuration and from a folder, grows for `<MASK>`, and never reads padding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
)

from taciturn.errors import UsageError
from taciturn.models.hf import context_length, export, load_exported, load_model, task_of
from taciturn.models.loss import Batch, collate, record_losses, token_losses
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.models.tokens import encode_all

TOKENIZER = byte_tokenizer()
MASK = mask_id(TOKENIZER)
SIZES = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 4}
LLAMA = SIZES | {"intermediate_size": 24, "num_key_value_heads": 2, "max_position_embeddings": 64}
BERT = SIZES | {"intermediate_size": 24, "max_position_embeddings": 40}
DISTIL = {"n_layers": 2, "dim": 16, "n_heads": 4, "hidden_dim": 24, "max_position_embeddings": 40}
CAUSAL: dict[str, dict[str, Any]] = {
    "gpt2": {"model_type": "gpt2", "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64},
    "gpt2-untied": {
        "model_type": "gpt2",
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": 64,
        "tie_word_embeddings": False,
    },
    "llama-tied": {"model_type": "llama", "tie_word_embeddings": True} | LLAMA,
    "llama-untied": {"model_type": "llama", "tie_word_embeddings": False} | LLAMA,
    "qwen2": {"model_type": "qwen2"} | LLAMA,
    "qwen3": {"model_type": "qwen3", "head_dim": 4} | LLAMA,
    "gpt_neox": {"model_type": "gpt_neox", "intermediate_size": 24, "max_position_embeddings": 64} | SIZES,
    "opt": {"model_type": "opt", "ffn_dim": 24, "max_position_embeddings": 64, "word_embed_proj_dim": 16} | SIZES,
    "lstm": {"model_type": "taciturn_lstm", "embedding_size": 8, "hidden_size": 8},
    "awd-lstm": {"model_type": "taciturn_awd_lstm", "embedding_size": 8, "hidden_size": 12},
    "awd-lstm-tied": {
        "model_type": "taciturn_awd_lstm",
        "embedding_size": 8,
        "hidden_size": 12,
        "tie_word_embeddings": True,
    },
}
ENCODERS: dict[str, dict[str, Any]] = {
    "bert": {"model_type": "bert"} | BERT,
    "roberta": {"model_type": "roberta", "type_vocab_size": 1} | BERT,
    "distilbert": {"model_type": "distilbert"} | DISTIL,
}
CLASSIFIERS = ENCODERS | {"awd-lstm": CAUSAL["awd-lstm"]}
TEXTS = ["one longer record", "two", "<MASK> three <MASK>"]


def config_file(shape: dict[str, Any], folder: Path) -> str:
    path = folder / "shape.json"
    path.write_text(json.dumps(shape))
    return str(path)


def published(shape: dict[str, Any], folder: Path, auto: Any, vocab_size: int = len(TOKENIZER) - 1, **more: Any) -> str:
    """A folder with random weights, by default one row short of the tokenizer, as of a model that never saw `<MASK>`."""
    torch.manual_seed(1)
    options = {"vocab_size": vocab_size, **shape, **more}
    kind = options.pop("model_type")
    model = auto.from_config(AutoConfig.for_model(kind, **options))
    model.save_pretrained(str(folder / "published"))
    return str(folder / "published")


def texts() -> Batch:
    tokens = encode_all(TOKENIZER, TEXTS)
    return collate(tokens, np.arange(len(tokens)), MASK)


def row(batch: Batch, b: int) -> Batch:
    """Record ``b`` without its padding."""
    length = int(batch.attention[b].sum())
    cut = (t[b : b + 1, :length] for t in (batch.input_ids, batch.attention, batch.targets, batch.weights))
    return Batch(*cut, None if batch.labels is None else batch.labels[b : b + 1])


def assert_padding_is_not_read(model: Any, batch: Batch) -> None:
    model.eval()
    with torch.no_grad():
        together = record_losses(model, batch)
        alone = torch.cat([record_losses(model, row(batch, b)) for b in range(len(batch))])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)
    noise = torch.randint(0, MASK, batch.input_ids.shape)
    other = Batch(
        torch.where(batch.attention > 0, batch.input_ids, noise),
        batch.attention,
        batch.targets,
        batch.weights,
        batch.labels,
    )
    with torch.no_grad():
        torch.testing.assert_close(record_losses(model, other), together, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CAUSAL)
def test_a_causal_model_from_its_configuration(name: str, tmp_path: Path) -> None:
    model = load_model(config_file(CAUSAL[name], tmp_path), TOKENIZER, seed=3)
    assert model.get_input_embeddings().weight.shape[0] >= len(TOKENIZER)
    assert all(p.dtype == torch.float32 and p.requires_grad for p in model.parameters())
    assert_padding_is_not_read(model, texts())
    again = load_model(config_file(CAUSAL[name], tmp_path), TOKENIZER, seed=3)
    for a, b in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", CAUSAL)
def test_a_published_causal_model_grows_by_the_mean_row(name: str, tmp_path: Path) -> None:
    folder = published(CAUSAL[name], tmp_path, AutoModelForCausalLM)
    before = AutoModelForCausalLM.from_pretrained(folder).get_input_embeddings().weight.detach()
    model = load_model(folder, TOKENIZER)
    embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    assert embedding.shape[0] == head.shape[0] == model.config.vocab_size == len(TOKENIZER)
    torch.testing.assert_close(embedding[:-1], before)
    torch.testing.assert_close(embedding[MASK], before.mean(0))
    torch.testing.assert_close(head[MASK], head[:-1].mean(0))
    assert (embedding is head) == bool(model.config.tie_word_embeddings)
    assert_padding_is_not_read(model, texts())


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name: str, tmp_path: Path) -> None:
    labels = ["no", "perhaps", "yes"]
    made = load_model(config_file(CLASSIFIERS[name], tmp_path), TOKENIZER, task="classify", labels=labels)
    assert made.config.id2label == {0: "no", 1: "perhaps", 2: "yes"}
    auto = AutoModelForMaskedLM if name in ENCODERS else AutoModelForCausalLM
    loaded = load_model(
        published(CLASSIFIERS[name], tmp_path, auto, pad_token_id=1),
        TOKENIZER,
        task="classify",
        labels=labels,
    )
    assert loaded.get_input_embeddings().weight.shape[0] == len(TOKENIZER)
    batch = texts()
    for model in (made, loaded):
        labelled = Batch(batch.input_ids, batch.attention, batch.targets, batch.weights, torch.tensor([2, 0, 1]))
        assert_padding_is_not_read(model, labelled)
    export(loaded, TOKENIZER, tmp_path / "model")
    again, _ = load_exported(tmp_path / "model")
    assert task_of(again.config) == "classify"
    with torch.no_grad():
        torch.testing.assert_close(again(batch.input_ids).logits, loaded.eval()(batch.input_ids).logits)


@pytest.mark.parametrize("name", ENCODERS)
def test_masked_language_models(name: str, tmp_path: Path) -> None:
    made = load_model(config_file(ENCODERS[name], tmp_path), TOKENIZER, task="masked")
    loaded = load_model(
        published(ENCODERS[name], tmp_path, AutoModelForMaskedLM, pad_token_id=1), TOKENIZER, task="masked"
    )
    assert loaded.get_output_embeddings().weight is loaded.get_input_embeddings().weight
    batch = texts()
    weights = batch.weights.roll(1, 1)
    for model in (made, loaded):
        assert_padding_is_not_read(model, Batch(batch.input_ids, batch.attention, batch.input_ids, weights))
    export(loaded, TOKENIZER, tmp_path / "model")
    again, _ = load_exported(tmp_path / "model")
    assert isinstance(again, type(loaded))
    with torch.no_grad():
        logits = again(batch.input_ids).logits
        torch.testing.assert_close(logits, loaded.eval()(batch.input_ids).logits)
    assert logits.shape[-1] == len(TOKENIZER)


def test_roberta_counts_positions_from_its_padding_id(tmp_path: Path) -> None:
    model = load_model(config_file(ENCODERS["roberta"], tmp_path), TOKENIZER, task="masked")
    pad = model.config.pad_token_id
    assert pad == len(TOKENIZER) == model.config.vocab_size - 1, "an id that no text has"
    assert context_length(model) == 40 - 1
    published_model = load_model(
        published(ENCODERS["roberta"], tmp_path, AutoModelForMaskedLM, pad_token_id=1), TOKENIZER, task="masked"
    )
    longest = context_length(published_model)
    assert longest == 40 - 2
    ids = torch.full((1, longest), 7)
    assert token_losses(published_model, Batch(ids, torch.ones_like(ids), ids, torch.ones(1, longest))).isfinite().all()


def test_an_end_of_text_that_pads_is_trained(tmp_path: Path) -> None:
    """A padding id of its own has no gradient in an embedding; here the end of text is it, and every record has one."""
    end = TOKENIZER.eos_token_id
    folder = published(CAUSAL["llama-untied"], tmp_path, AutoModelForCausalLM, pad_token_id=end, eos_token_id=end)
    assert AutoModelForCausalLM.from_pretrained(folder).get_input_embeddings().padding_idx == end
    model = load_model(folder, TOKENIZER)
    record_losses(model, texts()).sum().backward()
    assert model.get_input_embeddings().weight.grad[end].abs().sum() > 0


def test_frozen_parts_are_named_by_patterns(tmp_path: Path) -> None:
    spec = config_file(CAUSAL["gpt2"], tmp_path)
    model = load_model(spec, TOKENIZER, frozen=["transformer.wte.*", "*.bias"])
    free = {name for name, p in model.named_parameters() if p.requires_grad}
    assert "transformer.h.0.attn.c_attn.weight" in free
    assert not any(name.endswith("bias") or "wte" in name for name in free)
    with pytest.raises(UsageError, match=r"frozen 'wte' matches no parameter"):
        load_model(spec, TOKENIZER, frozen=["wte"])


@pytest.mark.parametrize(
    ("shape", "more", "says"),
    [
        (
            CAUSAL["gpt2"],
            {"overrides": {"resid_drop": 0.1}},
            "gpt2 has no option 'resid_drop': did you mean 'resid_pdrop'",
        ),
        (ENCODERS["bert"], {}, "bert reads text from both sides"),
        (
            CAUSAL["llama-tied"],
            {"task": "classify", "labels": "ab"},
            "classifies by the last token whose id is not padding",
        ),
        (ENCODERS["bert"], {"task": "classify", "labels": ["one"]}, "needs at least two labels, found 1"),
        (CAUSAL["gpt2"], {"task": "masked"}, "cannot be loaded"),
        (CAUSAL["lstm"], {"gradient_checkpointing": True}, "has no layers it can recompute"),
        ({"model_type": "nothing"}, {}, "cannot be loaded"),
        ({}, {}, "cannot be loaded"),
    ],
)
def test_what_does_not_fit_is_refused(shape: dict[str, Any], more: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says):
        load_model(config_file(shape, tmp_path), TOKENIZER, **more)


def test_published_options_are_checked_too(tmp_path: Path) -> None:
    folder = published(CAUSAL["gpt2"], tmp_path, AutoModelForCausalLM)
    assert load_model(folder, TOKENIZER, overrides={"resid_pdrop": 0.0}).config.resid_pdrop == 0.0
    with pytest.raises(UsageError, match="did you mean 'resid_pdrop'"):
        load_model(folder, TOKENIZER, overrides={"resid_drop": 0.0})


def test_a_folder_without_the_weights_of_the_task_is_refused(tmp_path: Path) -> None:
    folder = published(ENCODERS["bert"], tmp_path, AutoModelForSequenceClassification, pad_token_id=1)
    with pytest.raises(UsageError, match="lacks weights of a masked language model: cls"):
        load_model(folder, TOKENIZER, task="masked")


def test_gradient_checkpointing_changes_no_gradient(tmp_path: Path) -> None:
    grads = []
    for on in (False, True):
        spec = config_file(CAUSAL["gpt2"] | {"resid_pdrop": 0.1}, tmp_path)
        model = load_model(spec, TOKENIZER, seed=4, gradient_checkpointing=on).train()
        torch.manual_seed(5)
        record_losses(model, texts()).sum().backward()
        grads.append([p.grad for p in model.parameters()])
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b)


def test_a_model_with_a_mask_token_of_its_own_starts_from_that_one(tmp_path: Path) -> None:
    tokenizer = byte_tokenizer()
    tokenizer.mask_token = tokenizer.convert_ids_to_tokens(7)
    folder = published(ENCODERS["bert"], tmp_path, AutoModelForMaskedLM, pad_token_id=1)
    before = AutoModelForMaskedLM.from_pretrained(folder).get_input_embeddings().weight.detach()
    embedding = load_model(folder, tokenizer, task="masked").get_input_embeddings().weight
    torch.testing.assert_close(embedding[mask_id(tokenizer)], before[7])
