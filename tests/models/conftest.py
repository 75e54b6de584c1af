"""One small tokenizer of each kind that taciturn's users have, made on the spot."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest

from taciturn.models.tokenizers import bpe_tokenizer, byte_tokenizer, with_mask

WORDS = [
    "Good morning, how can I help you today?",
    "my value in 50 dollars",
    "naïve café ⭢ 你好",
    "it rains. it is wet.",
] * 20


def wordpiece() -> Any:
    """As BERT has it: lower case, [CLS] ... [SEP], no start and no end of text."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([*WORDS, "abcdefghijklmnopqrstuvwxyz0123456789"], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    return with_mask(PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names))


def roberta() -> Any:
    """Byte-level BPE with <s> and </s> around, a mask token that takes the blank before it, offsets cut at blanks."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True)]
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(WORDS, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False
    )
    names = {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>"}
    return with_mask(PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", **names))


def metaspace(scheme: str = "first") -> Any:
    """As Llama 2 and Mistral have it: blanks are "▁", one is put in front (of the text, or of every stretch)."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme=scheme)])
    alphabet = [f"<0x{i:02X}>" for i in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=560, special_tokens=["<unk>", "<s>", "</s>", *alphabet], show_progress=False
    )
    letters = " ".join("abcdefghijklmnopqrstuvwxyz0123456789.,")
    tokenizer.train_from_iterator([*WORDS, letters, "[INST] [/INST] \n"] * 2, trainer)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return with_mask(PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names))


MAKE: dict[str, Callable[[], Any]] = {
    "bytes": byte_tokenizer,
    "bpe": lambda: bpe_tokenizer(WORDS, 400),
    "wordpiece": wordpiece,
    "roberta": roberta,
    "llama": metaspace,
    "llama-always": lambda: metaspace("always"),
}


Make = Callable[[str], Any]


@pytest.fixture(scope="session")
def make_tokenizer(request: pytest.FixtureRequest) -> Make:
    """A new tokenizer of a kind in MAKE, or "gpt2", a published one (skips where that is absent)."""

    def make(kind: str) -> Any:
        if kind != "gpt2":
            return MAKE[kind]()
        from transformers import AutoTokenizer

        folder = request.getfixturevalue("shared") / "models" / "gpt2-public-xs"
        return with_mask(AutoTokenizer.from_pretrained(str(folder)))

    return make


@pytest.fixture(scope="session")
def zoo(make_tokenizer: Make) -> Make:
    """The same, made once: not to be changed."""
    return lru_cache(make_tokenizer)
