"""Cleaning: documents that are left out before screening, as copies (bloom) or near-duplicates (minhash) of earlier ones.

Cleaning looks at all documents at once and at their originals: one more or another document may change any number of later
decisions, so a cleaned corpus has no guarantee (guarantees.md §2.2). Deduplication inside screening needs none of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, get_args

from taciturn.errors import DataError, UsageError, nearest
from taciturn.screening.cleaning.bloom import Copies
from taciturn.screening.cleaning.minhash import THRESHOLD, Near
from taciturn.text.document import Document
from taciturn.text.readers import Corpus
from taciturn.text.readers.corpus import MEMORY
from taciturn.text.readers.pieces import Piece
from taciturn.text.readers.tally import Tally

Clean = Literal["none", "bloom", "minhash"]
CLEAN: tuple[Clean, ...] = get_args(Clean)
SINGLES = "the files of one document each"
MOST = 0.5

_BATCH, _BATCH_SIZE = 1024, 1 << 20  # documents, code points


class Judge(Protocol):
    """Says of documents, in corpus order and in batches, which to remove."""

    def removed(self, documents: Sequence[Document]) -> list[bool]: ...


@dataclass(frozen=True, slots=True)
class Source:
    """Documents of one input file: read = kept + removed, always."""

    name: str
    read: int
    kept: int
    removed: int

    def __post_init__(self) -> None:
        if self.read != self.kept + self.removed:
            raise AssertionError(
                f"documents lost in '{self.name}': {self.read} read, {self.kept} + {self.removed} counted"
            )


@dataclass(frozen=True, slots=True)
class Cleaned:
    """left_out: numbers of removed documents within each piece that has some. sources: counts by input file; files that
    hold one document each are counted together."""

    left_out: Mapping[int, frozenset[int]] = field(default_factory=dict, repr=False)
    sources: tuple[Source, ...] = ()

    def __post_init__(self) -> None:
        whole, out = sum(s.removed for s in self.sources), sum(map(len, self.left_out.values()))
        if whole != out:
            raise AssertionError(f"documents lost: {whole} removed by source, {out} by piece")

    @property
    def removed(self) -> int:
        return sum(source.removed for source in self.sources)


def left_out(
    corpus: Corpus,
    pieces: Sequence[Piece],
    how: Clean,
    *,
    most: float = MOST,
    threshold: float = THRESHOLD,
    scratch: Path | None = None,
) -> Cleaned:
    """What cleaning removes: of copies, or of a document and its near-duplicates, the first in corpus order stays.

    how: "bloom", see bloom.Copies; "minhash", see near.Near, with ``threshold`` in (0, 1]; "none", nothing. most: the
    largest share of a source that may be removed. scratch: a folder for hashes of shingles, else the system's for temporary
    files. Reads the corpus once, in order. Memory: that of Copies or Near, a batch of documents, and some 60 bytes for each
    removed one.

    Raises DataError when more than ``most`` of a source would be removed, UsageError for a wrong option, MissingExtra.
    """
    check(how, most)
    if not 0 < threshold <= 1:
        raise UsageError(f"threshold must be above 0 and at most 1, found {threshold}")
    if how == "none":
        return Cleaned()
    found: dict[int, frozenset[int]] = {}
    kept, removed = Counter[int | str | None](), Counter[int | str | None]()
    with _judge(how, threshold, scratch) as judge:
        for piece in pieces:
            where = _where(corpus, piece)
            out: list[int] = []
            count = 0
            for batch in _batches(corpus, piece):
                answers = judge.removed(batch)
                out += [count + i for i, answer in enumerate(answers) if answer]
                kept[where] += answers.count(False)
                removed[where] += answers.count(True)
                count += len(batch)
            if out:
                found[piece.number] = frozenset(out)
    cleaned = Cleaned(found, tuple(_sources(corpus, kept, removed)))
    _stop(cleaned, how, most)
    return cleaned


def check(how: str, most: float) -> None:
    """Raises UsageError."""
    if how not in CLEAN:
        raise UsageError(f"clean '{how}' is unknown; {nearest(how, CLEAN)}")
    if not 0 <= most <= 1:
        raise UsageError(f"clean_most is a share of documents, from 0 to 1; found {most}")


@contextmanager
def _judge(how: Clean, threshold: float, scratch: Path | None) -> Iterator[Judge]:
    if how == "bloom":
        yield Copies()
    else:
        with Near(threshold, scratch) as near:
            yield near


def _batches(corpus: Corpus, piece: Piece) -> Iterator[list[Document]]:
    batch: list[Document] = []
    size = 0
    for _, item in corpus.read(piece, Tally()):
        if isinstance(item, Document):
            batch.append(item)
            size += len(item.text)
            if len(batch) == _BATCH or size >= _BATCH_SIZE:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _where(corpus: Corpus, piece: Piece) -> int | str | None:
    """A file somebody named, or the folder that one was found in, whose files are counted together."""
    return piece.file if piece.file is None else (corpus.sources[piece.file].folder or piece.file)


def _sources(corpus: Corpus, kept: Counter[int | str | None], removed: Counter[int | str | None]) -> Iterator[Source]:
    every = dict.fromkeys((*kept, *removed))
    singles = {file for file in every if isinstance(file, int) and kept[file] + removed[file] == 1}
    for file in every:
        if file not in singles or len(singles) == 1:
            name = MEMORY if file is None else corpus.sources[file].name if isinstance(file, int) else file
            yield Source(name, kept[file] + removed[file], kept[file], removed[file])
    if len(singles) > 1:
        stay, gone = sum(kept[file] for file in singles), sum(removed[file] for file in singles)
        yield Source(SINGLES, len(singles), stay, gone)


def _stop(cleaned: Cleaned, how: Clean, most: float) -> None:
    over = [source for source in cleaned.sources if source.removed > most * source.read]
    if not over:
        return
    named = "; ".join(f"{s.removed:,} of {s.read:,} documents of '{s.name}'" for s in over[:3])
    more = f"; and of {len(over) - 3} more sources" if len(over) > 3 else ""
    raise DataError(
        f"clean='{how}' would remove {named}{more}: more than the {100 * most:.4g} % of a source that clean_most={most:g} "
        "allows. If these sources do repeat themselves or earlier ones, allow it with a larger clean_most (1 allows all); "
        "else leave them out, or screen with clean='none': deduplication inside screening needs no cleaning"
    )
