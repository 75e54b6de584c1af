"""What becomes of one piece of the corpus: the work of a worker, which knows of no other piece."""

from __future__ import annotations

import gc
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from taciturn.screening.bridges import Bridge
from taciturn.screening.corpus.gold import count_gold
from taciturn.screening.corpus.sink import Sink
from taciturn.screening.dedup import Digests
from taciturn.screening.policies.finder import Finder
from taciturn.screening.rows import Local, Row
from taciturn.text.document import Document, Record
from taciturn.text.readers import Blank, Corpus, Quarantined
from taciturn.text.readers.pieces import Piece
from taciturn.text.readers.tally import Tally
from taciturn.text.segment import Unit, split

_BATCH, _BATCH_SIZE = 4096, 1 << 21  # records, code points
NAMED = 3
"""Unreadable items that are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class Job:
    """Everything a worker needs; it pickles.

    published: deduplicate originals, as the paper prints it. names: new ids of documents, by piece and by the document's
    number in it (duplicate_ids="suffix"). left_out: numbers of documents, by piece, that cleaning removed.
    """

    corpus: Corpus
    unit: Unit
    pi: Finder
    conservative: Finder
    skeletons: bool
    bridge: Bridge
    published: bool
    digests: Digests
    names: Mapping[int, Mapping[int, str]] = field(default_factory=dict)
    left_out: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def screen(self, piece: Piece, sink: Sink, progress: Callable[[int, int], None] = lambda *_: None) -> Done:
        """Read, split, redact and sort a piece into ``sink``. progress: called with (records, code points) of each batch."""
        local = Local.of(self.pi, self.conservative, self.skeletons, self.bridge)
        done = Done(piece.number)
        with _seldom_collected():
            for batch in self._batches(piece, sink, done):
                rows = local.rows(batch)
                sink.add(rows)
                self._note(rows, sink, done)
                progress(len(rows), sum(len(row.body) for row in rows))
        return done

    def _note(self, rows: list[Row], sink: Sink, done: Done) -> None:
        """Count, and leave an entry for deduplication where a row is in scope."""
        everything = self.digests.scope == "all"
        tally = Counter[str](row.part for row in rows)
        for number, row in enumerate(rows, done.rows):
            private = row.part == "private"
            for name, count in row.tally:  # public records have one, too: labelled spans that nobody marks
                tally[name] += count
            if private:
                tally["suspicious"] += row.suspicious
                tally["skeletons"] += row.skeleton is not None
            elif not everything:
                continue
            text, inside = (row.body, True) if self.published else (row.redacted, private)
            entry = self.digests.entry(number, text, inside, row.suspicious, row.record.label)
            if entry is not None:
                sink.note(entry)
        done.counts.update(tally)
        done.gold.update(count_gold(rows))
        done.rows += len(rows)
        done.labels = done.labels or any(row.record.label is not None for row in rows)

    def _batches(self, piece: Piece, sink: Sink, done: Done) -> Iterator[list[Record]]:
        """Records in lists of a few thousand; their documents may be cut between two."""
        records: list[Record] = []
        size = 0
        for document in self._documents(piece, sink, done):
            records += split(document, self.unit)  # none of them is blank, as the document is not
            size += len(document.text)
            while len(records) >= _BATCH or size >= _BATCH_SIZE:
                batch, records = records[:_BATCH], records[_BATCH:]
                yield batch
                size = sum(len(record.text) for record in records)
        if records:
            yield records

    def _documents(self, piece: Piece, sink: Sink, done: Done) -> Iterator[Document]:
        """The documents of a piece; what cannot be read, and what is blank, is counted on the way."""
        names, left_out = self.names.get(piece.number, {}), self.left_out.get(piece.number, frozenset())
        number = -1
        for _, item in self.corpus.read(piece, done.reading):
            if isinstance(item, Document):
                number += 1
                if number in left_out:
                    done.counts["cleaned"] += 1
                    continue
                if number in names:
                    item = replace(item, id=names[number])
                done.counts["documents"] += 1
                sink.name(id_digest(item.id, self.digests.key))
                yield item
            elif isinstance(item, Quarantined):
                done.counts["quarantined"] += 1
                if len(done.bad) < NAMED:
                    done.bad.append(item)
            elif isinstance(item, Blank):
                done.counts["left_out" if item.what else "blank"] += 1


@dataclass(slots=True)
class Done:
    """What a piece came to. gold: see corpus/gold.py. bad: the first few items that could not be read."""

    number: int
    rows: int = 0
    labels: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    gold: Counter[str] = field(default_factory=Counter)
    reading: Tally = field(default_factory=Tally)
    bad: list[Quarantined] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        reading = self.reading
        return {
            "number": self.number,
            "rows": self.rows,
            "labels": self.labels,
            "counts": dict(self.counts),
            "gold": dict(self.gold),
            "reading": [reading.documents, reading.quarantined, reading.lacking, sorted(reading.shared or ())],
            "bad": [[bad.source, bad.location, bad.reason] for bad in self.bad],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Done:
        documents, quarantined, lacking, shared = data["reading"]
        reading = Tally(documents, quarantined, dict(lacking), frozenset(shared) if lacking else None)
        bad = [Quarantined(*item) for item in data["bad"]]
        counts, gold = Counter(data["counts"]), Counter(data["gold"])
        return cls(data["number"], data["rows"], data["labels"], counts, gold, reading, bad)


def id_digest(name: str, key: bytes) -> bytes:
    """Eight bytes that stand for a document's id."""
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8, key=key, person=b"id").digest()


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """A batch is a hundred thousand objects without a cycle: looking for some among them takes a fifth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], 500_000), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
