"""GLiNER (Zaratiani et al. 2024): spans of whatever labels are asked for, in words, without training on them.

Texts are cut into windows of words, since a model takes 384 words and a tokenizer 512 tokens, and both drop the rest.
Windows are computed one by one: what is found in a text must not depend on what it is batched with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from taciturn.errors import MissingExtra, UsageError
from taciturn.screening.policies import windows
from taciturn.screening.policies.base import CLEAN
from taciturn.screening.policies.family_options import checked, split
from taciturn.screening.policies.finder import Detector
from taciturn.screening.policies.pipelines import digest, readable
from taciturn.screening.policies.token_model import folder
from taciturn.screening.policies.view import View
from taciturn.text.document import MASK
from taciturn.text.spans import Detection, Span

_TEXT, _TEXT_OVERLAP = 100_000, 2_000  # code points
_TOKENS = 512  # of the encoder, the labels included
_LEAST = 64  # tokens that must be left for text
_BLANK = View.of(MASK).text
_WORD = "_" * len(MASK)  # one word to GLiNER's splitter, where blanks would be six


@dataclass(frozen=True, slots=True)
class Gliner:
    """model: folder or hub name. labels: what to look for, in the order they are given to the model."""

    model: str
    labels: tuple[str, ...]
    threshold: float
    device: str
    name: str

    def definition(self) -> Mapping[str, object]:
        return {
            "kind": "gliner",
            "labels": list(self.labels),
            "threshold": self.threshold,
            "device": self.device.partition(":")[0],
            "windows": [_TEXT, _TEXT_OVERLAP, _TOKENS],
            "files": digest(folder(self.model), "*"),
            "packages": {package: version(package) for package in ("gliner", "transformers")},
        }

    def find(self, views: Sequence[View]) -> list[Detection]:
        """A text with a lone surrogate has the status "error", one with a word too long for the model "truncated"."""
        texts = [view.text.replace(_BLANK, _WORD) for view in views]
        return windows.find(texts, self._find, _TEXT, _TEXT_OVERLAP)

    def local(self, view: View) -> bool:  # noqa: ARG002  a model reads the context
        return False

    def _find(self, texts: Sequence[str]) -> list[Detection]:
        model = _loaded(self.model, self.device)
        return [self._detection(model, text) if readable(text) else Detection(status="error") for text in texts]

    def _detection(self, model: Any, text: str) -> Detection:
        words, costs = _words(model, text)
        budget = min(_TOKENS, _tokenizer(model).model_max_length) - _prompt(model, self.labels)
        whole = all(cost <= budget for cost in costs)
        places = [(words[a][0], words[b - 1][1]) for a, b in cut(costs, budget, model.config.max_len, _overlap(model))]
        if not places and whole:
            return CLEAN
        found = model.inference(
            [text[a:b] for a, b in places],
            list(self.labels),
            threshold=self.threshold,
            flat_ner=False,
            batch_size=1,
        )
        spans = {
            Span(a + e["start"], a + e["end"], e["label"], round(float(e["score"]), 4), self.name)
            for (a, _), entities in zip(places, found, strict=True)
            for e in entities
        }
        return Detection(tuple(sorted(spans)), "ok" if whole else "truncated")


def cut(costs: Sequence[int], budget: int, most: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Windows (start, end) over words that cost so many tokens each: at most ``budget`` tokens and ``most`` words, with
    ``overlap`` words shared where they fit. A word that costs more than the budget is in none.

    >>> list(cut([1, 1, 1, 1, 9, 1, 1], budget=3, most=8, overlap=1))
    [(0, 3), (2, 4), (5, 7)]
    """
    start = 0
    while start < len(costs):
        end, spent = start, 0
        while end < len(costs) and end - start < most and spent + costs[end] <= budget:
            spent += costs[end]
            end += 1
        if end > start:
            yield start, end
        if end == len(costs):
            return
        # Past a word that fits nowhere there is nothing to share; else as much as leaves room for the next word.
        start = end + 1 if costs[end] > budget else max(end - overlap, start + 1)
        while start < end and (end - start >= most or sum(costs[start : end + 1]) > budget):
            start += 1


def _overlap(model: Any) -> int:
    """Words: as long as the longest span the model knows, so that each is whole in some window."""
    return int(min(getattr(model.config, "max_width", 12), model.config.max_len // 4))


def _words(model: Any, text: str) -> tuple[list[tuple[int, int]], list[int]]:
    """The words GLiNER sees, as (start, end), and how many tokens each becomes."""
    split_up = list(model.data_processor.words_splitter(text))
    if not split_up:
        return [], []
    encoded = _tokenizer(model)(
        [word for word, _, _ in split_up], is_split_into_words=True, add_special_tokens=False, verbose=False
    )
    costs = [0] * len(split_up)
    for word, tokens in groupby(encoded.word_ids()):
        if word is not None:
            costs[word] += len(list(tokens))
    return [(start, end) for _, start, end in split_up], costs


def _prompt(model: Any, labels: Sequence[str]) -> int:
    """Tokens that the labels and the marks between them take of each window, none too few."""
    tokenizer = _tokenizer(model)
    return 8 + sum(2 + len(tokenizer(label, verbose=False)["input_ids"]) for label in labels)


def _tokenizer(model: Any) -> Any:
    return model.data_processor.transformer_tokenizer


@lru_cache(maxsize=2)
def _loaded(name: str, device: str) -> Any:
    from gliner import GLiNER

    return GLiNER.from_pretrained(str(folder(name)), map_location=device).eval()


class _Options(BaseModel):
    """labels: beside those after the '#'. threshold: lowest score that counts. device: "cpu", "cuda", "cuda:1", "mps"."""

    model_config = ConfigDict(extra="forbid")

    labels: list[str] = []
    threshold: float = Field(default=0.5, gt=0.0, lt=1.0)
    device: str = Field(default="cpu", pattern=r"^(cpu|mps|cuda(:\d+)?)$")


OPTIONS = frozenset(_Options.model_fields)


def named(argument: str, options: Mapping[str, object]) -> list[Detector]:
    """``gliner:MODEL#label,label``. MODEL: a folder or a hub name; labels: words for what to find ("phone number").

    Raises UsageError (no model, no label, unknown option), MissingExtra (no gliner).
    """
    try:
        version("gliner")
    except PackageNotFoundError:
        raise MissingExtra("gliner", "gliner") from None
    chosen = checked(_Options, options, "gliner")
    model, _, listed = argument.partition("#")
    labels = tuple(dict.fromkeys((*split(listed), *chosen.labels)))
    if not (model and labels):
        raise UsageError("gliner: name a model and what to find, as in gliner:FOLDER#person,phone number")
    if sum(map(len, labels)) > _TOKENS - _LEAST:
        raise UsageError(
            f"gliner: {len(labels)} labels leave too little of the {_TOKENS} tokens a model takes; give fewer"
        )
    folder(model)
    return [Gliner(model, labels, chosen.threshold, chosen.device, f"gliner:{argument}")]
