"""Exact deduplication of redacted texts: the first stays, later copies become ``<MASK>`` (guarantees.md §2.2).

A record is its text and its label: equal texts with different labels both stay. The private records as a multiset change
by at most one element when one record changes, in every scope, because a record in scope is there once and each further
copy is the same ``<MASK>``, without a label. Public and private copies are looked up apart, so that no private record
decides which public ones stay. Scope "private" is the one in which k copies of a secret always cost as much as one: in
scope "suspicious" the masked copies may be unsuspicious, and then all of them stay.

Pieces of a corpus write an ``Entry`` for each record in scope; ``copies`` then finds, digest by digest, all but the first.
The result is that of one pass in corpus order, whatever wrote the entries and when. What does not fit into memory is dealt
out to files by digest first, so that each entry is read twice and written once, however many there are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from taciturn.text.atomic import create
from taciturn.text.document import MASK

Scope = Literal["suspicious", "private", "all", "none"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

ENTRY = np.dtype([("high", "<u8"), ("low", "<u8"), ("row", "<u4"), ("public", "<u4")])
"""digest (two halves), row within the piece, whether the record is public: 24 bytes."""

_AT_ONCE = 1 << 20  # entries sorted together: 28 MB
_DEALT = 1 << 20  # entries dealt out together
_FILES = 1 << 12  # that entries are dealt out to, at most


@dataclass(frozen=True, slots=True)
class Digests:
    """What makes two records copies, under a key drawn for one screening and never published: unkeyed hashes of short
    sentences can be guessed."""

    scope: Scope
    key: bytes = field(repr=False)

    def entry(self, row: int, text: str, private: bool, suspicious: bool, label: str | None) -> bytes | None:
        """The entry of a record, or None out of scope. suspicious: π_c still marks something in it."""
        inside = {"suspicious": private and suspicious, "private": private, "all": True, "none": False}[self.scope]
        if not inside or text == MASK:
            return None
        whole = f"-{text}" if label is None else f"{len(label)}:{label}{text}"
        digest = hashlib.blake2b(
            whole.encode("utf-8", "surrogatepass"), digest_size=16, key=self.key, salt=b"p" * private
        ).digest()
        return digest + row.to_bytes(4, "little") + (not private).to_bytes(4, "little")


def copies(
    parts: Sequence[Path | bytes], rows: Sequence[int], scratch: Path | None = None
) -> tuple[list[npt.NDArray[np.bool_]], int]:
    """(for each part, which of its rows are copies; how many of these are public).

    parts: entries of each piece in corpus order, as a file or in memory. rows: records in each. scratch: a folder for
    files, which are removed; without one all entries are sorted at once. With one, holds one byte a record, and a million
    entries at a time up to 4·10⁹ of them.
    """
    before = np.concatenate([[0], np.cumsum(np.asarray(rows, dtype=np.int64))])
    copied = np.zeros(int(before[-1]), dtype=np.bool_)
    arrays = [_entries(part) for part in parts]
    files = min(_FILES, -(-sum(map(len, arrays)) // _AT_ONCE))
    groups = iter([_moved(arrays, before)]) if scratch is None or files < 2 else _dealt(arrays, before, files, scratch)
    public = 0
    for chosen in groups:
        order = np.lexsort((chosen["row"], chosen["low"], chosen["high"]))
        ordered = chosen[order]
        again = (ordered["high"][1:] == ordered["high"][:-1]) & (ordered["low"][1:] == ordered["low"][:-1])
        found = ordered[1:][again]
        copied[found["row"].astype(np.int64)] = True
        public += int(found["public"].sum())
    return [copied[a:b] for a, b in pairwise(before)], public


_GLOBAL = np.dtype([("high", "<u8"), ("low", "<u8"), ("row", "<u8"), ("public", "<u4")])


def _moved(arrays: Sequence[Any], starts: Any) -> Any:
    """Entries of several pieces with row numbers of the whole corpus."""
    moved = np.empty(sum(map(len, arrays)), dtype=_GLOBAL)
    at = 0
    for array, start in zip(arrays, starts, strict=False):
        here = moved[at : at + len(array)]
        for name in ("high", "low", "public"):
            here[name] = array[name]
        here["row"] = array["row"].astype(np.uint64) + np.uint64(start)
        at += len(array)
    return moved


def _dealt(arrays: Sequence[Any], before: Any, files: int, folder: Path) -> Iterator[Any]:
    """Entries in groups by the remainder of their digest, through as many files."""
    paths = [folder / f"digests-{number:04d}" for number in range(files)]
    for path in paths:
        create(path).close()  # nothing that an interrupted run left is read
    for some, starts in _lots(arrays, before):
        entries = _moved(some, starts)
        group = (entries["high"] % np.uint64(files)).astype(np.int64)
        order = np.argsort(group, kind="stable")
        borders = np.searchsorted(group[order], np.arange(files + 1))
        for path, (a, b) in zip(paths, pairwise(borders), strict=True):
            if a < b:
                with path.open("ab") as handle:
                    handle.write(entries[order[a:b]].tobytes())
    for path in paths:
        yield np.fromfile(path, dtype=_GLOBAL)
        path.unlink()


def _lots(arrays: Sequence[Any], before: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """Pieces, and stretches of long ones, with the first row of each, of about ``_DEALT`` entries together."""
    some: list[Any] = []
    starts: list[Any] = []
    size = 0
    for array, start in zip(arrays, before, strict=False):
        for at in range(0, len(array), _DEALT):
            some.append(array[at : at + _DEALT])
            starts.append(start)
            size += len(some[-1])
            if size >= _DEALT:
                yield some, starts
                some, starts, size = [], [], 0
    if some:
        yield some, starts


def _entries(part: Path | bytes) -> Any:
    if isinstance(part, bytes):
        return np.frombuffer(part, dtype=ENTRY)
    if not part.stat().st_size:
        return np.empty(0, dtype=ENTRY)
    return np.memmap(part, dtype=ENTRY, mode="r")
