"""Near-duplicate documents: MinHash finds candidates, the exact Jaccard index decides.

A document is a set of shingles: runs of five words, case folded (a shorter text is one shingle; text without spaces between
words, such as Chinese, is compared by clause). MinHash signatures (Broder 1997) are cut into bands, and two documents that
agree in a whole band are candidates: with r rows a band and b bands, a pair of Jaccard index s is one with probability
1 - (1 - s^r)^b (Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4). A document is a near-duplicate
only if its index with one that was *kept* reaches the threshold. Likeness is not passed on from one removed document to the
next, so that a chain of texts, each a little unlike the last, does not become one cluster.

Shingles are compared by 64-bit hashes. Nothing is drawn at random: the hash functions are constants.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
import numpy.typing as npt

from taciturn.text.document import Document

THRESHOLD = 0.8
WIDTH = 5
"""Words a shingle."""
HASHES = 128
"""Hash functions a signature; what does not fill a band is not used."""
RECALL = 0.99
"""Least probability with which a pair at the threshold becomes a candidate."""
MOST = 100
"""Candidates looked up in a band, and verified, for one document."""

_WORD = re.compile(r"\w+")
_WORDS_KNOWN = 1 << 18  # some 40 MB

Hashes = npt.NDArray[np.uint64]


def rows(threshold: float) -> int:
    """The most rows a band for which a pair at the threshold is a candidate with probability ``RECALL``.

    >>> rows(0.8), round(candidate(0.8, rows(0.8)), 4), round(candidate(0.5, rows(0.8)), 2)
    (6, 0.9983, 0.28)
    """
    return max(r for r in range(1, HASHES) if r == 1 or candidate(threshold, r) >= RECALL)


def candidate(index: float, r: int) -> float:
    """Probability that a pair of this Jaccard index is a candidate with r rows a band."""
    return float(1 - (1 - index**r) ** (HASHES // r))


@dataclass(slots=True)
class Index:
    """Numbers of documents by band key, in sorted runs that at least halve in length. Numbers are plain counts from 0 and
    stand for nothing else; keys may be any 64 bits."""

    _runs: list[tuple[Hashes, npt.NDArray[np.int64]]] = field(default_factory=list, repr=False)

    def add(self, keys: Hashes, numbers: npt.NDArray[np.int64]) -> None:
        """Numbers may not be less than those added before."""
        if len(keys):
            self._runs.append(_by_key(keys, numbers))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 2 * len(self._runs[-1][0]):
            last, before = self._runs.pop(), self._runs.pop()
            self._runs.append(_by_key(np.concatenate([before[0], last[0]]), np.concatenate([before[1], last[1]])))

    def find(self, once: Hashes) -> dict[int, list[int]]:
        """For each of these different, sorted keys that is there, its first ``MOST`` numbers (or some more), ascending."""
        found: dict[int, list[int]] = {}
        for held, numbers in self._runs:
            low, high = np.searchsorted(held, once, "left"), np.searchsorted(held, once, "right")
            for at in np.flatnonzero(high > low):
                mine = found.setdefault(int(once[at]), [])
                if len(mine) < MOST:
                    mine += numbers[low[at] : min(high[at], low[at] + MOST)].tolist()
        return found


class _Words(dict[str, int]):
    """Hashes of words, made when first asked for."""

    def __missing__(self, word: str) -> int:
        self[word] = found = _hash(word)
        return found


@dataclass(slots=True)
class Near:
    """Near-duplicates among documents in corpus order; a context around its scratch file.

    Memory: a kept document takes 16 bytes for each of its HASHES // rows(threshold) bands and 8 more (344 at 0.8), twice
    that while sorted runs are merged; besides, some 100 bytes for each word of a batch, and 40 MB for the words seen last.
    The hashes of its shingles, 8 bytes a word, go to a nameless file in ``scratch`` that only this process can open.
    """

    threshold: float = THRESHOLD
    scratch: Path | None = None
    _index: Index = field(default_factory=Index, init=False, repr=False)
    _ends: array[int] = field(default_factory=lambda: array("q"), init=False, repr=False)
    _words: _Words = field(default_factory=_Words, init=False, repr=False)
    _file: BinaryIO = field(init=False, repr=False)

    def __enter__(self) -> Self:
        self._file = tempfile.TemporaryFile(dir=self.scratch)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def removed(self, documents: Sequence[Document]) -> list[bool]:
        """Which of the next documents are near-duplicates of one that was kept and has the same label. What comes out does
        not depend on where batches are cut."""
        sets = self.shingles([document.text for document in documents])
        keys = _band_keys(sets, [document.label for document in documents], rows(self.threshold))
        once, where, counts = np.unique(keys, return_inverse=True, return_counts=True)
        earlier = self._index.find(once)
        shared_keys = (counts > 1) | np.isin(once, np.fromiter(earlier, dtype=np.uint64, count=len(earlier)))
        wanted = shared_keys[where].reshape(keys.shape)  # few: the others are in no other document so far
        fresh: dict[int, list[int]] = {}
        removed, first = [], len(self._ends)
        for mine, row, some in zip(sets, keys, wanted, strict=True):
            known = row[some].tolist()
            shared = Counter[int]()
            for key in known:
                shared.update([*earlier.get(key, ()), *fresh.get(key, ())][:MOST])
            likeliest = sorted(shared, key=lambda number: (-shared[number], number))[:MOST]
            near = any(self._close(mine, number) for number in likeliest)
            if not near:
                number = self._keep(mine)
                for key in known:
                    fresh.setdefault(key, []).append(number)
            removed.append(near)
        kept = ~np.array(removed, dtype=bool)
        numbers = np.arange(first, len(self._ends), dtype=np.int64)
        self._index.add(keys[kept].ravel(), np.repeat(numbers, keys.shape[1]))
        return removed

    def shingles(self, texts: Sequence[str]) -> list[Hashes]:
        """The set of each text, sorted; never empty."""
        if len(self._words) > _WORDS_KNOWN:
            self._words.clear()
        words = [_WORD.findall(text.casefold()) or [text.strip()] for text in texts]
        lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
        every = chain.from_iterable(words)
        numbers = np.fromiter(map(self._words.__getitem__, every), dtype=np.uint64, count=int(lengths.sum()))
        counts = np.maximum(1, lengths - WIDTH + 1)  # one shingle of all words where there are fewer than WIDTH
        of = np.repeat(np.arange(len(words)), counts)
        offset = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
        starts = offset + np.repeat(np.cumsum(lengths) - lengths, counts)
        numbers = np.concatenate([numbers, np.zeros(WIDTH, dtype=np.uint64)])
        whole = np.zeros(len(of), dtype=np.uint64)
        for j in range(WIDTH):
            whole += np.where(j < lengths[of], numbers[starts + j] * _FACTORS[j], 0)
        whole = _mixed(whole)
        order = np.lexsort((whole, of))
        whole, of = whole[order], of[order]
        first = np.concatenate([[True], (whole[1:] != whole[:-1]) | (of[1:] != of[:-1])])
        return np.split(whole[first], np.flatnonzero(np.diff(of[first])) + 1)

    def _keep(self, shingles: Hashes) -> int:
        """The number of a document from now on."""
        self._file.write(shingles.tobytes())
        self._ends.append((self._ends[-1] if self._ends else 0) + len(shingles))
        return len(self._ends) - 1

    def _close(self, mine: Hashes, number: int) -> bool:
        """Whether the Jaccard index with a kept document reaches the threshold."""
        start, end = (self._ends[number - 1] if number else 0), self._ends[number]
        few, many = sorted((len(mine), end - start))
        if few / many < self.threshold:  # the index is at most that
            return False
        self._file.flush()
        theirs = np.frombuffer(os.pread(self._file.fileno(), 8 * (end - start), 8 * start), dtype=np.uint64)
        common = len(np.intersect1d(mine, theirs, assume_unique=True))
        return common / (few + many - common) >= self.threshold


def _by_key(keys: Hashes, numbers: npt.NDArray[np.int64]) -> tuple[Hashes, npt.NDArray[np.int64]]:
    order = np.argsort(keys, kind="stable")
    return keys[order], numbers[order]


def _band_keys(sets: Sequence[Hashes], labels: Sequence[str | None], r: int) -> Hashes:
    """keys[document, band]; documents of different labels share none."""
    bands = HASHES // r
    every = np.concatenate(sets)
    starts = np.cumsum([0, *(len(each) for each in sets[:-1])])
    salts = np.array([_hash("" if label is None else f"+{label}") for label in labels], dtype=np.uint64)
    keys = np.empty((len(sets), bands), dtype=np.uint64)
    for band in range(bands):
        whole = salts + np.uint64(band)
        for k in range(band * r, band * r + r):
            least = np.minimum.reduceat((every ^ _SALTS[k]) * _FACTORS[k], starts)
            whole = _mixed(whole * _FACTORS[0] + least)
        keys[:, band] = whole
    return keys


def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _mixed(x: Hashes) -> Hashes:
    """A bijection of 64 bits in which every bit moves every other (the finaliser of SplitMix64: Steele, Lea, Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


_SALTS = np.array([_hash(f"salt {k}") for k in range(HASHES)], dtype=np.uint64)
_FACTORS = np.array([_hash(f"factor {k}") | 1 for k in range(HASHES)], dtype=np.uint64)
