"""How much of a text stands word by word in training text, and whether synthetic text copies more than held-out text does.

What two people would write alike anyway is the null: held-out text, which the model never saw. Words are numbered by a hash,
runs of words by a rolling one, so that no text of the training set is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap

LENGTHS = (4, 8, 16, 32)
"""Words of a run."""

LEVEL = 0.95
"""Of the intervals of all lengths together (Bonferroni)."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Copied:
    """words: of a run. synthetic, held_out: mean over texts of the share of their runs that stand in training text; texts
    shorter than a run are left out. interval: of the difference, by bootstrap over texts; None without enough texts."""

    words: int
    synthetic: float
    held_out: float
    texts: tuple[int, int]
    interval: tuple[float, float] | None

    @property
    def more(self) -> bool | None:
        """Whether more of synthetic text is copied; None where that cannot be told."""
        return None if self.interval is None else self.interval[0] > 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"more": self.more}


class Runs:
    """Runs of words as numbers."""

    def __init__(self) -> None:
        self._words: dict[str, int] = {}

    def hashes(self, words: Sequence[str], n: int) -> Hashes:
        """One number for each run of n words, [len(words) − n + 1]; equal runs have equal ones, others a chance of 2⁻⁶⁴."""
        ids = np.array([self._number(word) for word in words], np.uint64)
        if len(ids) < n:
            return np.zeros(0, np.uint64)
        found = np.zeros(len(ids) - n + 1, np.uint64)
        for i in range(n):
            found = found * _FACTOR + ids[i : len(ids) - n + 1 + i]
        return found

    def _number(self, word: str) -> int:
        if word not in self._words:
            self._words[word] = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
        return self._words[word]


def copied(
    synthetic: Sequence[Sequence[str]], held_out: Sequence[Sequence[str]], training: Iterable[Sequence[str]], seed: int
) -> list[Copied]:
    """For each of LENGTHS; texts as words. ``training`` is gone through once."""
    runs = Runs()
    known: dict[int, list[Hashes]] = {n: [] for n in LENGTHS}
    for each in training:
        for n in LENGTHS:
            known[n].append(np.unique(runs.hashes(each, n)))
    found = []
    for n in LENGTHS:
        there = np.unique(np.concatenate(known.pop(n) or [np.zeros(0, np.uint64)]))
        ours, theirs = (_shares(runs, each, n, there) for each in (synthetic, held_out))
        means = [float(each.mean()) if len(each) else 0.0 for each in (ours, theirs)]
        found.append(Copied(n, means[0], means[1], (len(ours), len(theirs)), _interval(ours, theirs, seed)))
    return found


def _shares(runs: Runs, texts: Sequence[Sequence[str]], n: int, there: Hashes) -> NDArray[np.float64]:
    all_of = (runs.hashes(each, n) for each in texts)
    return np.array([np.isin(each, there).mean() for each in all_of if len(each)])


def _interval(ours: NDArray[np.float64], theirs: NDArray[np.float64], seed: int) -> tuple[float, float] | None:
    """Of the difference of means; wider than LEVEL so that all of LENGTHS hold at once."""
    if min(len(ours), len(theirs)) < 20:
        return None
    if not np.ptp(ours) and not np.ptp(theirs):  # no two texts differ: nothing to draw from
        return (float(ours[0] - theirs[0]),) * 2
    level = 1 - (1 - LEVEL) / len(LENGTHS)
    done = bootstrap(
        (ours, theirs),
        lambda a, b, axis: a.mean(axis) - b.mean(axis),
        confidence_level=level,
        n_resamples=1999,
        batch=100,
        method="percentile",
        random_state=np.random.default_rng(seed),
    )
    return float(done.confidence_interval.low), float(done.confidence_interval.high)
