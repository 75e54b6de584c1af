"""What synthetic text is worth to somebody who trains on it: a classifier of it beside one of the original text.

Both are the same classifier (weighted words and pairs, logistic regression) on equally many texts, judged on held-out
original text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap

SEEDS, SHARE = 5, 0.8
"""Classifiers of each kind, and the share of the texts that each is given."""

Labelled = tuple[Sequence[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Usefulness:
    """Accuracies on held-out text, one a seed. majority: of always naming its commonest label. interval: of synthetic minus
    original, 95 %, by bootstrap over held-out texts; None where original text was not given."""

    synthetic: tuple[float, ...]
    original: tuple[float, ...]
    majority: float
    trained_on: int
    tested_on: int
    interval: tuple[float, float] | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def usefulness(synthetic: Labelled, original: Labelled | None, held_out: Labelled, seed: int) -> Usefulness | None:
    """Of (texts, labels) each. None where there are not two labels to tell apart."""
    sides = [synthetic] + ([original] if original is not None and len(set(original[1])) > 1 else [])
    if any(len(set(labels)) < 2 for _, labels in (synthetic, held_out)):
        return None
    size = int(SHARE * min(len(texts) for texts, _ in sides))
    right = [np.array([_right(side, held_out, size, seed + i) for i in range(SEEDS)]) for side in sides]
    accuracies = [tuple(float(each) for each in of.mean(1)) for of in right]
    interval = None
    if len(right) == 2:
        differences = right[0].mean(0) - right[1].mean(0)
        if np.ptp(differences):
            ends = bootstrap(
                (differences,), np.mean, n_resamples=1999, batch=100, method="percentile",
                random_state=np.random.default_rng(seed),
            ).confidence_interval  # fmt: skip
            interval = (float(ends.low), float(ends.high))
        else:
            interval = (float(differences[0]),) * 2
    majority = Counter(held_out[1]).most_common(1)[0][1] / len(held_out[1])
    return Usefulness(
        accuracies[0], accuracies[1] if len(right) == 2 else (), majority, size, len(held_out[1]), interval
    )


def _right(side: Labelled, held_out: Labelled, size: int, seed: int) -> NDArray[np.bool_]:
    """Which held-out texts a classifier of ``size`` of the texts gets right."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts, labels = side
    kept = np.random.default_rng(seed).permutation(len(texts))[:size]
    y = [labels[i] for i in kept]
    if len(set(y)) < 2:
        return np.array([label == y[0] for label in held_out[1]])
    whole = TfidfVectorizer(token_pattern=r"\w+", ngram_range=(1, 2), sublinear_tf=True)
    model = make_pipeline(whole, LogisticRegression(max_iter=1000, random_state=seed))
    model.fit([texts[i] or " " for i in kept], y)
    found: NDArray[np.bool_] = model.predict(list(held_out[0])) == np.array(held_out[1])
    return found
