"""Tokenizers, and records as token sequences in one flat array; what a sequence is: ``taciturn.models.sequences``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import UsageError, nearest
from taciturn.models.chat import LossOn
from taciturn.models.gguf import locate
from taciturn.models.masking import Masking
from taciturn.models.prompt import Answers
from taciturn.models.sequences import end_id, mask_id, sequences, start_id, targets
from taciturn.text.chat import contents, structured
from taciturn.text.document import MASK

__all__ = [
    "Tokens",
    "bpe_tokenizer",
    "byte_tokenizer",
    "encode",
    "encode_all",
    "end_id",
    "load_tokenizer",
    "mask_id",
    "save_tokenizer",
    "start_id",
    "targets",
    "with_mask",
]

END = "<|endoftext|>"
KINDS = ("auto", "bytes", "bpe:N")


@dataclass(frozen=True, slots=True)
class Tokens:
    """Many token sequences in one flat array: sequence i is ``flat[offsets[i]:offsets[i + 1]]``.

    scored: which of ``flat`` are targets, None where :func:`targets` says so for every sequence. labels: [records], the
    class of each, −1 for none. masking: how tokens are hidden, for masked language modelling. truncated: how many were cut.
    segments: of ``flat``, which text of a pair a token belongs to, 0 or 1; None where there are no pairs. answers: where
    records put in a prompt are answered, and by which words.
    sensitive: which of ``flat`` stand in the place of a `<MASK>` (:mod:`taciturn.models.sensitive`).
    """

    flat: NDArray[np.int32]
    offsets: NDArray[np.int64]
    truncated: int = 0
    scored: NDArray[np.bool_] | None = None
    labels: NDArray[np.int64] | None = None
    masking: Masking | None = None
    segments: NDArray[np.int8] | None = None
    answers: Answers | None = None
    sensitive: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> NDArray[np.int32]:
        return self.flat[self.offsets[i] : self.offsets[i + 1]]

    def targets(self, i: int, mask: int) -> NDArray[np.bool_]:
        """Which positions of sequence i are scored."""
        if self.scored is None:
            return targets(self[i], mask)
        return self.scored[self.offsets[i] : self.offsets[i + 1]]

    def aimless(self, mask: int) -> NDArray[np.bool_]:
        """[records], which have nothing to predict, in whatever step: no class, or no token that can be scored."""
        if self.labels is not None:
            return self.labels < 0
        return np.concatenate([np.zeros(0, np.bool_), *(piece._aimless(mask) for piece in self.pieces())])

    def _aimless(self, mask: int) -> NDArray[np.bool_]:
        scored = implied_targets(self.flat, self.offsets, mask) if self.scored is None else self.scored
        if self.masking is not None:
            scored = scored & ~np.isin(self.flat, self.masking.special)
        found = np.concatenate([[0], np.cumsum(scored)])
        none: NDArray[np.bool_] = found[self.offsets[1:]] == found[self.offsets[:-1]]
        return none

    def pieces(self, most: int = 1 << 22) -> Iterator[Tokens]:
        """These tokens as runs of records, of ``most`` tokens or a single record each; views, of arrays on disk too."""
        start = 0
        while start < len(self):
            stop = int(np.searchsorted(self.offsets, self.offsets[start] + most, side="right")) - 1
            stop = max(stop, start + 1)
            yield self._between(start, stop)
            start = stop

    def _between(self, start: int, stop: int) -> Tokens:
        a, b = self.offsets[start], self.offsets[stop]
        cut: dict[str, Any] = {
            name: None if (x := getattr(self, name)) is None else x[a:b] for name in ("scored", "segments", "sensitive")
        }
        labels = None if self.labels is None else self.labels[start:stop]
        answers = None if self.answers is None else replace(self.answers, at=self.answers.at[start:stop])
        offsets = self.offsets[start : stop + 1] - a
        return replace(self, flat=self.flat[a:b], offsets=offsets, labels=labels, answers=answers, **cut)

    def at(self, step: int) -> Tokens:
        """These tokens in a step of training: other ones are hidden each time."""
        return self if self.masking is None else replace(self, masking=replace(self.masking, step=step))

    def sizes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many tokens each of ``rows`` has."""
        return self.offsets[rows + 1] - self.offsets[rows]

    @property
    def longest(self) -> int:
        """Tokens of the longest record."""
        return max((int(piece.lengths.max()) for piece in self.pieces()), default=0)

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)


