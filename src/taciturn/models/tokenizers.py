"""Tokenizers: a model's own, one id per byte, or a byte-level BPE learned on public text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from taciturn.errors import UsageError, nearest
from taciturn.models.gguf import locate
from taciturn.text.chat import contents
from taciturn.text.document import MASK

END = "<|endoftext|>"
KINDS = ("auto", "bytes", "bpe:N")


def load_tokenizer(spec: str, model: str, public_texts: Iterable[str] = ()) -> Any:
    """The tokenizer a plan names: ``auto`` (the model's own), ``bytes``, ``bpe:N`` or a folder / hub name.

    Raises UsageError when the model has none of its own and none was chosen.
    """
    if spec == "bytes":
        return byte_tokenizer()
    if spec.startswith("bpe:"):
        size = spec.removeprefix("bpe:")
        if not size.isdigit() or int(size) < 300:
            raise UsageError(f"tokenizer {spec!r}: expected bpe:N with N of at least 300, e.g. bpe:4096")
        return bpe_tokenizer(public_texts, int(size))
    name = model if spec == "auto" else spec
    if spec == "auto" and (name in ("lstm", "awd-lstm") or name.endswith(".json")):
        raise UsageError(f"model {model!r} has no tokenizer of its own: choose bytes, bpe:4096 or a folder")
    if ":" in spec:
        raise UsageError(f"tokenizer {spec!r}: {nearest(spec, KINDS)}")
    from transformers import AutoTokenizer

    try:
        folder, source = locate(name)
        return with_mask(AutoTokenizer.from_pretrained(folder, **source))
    except UsageError as error:  # not here, and no hub in reach
        raise UsageError(f"tokenizer {error}") from error
    except (OSError, ValueError) as error:
        raise UsageError(
            f"tokenizer {name!r} cannot be loaded: expected a folder with tokenizer.json or a hub name in reach "
            f"({type(error).__name__})"
        ) from error


def stated_length(model: str, options: Mapping[str, Any] | None = None) -> int | None:
    """How long a sequence the model's configuration says it reads, None where it says nothing or is not at hand."""
    if model in ("lstm", "awd-lstm"):
        return None
    from transformers import AutoConfig

    try:
        if model.endswith(".json"):
            said = json.loads(Path(model).read_text())
        else:
            folder, source = locate(model)
            said = AutoConfig.from_pretrained(folder, **source).to_dict()
    except (OSError, ValueError, UsageError):
        return None
    said |= options or {}
    return next((int(said[name]) for name in ("n_positions", "max_position_embeddings") if said.get(name)), None)


def byte_tokenizer() -> Any:
    """One id per byte: no vocabulary is learned from anything."""
    return _wrap(_byte_level([]))


def bpe_tokenizer(public_texts: Iterable[str], vocab_size: int) -> Any:
    """A byte-level BPE learned on public text only; every digit is a token of its own."""
    from tokenizers import trainers

    tokenizer = _byte_level(None)
    alphabet = _alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 2, initial_alphabet=alphabet, special_tokens=[], show_progress=False
    )
    pieces = (piece for text in public_texts for content in contents(text) for piece in content.split(MASK))
    tokenizer.train_from_iterator(pieces, trainer)
    return _wrap(tokenizer)


def with_mask(tokenizer: Any) -> Any:
    """The same tokenizer with `<MASK>` as one id and a start and an end token."""
    if tokenizer.eos_token_id is None and tokenizer.sep_token_id is None:
        tokenizer.add_special_tokens({"eos_token": END})
    if tokenizer.convert_tokens_to_ids(MASK) in (None, tokenizer.unk_token_id):
        tokenizer.add_tokens([MASK], special_tokens=True)
    return tokenizer


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Write the tokenizer beside a model, as ``from_pretrained`` expects it."""
    tokenizer.save_pretrained(str(folder))


def _alphabet() -> list[str]:
    from tokenizers import pre_tokenizers

    return sorted(pre_tokenizers.ByteLevel.alphabet())


def _byte_level(merges: list[tuple[str, str]] | None) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    vocab = {c: i for i, c in enumerate(_alphabet())}
    model = models.BPE() if merges is None else models.BPE(vocab=vocab, merges=merges)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _wrap(tokenizer: Any) -> Any:
    from transformers import PreTrainedTokenizerFast

    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, bos_token=END, padding_side="right")
    fast.add_tokens([MASK], special_tokens=True)
    return fast
