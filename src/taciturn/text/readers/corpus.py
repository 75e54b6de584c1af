"""A corpus: files (or documents in memory) with the options to read them; iterating streams, and may be repeated."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from taciturn.errors import DataError, UsageError
from taciturn.text.document import Document
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers import formats, hub, mailbox, markup, slack, tables, vcard, whatsapp
from taciturn.text.readers.detect import format_of, is_dataset
from taciturn.text.readers.documents import checked, document
from taciturn.text.readers.files import digest, plain_name
from taciturn.text.readers.items import BadRecord, Blank, MissingField, Quarantined, Row
from taciturn.text.readers.pieces import Piece, Stretch, grouped, line_stretches, numbered, piece_size
from taciturn.text.readers.tally import Ids, Tally

MEMORY = "memory"
_HELD = 1 << 14  # documents in memory a piece
FORMATS: Mapping[str, formats.Reader] = {
    "text": formats.text,
    "lines": formats.text_lines,
    "jsonl": formats.jsonl,
    "json": formats.json_list,
    "csv": tables.delimited,
    "tsv": tables.delimited,
    "parquet": tables.parquet,
    "datasets": tables.dataset,
    "hub": hub.hub,
    "html": markup.html,
    "eml": mailbox.eml,
    "mbox": mailbox.mbox,
    "vcard": vcard.vcard,
    "whatsapp": whatsapp.whatsapp,
    "slack": slack.slack,
}
STRETCHES = {"lines": formats.text_lines, "jsonl": formats.jsonl, "parquet": tables.parquet}


def read(*paths: str | os.PathLike[str], **options: Any) -> Corpus:
    """A corpus of files, in the order given; a glob stands for its matches, sorted, and a file named twice is read once.

    options: see ReadOptions. Raises UsageError for an unknown option, DataError for a path that is not there.

        corpus = read("mail/*.jsonl", text="body", user="sender")
    """
    chosen = ReadOptions.of(options)
    if not paths:
        raise UsageError("nothing to read: name at least one file")
    found = [path for pattern in paths for path in _expand(os.path.expanduser(os.fspath(pattern)))]
    once: dict[Path, Path] = {}
    for path in found:
        once.setdefault(path.resolve(), path)
    return Corpus(tuple(once.values()), chosen)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Where documents come from. ``items`` streams them with what was skipped; ``documents`` insists on all of them."""

    paths: tuple[Path, ...] = ()
    options: ReadOptions = field(default_factory=ReadOptions)
    held: tuple[Document, ...] | None = field(default=None, repr=False)

    @staticmethod
    def from_documents(documents: Iterable[Document], **options: Any) -> Corpus:
        """A corpus in memory, under the same checks as one from files."""
        return Corpus((), ReadOptions.of(options), tuple(documents))

    @staticmethod
    def from_texts(texts: Iterable[str], **options: Any) -> Corpus:
        """One document per text, with ids memory:1, memory:2, ..."""
        return Corpus.from_documents((Document(f"{MEMORY}:{i}", text) for i, text in enumerate(texts, 1)), **options)

    def items(self) -> Iterator[Document | Quarantined | Blank]:
        """Every record of the input as one of three things, in input order; reads the files anew each time.

        Raises DataError for a file that cannot be read at all, for a repeated id (duplicate_ids="error"), and at the end
        when there was no document: nothing in the input, or a field name that no record has.
        """
        tally = Tally()
        ids = Ids(self.options.duplicate_ids)
        for piece in self.whole():
            for where, item in self.read(piece, tally):
                if isinstance(item, Document) and (name := ids.unique(item.id, where)) != item.id:
                    item = replace(item, id=name)
                yield item
        self.check(tally)

    def read(self, piece: Piece, tally: Tally) -> Iterator[tuple[str, Document | Quarantined | Blank]]:
        """What a piece holds, each with its place ("mail.jsonl, line 12"), counted into ``tally``. Ids may repeat."""
        for where, item in self._held_items(piece) if piece.file is None else self._file_items(piece, tally):
            tally.documents += isinstance(item, Document)
            tally.quarantined += isinstance(item, Quarantined)
            yield where, item

    def whole(self) -> list[Piece]:
        """One piece a file, or one for all documents in memory."""
        if self.held is not None:
            return [Piece(0, None, None, len(self.held))]
        return numbered((i, None, _size(path)) for i, path in enumerate(self.paths))

    def pieces(self) -> tuple[list[Piece], dict[str, str]]:
        """Small pieces in corpus order, and ``digests()``; reads every file once."""
        if self.held is not None:
            held = len(self.held)
            parts = [
                (None, Stretch(at, min(at + _HELD, held), at), min(_HELD, held - at)) for at in range(0, held, _HELD)
            ]
            return numbered(iter(parts)), self.digests()
        size = piece_size(sum(map(_size, self.paths)))
        found: list[tuple[int, Stretch | None, int]] = []
        digests: dict[str, str] = {}
        for number, (path, name) in enumerate(zip(self.paths, names(self.paths), strict=True)):
            kind = format_of(path, name, self.options)
            stretches: list[Stretch] = []
            if kind in ("lines", "jsonl"):
                stretches, digests[name] = line_stretches(path, name, size)
                found += [(number, stretch, stretch.end - stretch.start) for stretch in stretches]
            else:
                digests |= _digests(path, name)
                stretches = grouped(path, name, size) if kind == "parquet" else []
                found += [(number, stretch, _size(path) // len(stretches)) for stretch in stretches]
            if not stretches:
                found.append((number, None, _size(path)))
        return numbered(iter(found)), digests

    def check(self, tally: Tally) -> None:
        """DataError if there was no document at all."""
        tally.check([str(p.name) for p in self.paths] or [MEMORY])

    def documents(self) -> list[Document]:
        """All documents, blank ones left out. Raises DataError if any record is quarantined."""
        documents: list[Document] = []
        bad: list[Quarantined] = []
        for item in self.items():
            if isinstance(item, Document):
                documents.append(item)
            elif isinstance(item, Quarantined):
                bad.append(item)
        if bad:
            first = bad[0]
            raise DataError(
                f"{len(bad)} of {len(bad) + len(documents)} records cannot be read; "
                f"the first: {first.source}, {first.location}: {first.reason}"
            )
        return documents

    def digests(self) -> dict[str, str]:
        """SHA-256 of each input file by name, or of the content of a corpus in memory: what its key is made from."""
        if self.held is not None:
            content = hashlib.sha256()
            for each in self.held:
                gold = [(s.start, s.end, s.label) for s in each.gold]
                turns = [(t.start, t.end, t.speaker) for t in each.turns]
                parts = [each.id, each.text, each.user, turns, gold, each.private_because, each.label]
                content.update(repr(parts).encode())
            return {MEMORY: content.hexdigest()}
        digests: dict[str, str] = {}
        for path, name in zip(self.paths, names(self.paths), strict=True):
            digests |= _digests(path, name)
        return digests

    def _held_items(self, piece: Piece) -> Iterator[tuple[str, Document | Quarantined | Blank]]:
        start, end, _ = piece.stretch or Stretch(0, len(self.held or ()), 0)
        for number, each in enumerate((self.held or ())[start:end], start + 1):
            where = f"record {number}"
            try:
                yield where, checked(each, self.options) or Blank(MEMORY, where)
            except BadRecord as bad:
                yield where, Quarantined(MEMORY, where, bad.reason)

    def _file_items(self, piece: Piece, tally: Tally) -> Iterator[tuple[str, Document | Quarantined | Blank]]:
        every = names(self.paths)
        stems = [_stem(name) for name in every]
        number = piece.file or 0
        path, name, stem = self.paths[number], every[number], stems[number]
        prefix = stem if stems.count(stem) == 1 else name
        kind = format_of(path, name, self.options)
        if piece.stretch is None:
            items = FORMATS[kind](path, name, self.options)
        else:
            items = STRETCHES[kind](path, name, self.options, piece.stretch)
        for item in items:
            if not isinstance(item, Row):
                yield f"{name}, {item.location}", item
                continue
            where = f"{name}, {item.location}"
            try:
                yield where, document(item, f"{prefix}:{item.number}", self.options) or Blank(name, item.location)
            except BadRecord as bad:
                if isinstance(bad, MissingField):
                    tally.lacks(bad)
                yield where, Quarantined(name, item.location, bad.reason)


def _expand(pattern: str) -> list[Path]:
    path = Path(pattern)
    if path.exists() or hub.named(pattern):
        return [path]
    if not glob.has_magic(pattern):
        raise DataError(f"no such file: {pattern}")
    found = [Path(match) for match in sorted(glob.glob(pattern, recursive=True))]
    found = [match for match in found if match.is_file() or is_dataset(match)]
    if not found:
        raise DataError(f"no file matches {pattern}")
    return found


def names(paths: tuple[Path, ...]) -> list[str]:
    """File names; where two are alike, paths below the folder all files share."""
    found = [path.name or path.resolve().name or str(path) for path in paths]
    if len(set(found)) == len(found):
        return found
    resolved = [path.resolve() for path in paths]
    root = os.path.commonpath([path.parent for path in resolved])
    return [path.relative_to(root).as_posix() for path in resolved]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
    except OSError as error:
        raise DataError(f"cannot read {path.name}: {error.strerror or type(error).__name__}") from None


def _digests(path: Path, name: str) -> dict[str, str]:
    if hub.named(path):
        return {name: hub.identity(path)}
    if not path.is_dir():
        return {name: digest(path)}
    inside = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("cache-"))
    return {f"{name}/{p.relative_to(path).as_posix()}": digest(p) for p in inside}


def _stem(name: str) -> str:
    return str(Path(plain_name(name)).with_suffix(""))
