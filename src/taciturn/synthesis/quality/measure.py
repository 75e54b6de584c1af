"""Every measure of a synthetic corpus, as one JSON value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.errors import DataError, MissingExtra
from taciturn.models.held_out import utility
from taciturn.models.hf import context_length, load_exported
from taciturn.privacy.certificates.certificate import EVIDENCE, load_json
from taciturn.synthesis.corpus import Manifest, rows_of
from taciturn.synthesis.quality.distances import length_distance, ngram_distance, words
from taciturn.synthesis.quality.frontier import mauve_like, of_model, of_ngrams
from taciturn.synthesis.quality.overlap import copied
from taciturn.synthesis.quality.usefulness import usefulness
from taciturn.text.document import Document, Record
from taciturn.text.segment import split

MOST = 5_000
"""Texts of a kind that are compared, the first of each; of training text all is looked at for copies."""

LEAST = 20
"""Texts of a kind below which nothing is compared."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A text and its label."""

    text: str
    label: str | None


def measure(
    synthetic: Path,
    held_out: Iterable[Document],
    training: Iterable[Document] = (),
    judge: Path | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """synthetic: a finished corpus. held_out, training: original text, split as the model's training text was. judge: the
    folder of a public language model.

    Raises DataError where there are fewer than LEAST texts of a kind, MissingExtra without scikit-learn.
    """
    check_installed()
    manifest, unit = Manifest.read(synthetic), unit_of(synthetic)
    made = list(islice(_written(synthetic, manifest), MOST))
    kept = list(islice(_records(held_out, unit), MOST))
    for what, texts in (("synthetic", made), ("held-out", kept)):
        if len(texts) < LEAST:
            raise DataError(f"{len(texts)} {what} texts ({unit}s): expected at least {LEAST}, to compare anything")
    seen: list[Measured] = []
    both = [words(each.text) for each in (*made, *kept)]
    which = np.arange(len(both)) < len(made)
    judged = load_exported(judge) if judge is not None else None
    features, of = _features([each.text for each in (*made, *kept)], both, judged, seed)
    distances = [
        *(ngram_distance(both, n, which, seed) for n in (1, 2)),
        length_distance(np.array([len(each) for each in both]), which, seed),
        mauve_like(features, which, seed),
    ]
    copies = copied(both[: len(made)], both[len(made) :], _words(_records(training, unit), seen), seed)
    useful = usefulness(_labelled(made), _labelled(seen) if seen else None, _labelled(kept), seed)
    return {
        "for": "the owner of the private text alone: computed on it without noise",
        "number": manifest.number,
        "unit": unit,
        "compared": {"synthetic": len(made), "held_out": len(kept), "training": len(seen)},
        "distances": [each.to_json() for each in distances],
        "features": of,
        "copied": [each.to_json() for each in copies] if seen else [],
        "usefulness": useful.to_json() if useful else None,
        "perplexity": None if judged is None else {
            "synthetic": _perplexity(*judged, made), "held_out": _perplexity(*judged, kept)
        },
    }  # fmt: skip


def check_installed() -> None:
    """Raise MissingExtra where a page cannot be made."""
    for package, module in (("scikit-learn", "sklearn"), ("jinja2", "jinja2")):
        if find_spec(module) is None:
            raise MissingExtra(package, "quality")


def unit_of(synthetic: Path) -> Any:
    """What the model's training text was split into, as the certificate's evidence says; documents without one."""
    path = synthetic / EVIDENCE
    return load_json(path).get("unit", "document") if path.is_file() else "document"


def _written(synthetic: Path, manifest: Manifest) -> Iterator[Measured]:
    for shard in manifest.shards:
        for row in rows_of(synthetic / shard.path):
            yield Measured(row["text"], row.get("label"))


def _records(documents: Iterable[Document], unit: Any) -> Iterator[Measured]:
    for document in documents:
        for record in split(document, unit):
            if record.body.strip():
                yield Measured(record.body, document.label)


def _words(texts: Iterable[Measured], seen: list[Measured]) -> Iterator[list[str]]:
    """The words of each text; the first MOST of them are put into ``seen``."""
    for each in texts:
        if len(seen) < MOST:
            seen.append(each)
        yield words(each.text)


def _labelled(texts: Iterable[Measured]) -> tuple[list[str], list[str]]:
    found = [(each.text, each.label) for each in texts if each.label is not None]
    return [text for text, _ in found], [label for _, label in found]


def _features(texts: list[str], as_words: list[list[str]], judged: Any, seed: int) -> tuple[Any, str]:
    found = None if judged is None else of_model(judged[0], judged[1], texts)
    if found is not None:
        return found, "the judge's last layer at the last token"
    return of_ngrams(as_words, seed), "weighted words and pairs of words"


def _perplexity(model: Any, tokenizer: Any, texts: list[Measured]) -> float:
    records = [Record(str(i), str(i), 0, len(each.text), each.text) for i, each in enumerate(texts)]
    return utility(model, tokenizer, records, context_length(model)).perplexity
