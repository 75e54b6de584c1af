"""Exact copies of documents in a single pass and little memory: Bloom filters that grow.

A Bloom filter (Bloom 1970) never misses a copy and takes a new document for a copy with a small probability. How many
documents will come is not known, so filters follow one another, each of twice the size and half the error of the last
(Almeida, Baquero, Preguiça and Hutchison 2007, Scalable Bloom Filters): the errors sum to less than the one asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from taciturn.errors import MissingExtra
from taciturn.text.document import Document, body

if TYPE_CHECKING:
    import rbloom

ERROR = 1e-6
"""Most probability with which a document that has no copy before it is removed."""
EXPECTED = 1 << 20


@dataclass(slots=True)
class Copies:
    """Copies among documents in corpus order: the same text (but for closing line ends) and the same label.

    expected: documents for which the first filter, of 3.8 bytes each, is made. Memory: at most 4 MB, or 12 bytes a document
    that is kept. Raises MissingExtra without rbloom.
    """

    expected: int = EXPECTED
    error: float = ERROR
    _filters: list[rbloom.Bloom] = field(default_factory=list, init=False, repr=False)
    _room: int = field(default=0, init=False, repr=False)

    def removed(self, documents: Sequence[Document]) -> list[bool]:
        """Which of the next documents are copies of an earlier one. What comes out does not depend on where batches are
        cut."""
        return [self._seen(digest(document)) for document in documents]

    def _seen(self, name: bytes) -> bool:
        if any(name in each for each in self._filters):
            return True
        if not self._room:
            self._grow()
        self._filters[-1].add(name)
        self._room -= 1
        return False

    def _grow(self) -> None:
        try:
            from rbloom import Bloom
        except ImportError:
            raise MissingExtra("rbloom", "near") from None
        number = len(self._filters)
        self._room = self.expected << number
        self._filters.append(Bloom(self._room, self.error / 2 ** (number + 1), as_int))


def digest(document: Document) -> bytes:
    """Sixteen bytes that stand for text and label; the same in every process."""
    label = "-" if document.label is None else f"{len(document.label)}:{document.label}"
    whole = (label + body(document.text)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(whole, digest_size=16, person=b"clean").digest()


def as_int(name: bytes) -> int:
    """What rbloom takes for a hash: a signed integer of 128 bits."""
    return int.from_bytes(name, "little", signed=True)