def implied_targets(flat: NDArray[np.int32], offsets: NDArray[np.int64], mask: int) -> NDArray[np.bool_]:
    """Which tokens of sequences in one array :func:`targets` scores."""
    scored: NDArray[np.bool_] = flat != mask
    scored[offsets[:-1][np.diff(offsets) > 0]] = False
    return scored


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


def with_mask(tokenizer: Any) -> Any:
    """The same tokenizer with `<MASK>` as one id and a start and an end token."""
    if tokenizer.eos_token_id is None and tokenizer.sep_token_id is None:
        tokenizer.add_special_tokens({"eos_token": END})
    if tokenizer.convert_tokens_to_ids(MASK) in (None, tokenizer.unk_token_id):
        tokenizer.add_tokens([MASK], special_tokens=True)
    return tokenizer


def encode(tokenizer: Any, text: str, max_length: int | None = None) -> NDArray[np.int32]:
    """One record as ids; see :func:`encode_all`."""
    return encode_all(tokenizer, [text], max_length)[0]


def encode_all(
    tokenizer: Any,
    texts: Sequence[str],
    max_length: int | None = None,
    chunk: int = 10_000,
    loss_on: LossOn = "all",
) -> Tokens:
    """Records as ids, cut on the right at ``max_length`` (the count of those cut is kept; nothing is ever joined).

    A text is ``[start] + ids + [end]``; text never turns into a special token, whatever it spells, only `<MASK>` does. A
    record that is only `<MASK>` has no end token, so nothing in it can be a target. Conversations go through
    :class:`taciturn.models.chat.ChatCoder`, where ``loss_on`` counts; pairs get the tokenizer's special tokens for pairs.
    """
    parts: list[NDArray[np.int32]] = []
    marks: list[NDArray[np.bool_]] = []
    sides: list[NDArray[np.int8]] = []
    truncated = 0
    mixed = any(map(structured, texts))
    for ids, scored, segments in sequences(tokenizer, texts, chunk, loss_on, mixed):
        if max_length is not None and len(ids) > max_length:
            ids = ids[:max_length]
            truncated += 1
        parts.append(ids)
        if scored is not None:
            marks.append(scored[: len(ids)])
            sides.append(np.zeros(len(ids), np.int8) if segments is None else segments[: len(ids)])
    tokens = joined(parts, truncated)
    if not mixed:
        return tokens
    every = np.concatenate(sides)
    return replace(tokens, scored=np.concatenate(marks), segments=every if every.any() else None)


def joined(parts: Sequence[NDArray[np.int32]], truncated: int = 0) -> Tokens:
    """Sequences as one flat array."""
    flat = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(ids) for ids in parts])]).astype(np.int64)
    return Tokens(flat, offsets, truncated)


def packed(tokens: Tokens, rows: NDArray[np.int64], size: int, mask: int) -> Tokens:
    """The sequences ``rows`` laid end to end and cut into blocks of ``size`` tokens; the first of a block is not scored.

    A block holds parts of several records, so no clip bounds what one of them adds, and no guarantee covers it.
    """
    flat = np.concatenate([tokens[int(row)] for row in rows])
    scored = np.concatenate([tokens.targets(int(row), mask) for row in rows])
    scored[::size] = False
    offsets = np.append(np.arange(0, len(flat), size), len(flat)).astype(np.int64)
    return Tokens(flat, offsets, 0, scored)


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
