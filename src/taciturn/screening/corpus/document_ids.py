"""Ids of documents over all pieces: repeated ones are found, or renamed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from taciturn.screening.corpus.piece import Job
from taciturn.text.document import Document
from taciturn.text.readers import Corpus
from taciturn.text.readers.pieces import Piece
from taciturn.text.readers.tally import Ids, Tally


@dataclass(slots=True)
class Seen:
    """Digests of the ids so far, eight bytes each, in sorted runs that at least halve in length."""

    _runs: list[npt.NDArray[np.uint64]] = field(default_factory=list, repr=False)

    def add(self, digests: bytes) -> bool:
        """Take the digests of a piece; False when one of them was there before."""
        new = np.sort(np.frombuffer(digests, dtype="<u8"))
        fresh = not bool((new[1:] == new[:-1]).any())
        for run in self._runs:
            at = np.minimum(np.searchsorted(run, new), len(run) - 1)
            fresh = fresh and not bool((run[at] == new).any())
        if len(new):
            self._runs.append(new)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            merged = np.concatenate([self._runs.pop(), self._runs.pop()])
            self._runs.append(np.sort(merged))
        return fresh


def repeated_place(job: Job, pieces: Sequence[Piece]) -> str | None:
    """Where the first repeated id stands; None if two digests only happened to be equal."""
    seen: set[str] = set()
    for piece in pieces:
        names = job.names.get(piece.number, {})
        documents = ((where, item) for where, item in job.corpus.read(piece, Tally()) if isinstance(item, Document))
        for number, (where, item) in enumerate(documents):
            name = names.get(number, item.id)
            if name in seen:
                return where
            seen.add(name)
    return None


def renamed(corpus: Corpus, pieces: Sequence[Piece]) -> Mapping[int, Mapping[int, str]]:
    """With duplicate_ids="suffix", the ids that change, by piece and number of the document in it: one more pass."""
    if corpus.options.duplicate_ids != "suffix":
        return {}
    ids = Ids("suffix")
    changed: dict[int, dict[int, str]] = {}
    for piece in pieces:
        documents = ((where, item) for where, item in corpus.read(piece, Tally()) if isinstance(item, Document))
        for number, (where, item) in enumerate(documents):
            name = ids.unique(item.id, where)
            if name != item.id:
                changed.setdefault(piece.number, {})[number] = name
    return changed
