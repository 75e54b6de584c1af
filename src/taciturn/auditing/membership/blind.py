"""Blind baselines: what tells members from non-members without any model (Das et al. 2024; Meeus et al. 2024).

If one of these does as well as an attack, the two sets differ by themselves and the attack has shown nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from taciturn.auditing.membership.scores import Scores, compressed
from taciturn.auditing.nulls import auc_sd

TRAINED = ("words",)
"""Baselines that learn from the labels of the other half: their AUC spreads √2 as wide when there is nothing to find."""


def blind_scores(inside: Sequence[str], outside: Sequence[str], seed: int = 0) -> dict[str, tuple[Scores, Scores]]:
    """Baseline → scores of both sides: length in characters, compressed length, and words.

    "words" is a naive Bayes classifier on which words occur, trained on one random half and read on the other, both ways.
    """

    def length(texts: Sequence[str]) -> Scores:
        return np.array([len(text) for text in texts], float)

    return {
        "length": (length(inside), length(outside)),
        "zlib": (compressed(inside), compressed(outside)),
        "words": _words(inside, outside, np.random.default_rng(seed)),
    }


def blind_sd(baseline: str, n1: int, n0: int) -> float:
    """Standard deviation of a baseline's AUC without an effect. The two halves of a trained one see the same pairs, so
    their AUCs may move together."""
    return auc_sd(n1, n0) * (math.sqrt(2) if baseline in TRAINED else 1.0)


def _words(inside: Sequence[str], outside: Sequence[str], rng: np.random.Generator) -> tuple[Scores, Scores]:
    sides = [[set(re.findall(r"\w+", text.lower())) for text in texts] for texts in (inside, outside)]
    halves: list[NDArray[np.bool_]] = [rng.permutation(len(side)) % 2 == 0 for side in sides]
    out = np.zeros(len(inside)), np.zeros(len(outside))
    for pick in (True, False):
        seen = [
            [words for words, half in zip(*pair, strict=True) if half == pick]
            for pair in zip(sides, halves, strict=True)
        ]
        counts = [Counter(word for words in side for word in words) for side in seen]
        weight = {
            word: math.log((counts[0][word] + 1) / (len(seen[0]) + 2))
            - math.log((counts[1][word] + 1) / (len(seen[1]) + 2))
            for word in counts[0].keys() | counts[1].keys()
        }
        for scores, side, half in zip(out, sides, halves, strict=True):
            for i in np.flatnonzero(half != pick):
                scores[i] = math.fsum(weight.get(word, 0.0) for word in side[i])
    return out
