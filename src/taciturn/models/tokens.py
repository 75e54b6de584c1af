"""Tokenizers and token sequences: `<MASK>` is one id, every record starts with a start token and ends with an end.

A record's sequence is ``[start] + ids + [end]``. Targets are everything after the start, except `<MASK>`; a record that
is nothing but `<MASK>` has no target at all (docs/guarantees.md, "Preprocessing": a removed duplicate adds no gradient).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import UsageError, nearest
from taciturn.text.document import MASK

END = "<|endoftext|>"
KINDS = ("auto", "bytes", "bpe:N")


@dataclass(frozen=True, slots=True)
class Tokens:
    """Many token sequences in one flat array: sequence i is ``flat[offsets[i]:offsets[i + 1]]``."""

    flat: NDArray[np.int32]
    offsets: NDArray[np.int64]
    truncated: int = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> NDArray[np.int32]:
        return self.flat[self.offsets[i] : self.offsets[i + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)


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
    pieces = (piece for text in public_texts for piece in text.split(MASK))
    tokenizer.train_from_iterator(pieces, trainer)
    return _wrap(tokenizer)


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
    if spec == "auto" and (name == "lstm" or name.endswith(".json")):
        raise UsageError(f"model {model!r} has no tokenizer of its own: choose bytes, bpe:4096 or a folder")
    if ":" in spec:
        raise UsageError(f"tokenizer {spec!r}: {nearest(spec, KINDS)}")
    from transformers import AutoTokenizer

    try:
        return with_mask(AutoTokenizer.from_pretrained(name))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"tokenizer {name!r} cannot be loaded: expected a folder with tokenizer.json or a hub name in reach "
            f"({type(error).__name__})"
        ) from error


def with_mask(tokenizer: Any) -> Any:
    """The same tokenizer with `<MASK>` as one id and a start and an end token."""
    if tokenizer.eos_token_id is None:
        tokenizer.add_special_tokens({"eos_token": END})
    if tokenizer.convert_tokens_to_ids(MASK) in (None, tokenizer.unk_token_id):
        tokenizer.add_tokens([MASK], special_tokens=True)
    return tokenizer


def mask_id(tokenizer: Any) -> int:
    """The id of `<MASK>`."""
    return int(tokenizer.convert_tokens_to_ids(MASK))


def start_id(tokenizer: Any) -> int:
    """The id every sequence starts with: the tokenizer's own start token, else its end token (as GPT-2 does)."""
    return int(tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id)


def encode(tokenizer: Any, text: str, max_length: int | None = None) -> NDArray[np.int32]:
    """One record as ids; see :func:`encode_all`."""
    return encode_all(tokenizer, [text], max_length)[0]


def encode_all(tokenizer: Any, texts: Sequence[str], max_length: int | None = None, chunk: int = 10_000) -> Tokens:
    """Records as ids: ``[start] + ids + [end]``, at most ``max_length`` of them (the count of those cut is kept).

    Text never turns into a special token, whatever it spells; only `<MASK>` does. A record that is only `<MASK>` has no
    end token, so nothing in it can be a target.
    """
    parts: list[NDArray[np.int32]] = []
    lengths: list[int] = []
    truncated = 0
    for ids in _sequences(tokenizer, texts, chunk):
        if max_length is not None and len(ids) > max_length:
            ids = ids[:max_length]
            truncated += 1
        parts.append(ids)
        lengths.append(len(ids))
    flat = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    return Tokens(flat, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), truncated)


def targets(ids: NDArray[np.int32], mask: int) -> NDArray[np.bool_]:
    """Which positions are scored (same shape as ``ids``): all but the first, and never `<MASK>`."""
    scored: NDArray[np.bool_] = ids != mask
    scored[..., 0] = False
    return scored


def _sequences(tokenizer: Any, texts: Sequence[str], chunk: int) -> Iterator[NDArray[np.int32]]:
    start, end, mask = start_id(tokenizer), int(tokenizer.eos_token_id), mask_id(tokenizer)
    for first in range(0, len(texts), chunk):
        split = [text.split(MASK) for text in texts[first : first + chunk]]
        pieces = [piece for row in split for piece in row]
        coded = iter(tokenizer(pieces, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"])
        for row in split:
            ids = [start]
            for i in range(len(row)):
                if i:
                    ids.append(mask)
                ids.extend(next(coded))
            if any(row):
                ids.append(end)
            yield np.asarray(ids, np.int32)


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


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Write the tokenizer beside a model, as ``from_pretrained`` expects it."""
    tokenizer.save_pretrained(str(folder))
