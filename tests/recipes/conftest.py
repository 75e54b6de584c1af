"""What tests of several recipes train."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="session")
def little_encoder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[str]], str]:
    """The folder of an encoder with weights and one layer more than medium sizes take, and of a tokenizer of these texts."""

    def make(texts: list[str]) -> str:
        from transformers import BertConfig, BertModel

        folder, tokenizer = begun(tmp_path_factory, texts)
        BertModel(
            BertConfig(
                vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=7, num_attention_heads=2, intermediate_size=32,
                max_position_embeddings=64,
            )
        ).save_pretrained(folder)  # fmt: skip
        return folder

    return make


@pytest.fixture(scope="session")
def little_writer(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[str]], str]:
    """The same of a GPT-2 of three layers, with dropout as GPT-2 has it."""

    def make(texts: list[str]) -> str:
        from transformers import GPT2Config, GPT2LMHeadModel

        folder, tokenizer = begun(tmp_path_factory, texts)
        shape = GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=3, n_head=2, n_positions=64)
        GPT2LMHeadModel(shape).save_pretrained(folder)
        return folder

    return make


def begun(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> tuple[str, Any]:
    """A folder with a tokenizer of these texts."""
    from taciturn.models.tokenizers import bpe_tokenizer, save_tokenizer

    folder, tokenizer = tmp_path_factory.mktemp("models") / "little", bpe_tokenizer(texts, 400)
    save_tokenizer(tokenizer, folder)
    return str(folder), tokenizer
