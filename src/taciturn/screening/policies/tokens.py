"""Any token-classification model of ``transformers`` as a detector, with the two thresholds of CRT (Zhao et al. 2022, A.4).

``tokens`` (π) marks what has a tag with a score of at least .3. ``tokens-wide`` (π_c) marks whatever is not surely plain:
the best tag is not the plain one, or P(plain) < .9.

Floats depend a little on what a text is batched with, and a score beside a threshold would then fall on either side. So a
window in which a decision (or the second digit of a reported score) hangs on less than ``MARGIN`` is computed once more,
alone and without padding, and that answer counts: what is found in a text depends on the text alone.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from taciturn.errors import MissingExtra, UsageError, nearest
from taciturn.screening.policies import windows
from taciturn.screening.policies.base import CLEAN, Detector
from taciturn.screening.policies.options import checked
from taciturn.screening.policies.pipelines import batches, digest, readable
from taciturn.screening.policies.view import View
from taciturn.text.document import MASK
from taciturn.text.spans import Detection, Span

Floats = npt.NDArray[np.float64]

MARGIN = 1e-4
_BATCH = 8192  # tokens, padding included
_TEXT, _TEXT_OVERLAP = 100_000, 2_000  # code points given to the tokenizer at a time
_WINDOW, _OVERLAP = 512, 64  # tokens: no longer than this, whatever the model takes


@dataclass(frozen=True, slots=True)
class TokenClassifier:
    """A model by folder or hub name. wide: π_c instead of π. threshold: of the best tag (π) or of P(plain) (π_c). plain:
    the label of ordinary text. labels: the tags that count, empty for all. device: as torch names it."""

    model: str
    wide: bool
    threshold: float
    plain: str
    labels: tuple[str, ...]
    device: str
    name: str

    def definition(self) -> Mapping[str, object]:
        return {
            "kind": "tokens",
            "wide": self.wide,
            "threshold": self.threshold,
            "plain": self.plain,
            "labels": sorted(self.labels),
            "device": self.device.partition(":")[0],
            "windows": [_TEXT, _TEXT_OVERLAP, _WINDOW, _OVERLAP],
            "files": digest(folder(self.model), "*"),
            "transformers": version("transformers"),
        }

    def find(self, views: Sequence[View]) -> list[Detection]:
        """A text with a lone surrogate, which no tokenizer takes, has the status "error"."""
        return windows.find([view.text for view in views], self._find, _TEXT, _TEXT_OVERLAP)

    def local(self, view: View) -> bool:  # noqa: ARG002  a model reads the context
        return False

    def _find(self, texts: Sequence[str]) -> list[Detection]:
        model = _loaded(self.model, self.device)
        return [d for batch in batches(texts) for d in self._batch(model, batch)]

    def _batch(self, model: _Model, texts: Sequence[str]) -> list[Detection]:
        pieces = model.pieces({i: text for i, text in enumerate(texts) if readable(text)})
        starts: dict[int, set[int]] = {}
        for piece in pieces:
            starts.setdefault(piece.text, set()).update(start for start, end in piece.offsets if end > start)
        ordered = {i: sorted(found) for i, found in starts.items()}
        spans: dict[int, set[Span]] = {}
        for piece, judged in zip(pieces, self._judge(model, pieces), strict=True):
            if judged.marked.any():
                i = piece.text
                spans.setdefault(i, set()).update(_spans(texts[i], ordered[i], piece, judged, self.name))
        return [
            Detection(status="error")
            if not readable(text)
            else Detection(tuple(sorted(spans[i])))
            if spans.get(i)
            else CLEAN
            for i, text in enumerate(texts)
        ]

    def _judge(self, model: _Model, pieces: Sequence[_Piece]) -> list[_Judged]:
        """In the order of ``pieces``; computed in batches of like length."""
        answers: dict[int, _Judged] = {}
        for batch in _like_lengths(pieces):
            for i, scores in zip(batch, model.scores([pieces[i] for i in batch]), strict=True):
                answers[i] = self._decide(model, scores)
                if answers[i].doubtful and len(batch) > 1:
                    answers[i] = self._decide(model, model.scores([pieces[i]])[0])
        return [answers[i] for i in range(len(pieces))]

    def _decide(self, model: _Model, scores: Floats) -> _Judged:
        """scores: probabilities, tokens × labels."""
        plain = model.labels.index(self.plain)
        others = [i for i, label in enumerate(model.labels) if i != plain and (not self.labels or label in self.labels)]
        ordered = np.sort(scores[:, others], axis=1)
        best, tag = ordered[:, -1], np.argmax(scores[:, others], axis=1)
        p = scores[:, plain]
        # Marked from 0 on; π_c where the best tag beats the plain one or P(plain) is below its threshold.
        slack = np.maximum(best - p, self.threshold - p) if self.wide else best - self.threshold
        marked = slack >= 0
        cents = best * 100
        doubt = np.abs(slack) < MARGIN
        doubt |= marked & (np.abs(cents - np.floor(cents) - 0.5) < 100 * MARGIN)
        if len(others) > 1:
            doubt |= marked & (best - ordered[:, -2] < MARGIN)
        tags = [model.labels[others[i]] for i in tag]
        return _Judged(marked, np.round(best, 2), tags, bool(doubt.any()))


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """A window of one text in tokens. text: which one. ids: with the model's special tokens. offsets: (start, end) of each
    token in the text. words: its word, -1 for a special token."""

    text: int
    ids: list[int]
    types: list[int]
    offsets: list[tuple[int, int]]
    words: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    marked: npt.NDArray[np.bool_]
    scores: Floats
    tags: list[str]
    doubtful: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    """tokenizer, model: as transformers loads them. labels: by index. length: tokens it takes, special ones included."""

    tokenizer: Any
    model: Any
    device: str
    labels: list[str]
    length: int

    def pieces(self, texts: Mapping[int, str]) -> list[_Piece]:
        """The windows of each text; neighbours share tokens, and no token is left out."""
        if not texts:
            return []
        mask = self.tokenizer.mask_token
        stands_in = mask and len(mask) == len(MASK)
        encoded = self.tokenizer(
            [text.replace(_BLANK, mask) if stands_in else text for text in texts.values()],
            truncation=True,
            max_length=self.length,
            stride=min(_OVERLAP, self.length // 4),
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            return_token_type_ids=True,
            verbose=False,
        )
        places = list(texts)
        return [
            _Piece(
                places[encoded["overflow_to_sample_mapping"][i]],
                ids,
                encoded["token_type_ids"][i],
                encoded["offset_mapping"][i],
                [-1 if word is None else word for word in encoded.word_ids(i)],
            )
            for i, ids in enumerate(encoded["input_ids"])
        ]

    def scores(self, pieces: Sequence[_Piece]) -> list[Floats]:
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


_BLANK = View.of(MASK).text


def _like_lengths(pieces: Sequence[_Piece]) -> Iterator[list[int]]:
    """Places of pieces in runs of like length, at most ``_BATCH`` tokens each."""
    batch: list[int] = []
    for i in sorted(range(len(pieces)), key=lambda i: len(pieces[i].ids)):
        if batch and (len(batch) + 1) * len(pieces[i].ids) > _BATCH:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _spans(text: str, starts: Sequence[int], piece: _Piece, judged: _Judged, name: str) -> Iterator[Span]:
    """One span a word that has a marked token. Characters that no token has (combining marks, controls: a tokenizer drops
    them) belong to the word they follow. starts: of all tokens of the text."""
    tokens = [i for i, word in enumerate(piece.words) if word >= 0 and piece.offsets[i][1] > piece.offsets[i][0]]
    for _, group in groupby(tokens, key=lambda i: piece.words[i]):
        members = list(group)
        marked = [i for i in members if judged.marked[i]]
        if not marked:
            continue
        start, end = min(piece.offsets[i][0] for i in members), max(piece.offsets[i][1] for i in members)
        while start < end and text[start].isspace():
            start += 1
        if start == end:
            continue
        after = bisect_left(starts, end)
        limit = starts[after] if after < len(starts) else len(text)
        while end < limit and not text[end].isspace():
            end += 1
        best = max(marked, key=lambda i: (judged.scores[i], -i))
        yield Span(start, end, judged.tags[best], float(judged.scores[best]), name)


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


@lru_cache(maxsize=2)
def _loaded(name: str, device: str) -> _Model:
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
    positions = getattr(model.config, "max_position_embeddings", _WINDOW) - 2
    length = min(_WINDOW, tokenizer.model_max_length, positions)
    return _Model(tokenizer, model.to(device).eval(), device, labels, length)


class _Options(BaseModel):
    """threshold: .3 (tokens) or .9 (tokens-wide) without it. plain: the label of ordinary text. labels: tags that count,
    given to ``tokens`` only. device: "cpu", "cuda", "cuda:1", "mps"."""

    model_config = ConfigDict(extra="forbid")

    threshold: float | None = Field(default=None, gt=0.0, lt=1.0)
    plain: str = "O"
    labels: list[str] = []
    device: str = Field(default="cpu", pattern=r"^(cpu|mps|cuda(:\d+)?)$")


OPTIONS = frozenset(_Options.model_fields)


def named(argument: str, options: Mapping[str, object]) -> list[Detector]:
    """``tokens:MODEL``, π of CRT. MODEL: a folder or a hub name.

    Raises UsageError (no such model, unknown label or option), MissingExtra (no transformers).
    """
    return [_classifier(argument, options, wide=False)]


def named_wide(argument: str, options: Mapping[str, object]) -> list[Detector]:
    """``tokens-wide:MODEL``, π_c of CRT. As ``named``."""
    return [_classifier(argument, options, wide=True)]


def _classifier(argument: str, options: Mapping[str, object], wide: bool) -> TokenClassifier:
    family = "tokens-wide" if wide else "tokens"
    try:
        version("transformers"), version("torch")
    except PackageNotFoundError:
        raise MissingExtra("transformers", "train") from None
    if not argument:
        raise UsageError(f"{family}: name a model, as in {family}:FOLDER")
    chosen = checked(_Options, options, family)
    known = _labels(argument, family)
    for label in (chosen.plain, *chosen.labels):
        if label not in known:
            raise UsageError(f"{family}: '{argument}' has no label '{label}'; {nearest(label, known)}")
    if wide and chosen.labels:
        raise UsageError("tokens-wide: marks whatever is not plain; labels belong to 'tokens'")
    if not {*known} - {chosen.plain}:
        raise UsageError(f"{family}: '{argument}' has no label but '{chosen.plain}'; it is no token classifier")
    threshold = chosen.threshold if chosen.threshold is not None else 0.9 if wide else 0.3
    labels = tuple(sorted(set(chosen.labels) - {chosen.plain}))
    return TokenClassifier(argument, wide, threshold, chosen.plain, labels, chosen.device, f"{family}:{argument}")


def _labels(model: str, family: str) -> tuple[str, ...]:
    """From config.json, without loading the model."""
    where = folder(model)
    try:
        config = json.loads((where / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UsageError(f"{family}: '{model}' has no config.json that can be read; it is no model folder") from None
    if not any(where.glob("*.safetensors")):
        raise UsageError(f"{family}: '{model}' has no weights as safetensors; save it with save_pretrained once more")
    return tuple(str(label) for label in config.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"}).values())
