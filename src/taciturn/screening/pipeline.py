"""screen(): documents in, a screened corpus out (CRT, Algorithm 1, lines 1-4, in the order the proofs need)."""

from __future__ import annotations

import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from taciturn.errors import DataError, UsageError, nearest
from taciturn.screening.bridges import Bridge
from taciturn.screening.cleaning.clean import MOST, Clean, Cleaned, check, left_out
from taciturn.screening.corpus.describe import describe
from taciturn.screening.corpus.document_ids import Seen, renamed, repeated_place
from taciturn.screening.corpus.gold import by_label
from taciturn.screening.corpus.manifest import Counts, Input, Manifest
from taciturn.screening.corpus.options import Options, Order, content_key
from taciturn.screening.corpus.piece import NAMED, Done, Job
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.corpus.sink import ORIGINALS, RECORDS, Sink
from taciturn.screening.corpus.store import DUPLICATES, Store, recall
from taciturn.screening.corpus.stored import destination
from taciturn.screening.dedup import Digests, Scope, copies
from taciturn.screening.engines import choose
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.derived import Missing
from taciturn.screening.policies.finder import Finder
from taciturn.screening.policies.public import Public
from taciturn.screening.sparing import Sparing
from taciturn.text.readers import Corpus, Quarantined
from taciturn.text.readers.pieces import Piece
from taciturn.text.readers.tally import Tally, repeated
from taciturn.text.segment import Unit


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a screening is. bytes: of input (of a corpus in memory: documents); in a piece under way, estimated from the
    characters read. resumed, resumed_records: of these, done by an interrupted run. seconds: since this one began."""

    records: int
    bytes: int
    of_bytes: int
    resumed: int
    resumed_records: int
    seconds: float


def screen(
    corpus: Corpus,
    pi: Policy,
    conservative: Policy,
    *,
    unit: Unit | None = None,
    dedup: Scope = "suspicious",
    order: Order = "redact-first",
    clean: Clean = "none",
    clean_most: float = MOST,
    skeletons: bool = True,
    bridge: Bridge = "particles",
    miss_rate: float = 0.0,
    miss_seed: int = 0,
    public: Public | None = None,
    max_bad: int = 0,
    keep_originals: bool = True,
    out: str | os.PathLike[str] | None = None,
    workers: int = 1,
    engine: choose.Engine = "local",
    notify: Callable[[Progress], None] = lambda _: None,
) -> ScreenedCorpus:
    """Split → Redact → Partition → Dedup, with skeletons taken before Dedup (guarantees.md §2 and §3).

    pi redacts; conservative (π_c) decides what is public. public: values that are public anyway, which π_c then leaves
    unmarked (sparing.py); a secret that is one of them is not covered, and the manifest says so. unit: sentence, or
    document where the corpus was read as conversations or pairs, which are never cut. order "as-published" deduplicates
    everything before redaction, as the paper prints it: it breaks "detected means ε = 0", gives no skeletons, and the
    manifest says so. clean: leave out copies ("bloom") or near-duplicates ("minhash") of earlier documents first, at
    most the share ``clean_most`` of a source (see clean.left_out): no guarantee survives it, and the manifest says so.
    bridge: what skeletons mask between and beside marks (bridges.py).
    miss_rate: share of π's findings that are dropped on purpose (π_c is left alone). keep_originals: also keep the
    untouched text, in a folder of mode 0700: mechanisms that train on it and ``group_size`` read it. out: a folder to
    write, by path or URL (stored.py), else in memory. workers: processes; engine "ray" runs them on Ray Data. What comes
    out does not depend on either. An interrupted screening into a folder goes on where it stopped when it is called again
    with the same input and options.

    Raises DataError when more than ``max_bad`` items cannot be read or cleaning would remove more than it may (nothing
    is then written), UsageError for a wrong option or for public values from a file of the corpus itself, MismatchError
    where ``out`` holds, or an interrupted run left, another screening.
    """
    unit = unit or ("document" if corpus.options.structured else "sentence")
    options = Options(
        unit, dedup, order, skeletons and order == "redact-first", miss_rate, miss_seed, keep_originals, clean, bridge
    )
    _check(workers, engine, out)
    check(clean, clean_most)
    finder: Finder = Missing(pi, miss_rate, miss_seed) if miss_rate else pi
    pieces, digests = corpus.pieces()
    inputs = tuple(Input(name=name, digest=digest) for name, digest in digests.items())
    wide = Sparing.of(pi, conservative, public and public.apart_from(digests))
    key = content_key(options, (pi, wide), corpus, inputs)

    def job(secret: bytes, cleaned: Cleaned) -> Job:
        published = order == "as-published"
        scope = Digests("all" if published else dedup, secret)
        return Job(
            corpus,
            unit,
            finder,
            wide,
            options.skeletons,
            options.bridge,
            published,
            scope,
            renamed(corpus, pieces),
            cleaned.left_out,
        )

    def manifest(cleaned: Cleaned, done: Sequence[Done], duplicates: int, moved: int) -> Manifest:
        counts = _counts(done, duplicates, moved if order == "as-published" else 0)
        labels = any(d.labels for d in done)
        gold = by_label(sum((d.gold for d in done), Counter[str]()))
        return describe(options, pi, wide, inputs, counts, key, labels, cleaned.sources, gold)

    watch = _Watch(corpus, pieces, max_bad, notify)
    if out is None:
        cleaned = left_out(corpus, pieces, clean, most=clean_most)
        work = job(secrets.token_bytes(32), cleaned)
        return _in_memory(work, pieces, keep_originals, watch, partial(manifest, cleaned))
    with destination(out, key) as (folder, put), Store(folder, key, keep_originals) as store:
        cleaned = left_out(corpus, pieces, clean, most=clean_most, scratch=store.folder / "work")
        work = job(store.secret, cleaned)
        old = {p.number: found for p in pieces if (found := recall(store.folder, p.number))}
        todo = [p for p in pieces if p.number not in old]
        new = choose.run(engine, workers, work, todo, store.folder, keep_originals, watch.progress)
        finished = []
        for piece in pieces:
            each = old[piece.number] if piece.number in old else next(new)
            watch.saw(each.done, work, store.work(piece.number, "ids").read_bytes(), resumed=piece.number in old)
            finished.append(each)
        watch.close()
        done = [each.done for each in finished]
        entries = [store.work(d.number, "entries") for d in done]
        copied, moved = copies(entries, [d.rows for d in done], store.folder / "work")
        whole = manifest(cleaned, done, int(sum(c.sum() for c in copied)), moved)
        return ScreenedCorpus(*store.finish(whole, finished, copied, put))


def _in_memory(
    job: Job,
    pieces: Sequence[Piece],
    originals: bool,
    watch: _Watch,
    manifest: Callable[[Sequence[Done], int, int], Manifest],
) -> ScreenedCorpus:
    done: list[Done] = []
    entries: list[bytes] = []
    tables: dict[str, list[pa.Table]] = {"records": [], "originals": []}
    for piece in pieces:
        sink = Sink(None, piece.number, originals)
        done.append(job.screen(piece, sink, watch.progress))
        watch.saw(done[-1], job, sink.ids.getvalue())  # type: ignore[attr-defined]  # in memory these are BytesIO
        entries.append(sink.entries.getvalue())  # type: ignore[attr-defined]
        for kind, parts in sink.tables.items():
            tables[kind] += parts
    watch.close()
    copied, moved = copies(entries, [d.rows for d in done])
    held = {
        "records": pa.concat_tables([RECORDS.empty_table(), *tables["records"]]),
        "originals": pa.concat_tables([ORIGINALS.empty_table(), *tables["originals"]]),
        "duplicates": pa.concat_tables(
            [DUPLICATES.empty_table(), *(pa.table({"duplicate": c}, schema=DUPLICATES) for c in copied)]
        ),
    }
    return ScreenedCorpus(manifest(done, int(sum(c.sum() for c in copied)), moved), held=held)


class _Watch:
    """What is checked and told while pieces come in, in their order."""

    def __init__(
        self, corpus: Corpus, pieces: Sequence[Piece], max_bad: int, notify: Callable[[Progress], None]
    ) -> None:
        self._corpus, self._pieces, self._max_bad, self._notify = corpus, pieces, max_bad, notify
        self._tally, self._bad, self._seen = Tally(), list[Quarantined](), Seen()
        self._total, self._begun = sum(p.size for p in pieces), time.monotonic()
        self._records = self._rows = self._whole = self._within = self._resumed = self._resumed_records = 0

    def progress(self, records: int, characters: int) -> None:
        """Progress inside a piece."""
        self._records += records
        self._within += characters
        self._tell()

    def saw(self, done: Done, job: Job, ids: bytes, resumed: bool = False) -> None:
        """A whole piece. Raises DataError: too much that cannot be read, a repeated id."""
        piece = self._pieces[done.number]
        if done.counts["cleaned"] != len(job.left_out.get(done.number, ())):
            raise DataError(f"part {done.number} of the input changed between cleaning and screening; screen again")
        self._tally.add(done.reading)
        self._bad += done.bad[: NAMED - len(self._bad)]
        if self._tally.quarantined > self._max_bad:
            raise DataError(self._too_many(done.number))
        if not self._seen.add(ids) and (where := repeated_place(job, self._pieces[: done.number + 1])):
            raise repeated(where)
        self._rows += done.rows
        self._whole += piece.size
        self._within = max(0, self._within - piece.size)
        if resumed:
            self._records += done.rows
            self._resumed += piece.size
            self._resumed_records += done.rows
        self._tell()

    def close(self) -> None:
        """After the last piece. Raises DataError if there was no document."""
        self._corpus.check(self._tally)
        if not self._tally.documents:
            raise DataError(f"none of the {self._tally.quarantined} items can be read: {self._named()}")
        self._records = self._rows  # of a piece's last batch, which may be small, nothing was told
        self._tell()

    def _tell(self) -> None:
        seen = min(self._total, self._whole + self._within)
        self._notify(
            Progress(
                self._records,
                seen,
                self._total,
                self._resumed,
                self._resumed_records,
                time.monotonic() - self._begun,
            )
        )

    def _too_many(self, last: int) -> str:
        """Counts what else there is, so that one run names the size of the trouble."""
        rest = Tally()
        for piece in self._pieces[last + 1 :]:
            for _, item in self._corpus.read(piece, rest):
                if isinstance(item, Quarantined) and len(self._bad) < NAMED:
                    self._bad.append(item)
        self._tally.add(rest)
        self._corpus.check(self._tally)
        return (
            f"{self._tally.quarantined} items cannot be read, {self._max_bad} allowed: {self._named()}; "
            "mend them or raise max_bad"
        )

    def _named(self) -> str:
        """The first few unreadable items, and how many more there are."""
        named = "; ".join(f"{b.source}, {b.location}: {b.reason}" for b in self._bad)
        more = self._tally.quarantined - len(self._bad)
        return f"{named}; and {more} more" if more > 0 else named


def _counts(done: Iterable[Done], duplicates: int, moved: int) -> Counts:
    tally = Counter[str]()
    for each in done:
        tally.update(each.counts)
    tally["public"] -= moved
    tally["private"] += moved
    tally["duplicates"] = duplicates
    tally["read"] = tally["public"] + tally["private"] + tally["quarantined"]
    return Counts(**tally).check()


def _check(workers: int, engine: str, out: object) -> None:
    if workers < 1:
        raise UsageError(f"workers must be at least 1, found {workers}")
    if engine not in ("local", "ray"):
        raise UsageError(f"engine '{engine}' is unknown; {nearest(engine, ('local', 'ray'))}")
    if out is None and (workers > 1 or engine == "ray"):
        raise UsageError("several workers write to a folder: name one (out=...)")
