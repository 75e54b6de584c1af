"""Token-classification models of ``transformers``: where they are, what they score, and how a text is cut for them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn.errors import UsageError
from taciturn.screening.policies.view import View
from taciturn.text.document import MASK

Floats = npt.NDArray[np.float64]

WINDOW, OVERLAP = 512, 64
"""Tokens: no longer than this, whatever a model takes, and shared by neighbours."""
_BATCH = 8192  # tokens, padding included
_BLANK = View.of(MASK).text
_FILES = ["*.json", "*.txt", "*.model", "*.safetensors", "pytorch_model.bin"]


def folder(model: str) -> Path:
    """Where a model's files are. A hub name is looked up in the local cache, then fetched unless HF_HUB_OFFLINE is set.

    Raises UsageError when it is nowhere.
    """
    if Path(model).is_dir():
        return Path(model).resolve()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model, allow_patterns=_FILES))
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise UsageError(
            f"'{model}' is neither a folder nor a model that can be had ({type(error).__name__}); "
            "give the folder of a model, or unset HF_HUB_OFFLINE to fetch one"
        ) from None


def labels_of(model: str, family: str) -> tuple[str, ...]:
    """From config.json, without loading the model."""
    where = folder(model)
    try:
        config = json.loads((where / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UsageError(f"{family}: '{model}' has no config.json that can be read; it is no model folder") from None
    if not any(where.glob("*.safetensors")):
        raise UsageError(f"{family}: '{model}' has no weights as safetensors; save it with save_pretrained once more")
    return tuple(str(label) for label in config.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"}).values())


@lru_cache(maxsize=2)
def loaded(name: str, device: str) -> Model:
    """In evaluation mode, by folder or hub name. Raises UsageError for a tokenizer without offsets."""
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer
    from transformers.utils import logging

    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    where = folder(name)
    tokenizer = AutoTokenizer.from_pretrained(where, use_fast=True)
    if not tokenizer.is_fast:
        raise UsageError(f"tokens: the tokenizer of '{name}' gives no offsets; a model with a tokenizer.json does")
    model = AutoModelForTokenClassification.from_pretrained(where, dtype=torch.float32, use_safetensors=True)
    if bars:
        logging.enable_progress_bar()
    labels = [model.config.id2label[i] for i in range(model.config.num_labels)]
    # RoBERTa's kind counts positions from pad_token_id + 1 on: two fewer than it says.
    positions = getattr(model.config, "max_position_embeddings", WINDOW) - 2
    length = min(WINDOW, tokenizer.model_max_length, positions)
    return Model(tokenizer, model.to(device).eval(), device, labels, length)


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A window of one text in tokens. text: which one. ids: with the model's special tokens. offsets: (start, end) of each
    token in the text. words: its word, -1 for a special token."""

    text: int
    ids: list[int]
    types: list[int]
    offsets: list[tuple[int, int]]
    words: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """tokenizer, model: as transformers loads them. labels: by index. length: tokens it takes, special ones included."""

    tokenizer: Any
    model: Any
    device: str
    labels: list[str]
    length: int

    def pieces(self, texts: Mapping[int, str]) -> list[Piece]:
        """The windows of each text; neighbours share tokens, and no token is left out."""
        if not texts:
            return []
        mask = self.tokenizer.mask_token
        stands_in = mask and len(mask) == len(MASK)
        encoded = self.tokenizer(
            [text.replace(_BLANK, mask) if stands_in else text for text in texts.values()],
            truncation=True,
            max_length=self.length,
            stride=min(OVERLAP, self.length // 4),
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            return_token_type_ids=True,
            verbose=False,
        )
        places = list(texts)
        return [
            Piece(
                places[encoded["overflow_to_sample_mapping"][i]],
                ids,
                encoded["token_type_ids"][i],
                encoded["offset_mapping"][i],
                [-1 if word is None else word for word in encoded.word_ids(i)],
            )
            for i, ids in enumerate(encoded["input_ids"])
        ]

    def scores(self, pieces: Sequence[Piece]) -> list[Floats]:
        """Label probabilities of each token of each piece, in float64."""
        import torch

        length = max(len(piece.ids) for piece in pieces)
        pad = self.tokenizer.pad_token_id or 0

        def padded(rows: Sequence[Sequence[int]], value: int) -> Any:
            return torch.tensor([[*row, *[value] * (length - len(row))] for row in rows], device=self.device)

        given = {"input_ids": padded([p.ids for p in pieces], pad)}
        given["attention_mask"] = padded([[1] * len(p.ids) for p in pieces], 0)
        if "token_type_ids" in self.tokenizer.model_input_names:
            given["token_type_ids"] = padded([p.types for p in pieces], 0)
        with torch.inference_mode():
            probabilities = self.model(**given).logits.double().softmax(-1).cpu().numpy()
        return [probabilities[i, : len(piece.ids)] for i, piece in enumerate(pieces)]


def like_lengths(pieces: Sequence[Piece]) -> Iterator[list[int]]:
    """Places of pieces in runs of like length, at most ``_BATCH`` tokens each."""
    batch: list[int] = []
    for i in sorted(range(len(pieces)), key=lambda i: len(pieces[i].ids)):
        if batch and (len(batch) + 1) * len(pieces[i].ids) > _BATCH:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
