"""How far synthetic text is from held-out text, and how far the two would be if they were told apart by chance alone.

The null is that of a permutation test: which texts are synthetic is drawn anew among all of them, with their numbers as they
are, so that whatever a distance of samples has of their size is in the null as well (Good 2005, chapter 3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import jensenshannon
from scipy.stats import wasserstein_distance

DRAWS = 199
"""Permutations; the smallest p is 1 / 200."""

LEVEL = 0.01
"""p at and below which two sets of texts are said to differ."""

_WORD = re.compile(r"\w+|[^\w\s]")
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Distance:
    """chance: the point that 95 % of permutations do not pass. higher: whether higher is further."""

    name: str
    value: float
    mean: float
    chance: float
    p: float
    higher: bool = True

    @property
    def differs(self) -> bool:
        return self.p <= LEVEL

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"differs": self.differs}


def words(text: str) -> list[str]:
    """Words and signs, in lower case.

    >>> words("It's 5 o'clock.")
    ['it', "'", 's', '5', 'o', "'", 'clock', '.']
    """
    return _WORD.findall(text.lower())


def permuted(
    name: str, statistic: Callable[[Bools], float], synthetic: Bools, seed: int, higher: bool = True
) -> Distance:
    """statistic: of which texts are synthetic, [texts]."""
    rng = np.random.default_rng(seed)
    value = statistic(synthetic)
    null = np.array([statistic(rng.permutation(synthetic)) for _ in range(DRAWS)])
    further = null >= value if higher else null <= value
    point = float(np.quantile(null, 0.95 if higher else 0.05))
    return Distance(name, value, float(null.mean()), point, float((1 + further.sum()) / (1 + DRAWS)), higher)


def ngram_distance(texts: Sequence[Sequence[str]], n: int, synthetic: Bools, seed: int) -> Distance:
    """Jensen–Shannon distance (base 2, so at most 1) of how often each run of n words comes."""
    from sklearn.feature_extraction.text import CountVectorizer

    runs = [[" ".join(each[i : i + n]) for i in range(len(each) - n + 1)] for each in texts]
    counts = CountVectorizer(analyzer=lambda each: each).fit_transform(runs) if any(runs) else None

    def statistic(which: Bools) -> float:
        if counts is None:
            return 0.0
        ours, theirs = which.astype(float) @ counts, (~which).astype(float) @ counts
        return float(jensenshannon(ours, theirs, base=2)) if ours.any() and theirs.any() else 1.0

    return permuted({1: "words", 2: "pairs of words"}.get(n, f"runs of {n} words"), statistic, synthetic, seed)


def length_distance(lengths: NDArray[np.int64], synthetic: Bools, seed: int) -> Distance:
    """Wasserstein distance of numbers of words: by how many a text would have to change on average."""
    return permuted(
        "lengths in words",
        lambda which: float(wasserstein_distance(lengths[which], lengths[~which])),
        synthetic,
        seed,
    )
