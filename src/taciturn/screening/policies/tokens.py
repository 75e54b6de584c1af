"""Any token-classification model of ``transformers`` as a detector, with the two thresholds of CRT (Zhao et al. 2022, A.4).

``tokens`` (π) marks what has a tag with a score of at least .3. ``tokens-wide`` (π_c) marks whatever is not surely plain:
the best tag is not the plain one, or P(plain) < .9.

Floats depend a little on what a text is batched with, and a score beside a threshold would then fall on either side. So a
window in which a decision (or the second digit of a reported score) hangs on less than ``MARGIN`` is computed once more,
alone and without padding, and that answer counts: what is found in a text depends on the text alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from taciturn.errors import MissingExtra, UsageError, nearest
from taciturn.screening.policies import windows
from taciturn.screening.policies.base import CLEAN
from taciturn.screening.policies.family_options import checked
from taciturn.screening.policies.finder import Detector
from taciturn.screening.policies.pipelines import batches, digest, readable
from taciturn.screening.policies.token_model import (
    OVERLAP,
    WINDOW,
    Floats,
    Model,
    Piece,
    folder,
    labels_of,
    like_lengths,
    loaded,
)
from taciturn.screening.policies.view import View
from taciturn.text.spans import Detection, Span

MARGIN = 1e-4
_TEXT, _TEXT_OVERLAP = 100_000, 2_000  # code points given to the tokenizer at a time


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
            "windows": [_TEXT, _TEXT_OVERLAP, WINDOW, OVERLAP],
            "files": digest(folder(self.model), "*"),
            "transformers": version("transformers"),
        }

    def find(self, views: Sequence[View]) -> list[Detection]:
        """A text with a lone surrogate, which no tokenizer takes, has the status "error"."""
        return windows.find([view.text for view in views], self._find, _TEXT, _TEXT_OVERLAP)

    def local(self, view: View) -> bool:  # noqa: ARG002  a model reads the context
        return False

    def _find(self, texts: Sequence[str]) -> list[Detection]:
        model = loaded(self.model, self.device)
        return [d for batch in batches(texts) for d in self._batch(model, batch)]

    def _batch(self, model: Model, texts: Sequence[str]) -> list[Detection]:
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

    def _judge(self, model: Model, pieces: Sequence[Piece]) -> list[_Judged]:
        """In the order of ``pieces``; computed in batches of like length."""
        answers: dict[int, _Judged] = {}
        for batch in like_lengths(pieces):
            for i, scores in zip(batch, model.scores([pieces[i] for i in batch]), strict=True):
                answers[i] = self._decide(model, scores)
                if answers[i].doubtful and len(batch) > 1:
                    answers[i] = self._decide(model, model.scores([pieces[i]])[0])
        return [answers[i] for i in range(len(pieces))]

    def _decide(self, model: Model, scores: Floats) -> _Judged:
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
class _Judged:
    marked: npt.NDArray[np.bool_]
    scores: Floats
    tags: list[str]
    doubtful: bool


def _spans(text: str, starts: Sequence[int], piece: Piece, judged: _Judged, name: str) -> Iterator[Span]:
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
    known = labels_of(argument, family)
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
