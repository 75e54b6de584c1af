"""A corpus: files (or documents in memory) with the options to read them; iterating streams, and may be repeated."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from taciturn.errors import DataError, UsageError
from taciturn.text.document import Document
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers import (
    docbin,
    formats,
    hub,
    in_memory,
    mailbox,
    markup,
    notebooks,
    office,
    outlook,
    pdf,
    richtext,
    slack,
    spreadsheets,
    subtitles,
    tables,
    vcard,
    whatsapp,
)
from taciturn.text.readers.archives import members
from taciturn.text.readers.detect import ARCHIVE, format_of
from taciturn.text.readers.documents import checked, documents
from taciturn.text.readers.held import Held
from taciturn.text.readers.items import BadRecord, Blank, LeftOut, MissingField, Quarantined, Row
from taciturn.text.readers.pieces import Piece, Stretch, grouped, line_stretches, numbered, piece_size, together
from taciturn.text.readers.sources import WHOLE, Source, readable, sources
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
    "docx": office.docx,
    "pptx": office.pptx,
    "xlsx": spreadsheets.xlsx,
    "pdf": pdf.pdf,
    "rtf": richtext.rtf,
    "ipynb": notebooks.ipynb,
    "xml": markup.xml,
    "subtitles": subtitles.subtitles,
    "msg": outlook.msg,
    "spacy": docbin.spacy,
}
STRETCHES = {"lines": formats.text_lines, "jsonl": formats.jsonl, "parquet": tables.parquet}


def read(*data: str | os.PathLike[str] | Iterable[Any], **options: Any) -> Corpus:
    """A corpus of files, in the order given; a glob stands for its matches, sorted, and a file named twice is read once.

    A folder stands for every file in it and below, an archive (.zip, .tar.gz) for every file in it, "-" for standard input.
    In the place of files one thing in memory: a list or generator of texts or dictionaries, a frame of pandas or polars, a
    dataset (in_memory.py). options: see ReadOptions. Raises UsageError for an unknown option, DataError for a path that is
    not there.

        corpus = read("mail/*.jsonl", text="body", user="sender")
        corpus = read(frame, text="body", user="sender")
    """
    chosen = ReadOptions.of(options)
    if not data:
        raise UsageError("nothing to read: name at least one file, or give rows")
    paths = [each for each in data if isinstance(each, str | os.PathLike)]
    if len(paths) == len(data):
        return Corpus(sources(paths, chosen), chosen)
    if len(data) > 1:
        raise UsageError(
            f"read: found {len(data)} things that are not all names of files; rows are read from one of them"
        )
    return Corpus((), chosen, tuple(in_memory.rows(data[0], chosen.text)))


@dataclass(frozen=True, slots=True)
class Corpus:
    """Where documents come from. ``items`` streams them with what was skipped; ``documents`` insists on all of them."""

    sources: tuple[Source, ...] = ()
    options: ReadOptions = field(default_factory=ReadOptions)
    held: tuple[Document | Row, ...] | None = field(default=None, repr=False)

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
        for where, item in self._held_items(piece, tally) if piece.file is None else self._file_items(piece, tally):
            tally.documents += isinstance(item, Document)
            tally.quarantined += isinstance(item, Quarantined)
            yield where, item

    def whole(self) -> list[Piece]:
        """One piece a file, or one for all documents in memory."""
        if self.held is not None:
            return [Piece(0, None, None, len(self.held))]
        return numbered((i, None, source.size) for i, source in enumerate(self.sources))

    def pieces(self) -> tuple[list[Piece], dict[str, str]]:
        """Small pieces in corpus order, and ``digests()``; reads every file once."""
        if self.held is not None:
            held = len(self.held)
            parts = [
                (None, Stretch(at, min(at + _HELD, held), at), min(_HELD, held - at)) for at in range(0, held, _HELD)
            ]
            return numbered(iter(parts)), self.digests()
        sizes = [source.size for source in self.sources]
        size = piece_size(sum(sizes))
        found: list[tuple[int | None, Stretch | None, int]] = []
        digests: dict[str, str] = {}
        for number, source in enumerate(self.sources):
            stretches, new = self._stretches(source, sizes[number], size)
            digests |= new
            found += [(number, stretch, bytes_) for stretch, bytes_ in stretches] or [(number, None, sizes[number])]
        return together(found, [source.folder is not None for source in self.sources], size), digests

    def _stretches(self, source: Source, whole: int, size: int) -> tuple[list[tuple[Stretch, int]], dict[str, str]]:
        """Where a file is cut, the bytes of each part, and its digests. Reading says what is wrong with what was found."""
        path, name = source.path, source.name
        if source.left_out or isinstance(path, Held):
            return [], source.digests()
        try:
            readable(source)
            kind = format_of(path, name, self.options)
            if kind in ("lines", "jsonl") and whole > size:
                stretches, sha = line_stretches(path, name, size, self.options.encoding)
                return [(each, each.end - each.start) for each in stretches], {name: sha}
            groups = grouped(path, name, size) if kind == "parquet" else []
            return [(each, whole // len(groups)) for each in groups], source.digests()
        except DataError:
            if source.folder is None:
                raise
            return [], source.digests()

    def check(self, tally: Tally) -> None:
        """DataError if there was no document at all."""
        tally.check([source.name for source in self.sources] or [MEMORY])

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
                if isinstance(each, Row):
                    content.update(repr(each.value).encode("utf-8", "backslashreplace"))
                    continue
                gold = [(s.start, s.end, s.label) for s in each.gold]
                turns = [(t.start, t.end, t.speaker) for t in each.turns]
                parts = [each.id, each.text, each.user, turns, gold, each.private_because, each.label]
                content.update(repr(parts).encode())
            return {MEMORY: content.hexdigest()}
        digests: dict[str, str] = {}
        for source in self.sources:
            digests |= source.digests()
        return digests

    def _held_items(self, piece: Piece, tally: Tally) -> Iterator[tuple[str, Document | Quarantined | Blank]]:
        start, end, _ = piece.stretch or Stretch(0, len(self.held or ()), 0)
        for number, each in enumerate((self.held or ())[start:end], start + 1):
            where = f"record {number}"
            if isinstance(each, Row):
                yield from self._row_items(MEMORY, where, each, f"{MEMORY}:{number}", tally)
                continue
            try:
                yield where, checked(each, self.options) or Blank(MEMORY, where)
            except BadRecord as bad:
                yield where, Quarantined(MEMORY, where, bad.reason)

    def _row_items(
        self, name: str, where: str, row: Row, default_id: str, tally: Tally
    ) -> Iterator[tuple[str, Document | Quarantined | Blank]]:
        """What a row becomes: documents, or a quarantined record. where: its place; name: its file."""
        try:
            for found in documents(row, default_id, self.options):
                yield where, found or Blank(name, row.location)
        except LeftOut as out:
            yield where, Blank(name, row.location, out.what)
        except BadRecord as bad:
            if isinstance(bad, MissingField):
                tally.lacks(bad)
            yield where, Quarantined(name, row.location, bad.reason)

    def _file_items(self, piece: Piece, tally: Tally) -> Iterator[tuple[str, Document | Quarantined | Blank]]:
        number = piece.file or 0
        for source in self.sources[number : number + piece.files]:
            for name, prefix, item in rows(source, self.options, piece.stretch):
                where = f"{name}, {item.location}"
                if not isinstance(item, Row):
                    yield where, item
                    continue
                yield from self._row_items(name, where, item, f"{prefix}:{item.number}", tally)


def rows(
    source: Source, options: ReadOptions, stretch: Stretch | None = None
) -> Iterator[tuple[str, str, formats.Item]]:
    """What a source holds, or a stretch of it, each with its name and the prefix of its id: those of a member in an archive.

    Raises DataError for a source that cannot be read, if somebody named it; one that was found is quarantined.
    """
    name, prefix = source.name, source.prefix
    if source.left_out:
        yield name, prefix, Blank(name, WHOLE, source.left_out)
        return
    try:
        readable(source)
        if (kind := format_of(source.path, name, options)) == ARCHIVE:
            for member in members(source):
                if isinstance(member, Source):
                    yield from rows(member, options)
                else:
                    yield member[0], member[0], Quarantined(member[0], WHOLE, member[1])
            return
        if stretch is None:
            items = FORMATS[kind](source.path, name, options)
        else:
            items = STRETCHES[kind](source.path, name, options, stretch)
        for item in items:
            yield name, prefix, item
    except DataError as error:
        if source.folder is None:
            raise
        yield name, prefix, Quarantined(name, WHOLE, str(error).removeprefix(f"{name} is "))


def files(source: Source, options: ReadOptions) -> Iterator[Source | tuple[str, str]]:
    """The source, or the members of an archive as ``archives.members`` gives them. Raises DataError."""
    readable(source)
    if not source.left_out and format_of(source.path, source.name, options) == ARCHIVE:
        yield from members(source)
    else:
        yield source
