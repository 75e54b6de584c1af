"""A corpus in pieces that can be read one by one, by several processes, in any order.

Where the cuts fall depends on the files alone. Text by lines is cut at line ends, Parquet between row groups; what
cannot be found by an offset (compressed files, CSV, whose cells may hold line ends, JSON lists, folders) is one piece.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from taciturn.errors import DataError
from taciturn.text.readers.files import CHUNK, digest, packed, recoded
from taciturn.text.readers.held import File

_FILES = 1 << 10
LEAST, MOST, MANY = 1 << 22, 1 << 24, 64
"""Bytes of the smallest and the largest piece, and the number of pieces that a corpus between the two is cut into."""


class Stretch(NamedTuple):
    """Part of a file: bytes [start, end) of text, row groups of Parquet. first: how many lines or rows come before."""

    start: int
    end: int
    first: int


@dataclass(frozen=True, slots=True)
class Piece:
    """number: from 0, in corpus order. file: index of its source, None for documents in memory. stretch: None for a whole
    file. size: bytes (of memory: documents), for progress. files: how many small files, one after another, it holds."""

    number: int
    file: int | None
    stretch: Stretch | None
    size: int
    files: int = 1


def line_stretches(path: File, name: str, size: int, encoding: str | None = None) -> tuple[list[Stretch], str]:
    """Stretches of about ``size`` bytes that end at line ends, and the file's SHA-256, in one pass.

    A packed file gives no stretch, nor does one that is recoded while it is read.
    """
    if packed(path) or recoded(path, encoding):
        return [], digest(path)
    sha, cuts, begun, at, newlines, goal = hashlib.sha256(), [Stretch(0, 0, 0)], 0, 0, 0, size
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                sha.update(chunk)
                begun = 0
                while goal <= at + len(chunk) and (found := chunk.find(b"\n", max(goal - 1 - at, begun))) >= 0:
                    newlines += chunk.count(b"\n", begun, found + 1)
                    begun = found + 1
                    cuts.append(Stretch(at + begun, 0, newlines))
                    goal = at + begun + size
                newlines += chunk.count(b"\n", begun)
                at += len(chunk)
    except OSError as error:
        raise DataError(f"cannot read {name}: {error.strerror or type(error).__name__}") from None
    ends = [*(cut.start for cut in cuts[1:]), at]
    return [c._replace(end=end) for c, end in zip(cuts, ends, strict=True) if end > c.start], sha.hexdigest()


def grouped(path: File, name: str, size: int) -> list[Stretch]:
    """Stretches of row groups, each of at least ``size`` bytes (uncompressed) but the last; none for a packed file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if packed(path):
        return []
    stretches: list[Stretch] = []
    start = rows = first = held = 0
    try:
        with path.open("rb", buffering=0) as handle:
            metadata = pq.ParquetFile(handle).metadata
            for group in range(metadata.num_row_groups):
                about = metadata.row_group(group)
                rows, held = rows + about.num_rows, held + about.total_byte_size
                if held >= size or group == metadata.num_row_groups - 1:
                    stretches.append(Stretch(start, group + 1, first))
                    start, first, held = group + 1, rows, 0
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{name} is not a readable Parquet file ({type(error).__name__})") from None
    return stretches


def piece_size(total: int) -> int:
    """Bytes of a piece of a corpus of ``total`` bytes.

    >>> piece_size(10**6), piece_size(2**29), piece_size(10**12)
    (4194304, 8388608, 16777216)
    """
    return min(MOST, max(LEAST, total // MANY))


def numbered(parts: Iterable[tuple[int | None, Stretch | None, int]]) -> list[Piece]:
    """Pieces of (file, stretch, size), numbered from 0."""
    return [Piece(number, *part) for number, part in enumerate(parts)]


def together(parts: Sequence[tuple[int | None, Stretch | None, int]], small: Sequence[bool], size: int) -> list[Piece]:
    """``numbered``, whole files that may share a piece (``small``, by file) put together up to ``size`` bytes: a folder of
    a million mails is no million pieces."""
    pieces: list[Piece] = []
    for file, stretch, bytes_ in parts:
        last = pieces[-1] if pieces else None
        if last and _joins(last, small) and _joins(Piece(0, file, stretch, 0), small) and last.size + bytes_ <= size:
            pieces[-1] = replace(last, size=last.size + bytes_, files=last.files + 1)
        else:
            pieces.append(Piece(len(pieces), file, stretch, bytes_))
    return pieces


def _joins(piece: Piece, small: Sequence[bool]) -> bool:
    return piece.file is not None and piece.stretch is None and small[piece.file] and piece.files < _FILES
