"""What tests of several recipes train."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture(scope="session")
def little_encoder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[str]], str]:
    """The folder of an encoder with weights and one layer more than medium sizes take, and of a tokenizer of these texts."""

    def make(texts: list[str]) -> str:
        from transformers import BertConfig, BertModel

        from taciturn.models.tokenizers import bpe_tokenizer, save_tokenizer

        folder = tmp_path_factory.mktemp("models") / "little"
        tokenizer = bpe_tokenizer(texts, 400)
        BertModel(
            BertConfig(
                vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=7, num_attention_heads=2, intermediate_size=32,
                max_position_embeddings=64,
            )
        ).save_pretrained(folder)  # fmt: skip
        save_tokenizer(tokenizer, folder)
        return str(folder)

    return make
