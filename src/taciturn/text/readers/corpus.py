"""A corpus: files (or documents in memory) with the options to read them; iterating streams, and may be repeated."""

from __future__ import annotations

import difflib
import glob
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from taciturn.errors import DataError, UsageError, nearest
from taciturn.text.document import Document
from taciturn.text.readers import formats, tables
from taciturn.text.readers.documents import checked, document
from taciturn.text.readers.files import digest
from taciturn.text.readers.items import BadRecord, Blank, MissingField, Quarantined, ReadOptions, Row

MEMORY = "memory"
FORMATS: Mapping[str, formats.Reader] = {
    "text": formats.text,
    "lines": formats.text_lines,
    "jsonl": formats.jsonl,
    "json": formats.json_list,
    "csv": tables.delimited,
    "tsv": tables.delimited,
    "parquet": tables.parquet,
    "datasets": tables.dataset,
}
EXTENSIONS = {
    ".txt": "text", ".text": "text", ".md": "text", ".log": "text",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip


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
        tally = _Tally()
        ids: dict[str, int] = {}
        for where, item in self._held_items() if self.held is not None else self._file_items(tally):
            if isinstance(item, Document):
                tally.documents += 1
                item = self._unique_id(item, ids, where)
            elif isinstance(item, Quarantined):
                tally.quarantined += 1
            yield item
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
        for path, name in zip(self.paths, _names(self.paths), strict=True):
            if path.is_dir():
                inside = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("cache-"))
                digests |= {f"{name}/{p.relative_to(path).as_posix()}": digest(p) for p in inside}
            else:
                digests[name] = digest(path)
        return digests

    def _held_items(self) -> Iterator[tuple[str, Document | Quarantined | Blank]]:
        for number, each in enumerate(self.held or (), 1):
            where = f"record {number}"
            try:
                yield where, checked(each, self.options) or Blank(MEMORY, where)
            except BadRecord as bad:
                yield where, Quarantined(MEMORY, where, bad.reason)

    def _file_items(self, tally: _Tally) -> Iterator[tuple[str, Document | Quarantined | Blank]]:
        names = _names(self.paths)
        stems = [_stem(name) for name in names]
        for path, name, stem in zip(self.paths, names, stems, strict=True):
            prefix = stem if stems.count(stem) == 1 else name
            for item in FORMATS[_format(path, name, self.options)](path, name, self.options):
                if not isinstance(item, Row):
                    yield "", item
                    continue
                where = f"{name}, {item.location}"
                try:
                    yield where, document(item, f"{prefix}:{item.number}", self.options) or Blank(name, item.location)
                except BadRecord as bad:
                    if isinstance(bad, MissingField):
                        tally.lacks(bad)
                    yield where, Quarantined(name, item.location, bad.reason)

    def _unique_id(self, item: Document, ids: dict[str, int], where: str) -> Document:
        if item.id not in ids:
            ids[item.id] = 1
            return item
        if self.options.duplicate_ids == "error":
            raise DataError(
                f"{where}: its id was used by an earlier record; make ids unique or set duplicate_ids='suffix'"
            )
        while True:
            ids[item.id] += 1
            name = f"{item.id}~{ids[item.id]}"
            if name not in ids:
                ids[name] = 1
                return replace(item, id=name)


@dataclass(slots=True)
class _Tally:
    """Enough about one pass to tell an empty corpus and a misspelt field name from a few bad lines."""

    documents: int = 0
    quarantined: int = 0
    lacking: dict[str, int] = field(default_factory=dict)
    shared: frozenset[str] | None = None

    def lacks(self, bad: MissingField) -> None:
        self.lacking[bad.field] = self.lacking.get(bad.field, 0) + 1
        self.shared = bad.names if self.shared is None else self.shared & bad.names

    def check(self, names: list[str]) -> None:
        if self.documents:
            return
        if not self.quarantined:
            raise DataError(f"the corpus is empty: no document in {', '.join(names[:5])}")
        wanted, count = max(self.lacking.items(), key=lambda item: item[1], default=("", 0))
        if count == self.quarantined:
            # Names that look like names: a file without a header line, or an object keyed by people, shows none.
            shown = sorted(
                name for name in self.shared or () if re.fullmatch(r"[A-Za-z][A-Za-z_.-]{0,31}\d{0,2}", name)
            )
            hidden = len(self.shared or ()) - len(shown[:20])
            there = f"; fields there: {', '.join(shown[:20]) or 'none to show'}" + (
                f" and {hidden} more" * (hidden > 0)
            )
            hint = f" ({nearest(wanted, shown)})" if difflib.get_close_matches(wanted, shown, n=1) else ""
            raise DataError(f"none of the {count} records has a field '{wanted}'{there}{hint}")


def _expand(pattern: str) -> list[Path]:
    path = Path(pattern)
    if path.exists():
        return [path]
    if not glob.has_magic(pattern):
        raise DataError(f"no such file: {pattern}")
    found = [Path(match) for match in sorted(glob.glob(pattern, recursive=True))]
    found = [match for match in found if match.is_file() or _is_dataset(match)]
    if not found:
        raise DataError(f"no file matches {pattern}")
    return found


def _is_dataset(path: Path) -> bool:
    return (path / "dataset_dict.json").is_file() or (path / "state.json").is_file()


def _format(path: Path, name: str, options: ReadOptions) -> str:
    if path.is_dir():
        if _is_dataset(path) and options.format in ("auto", "datasets"):
            return "datasets"
        raise DataError(f"{name} is a folder; name files in it ('{name}/*.jsonl') or a dataset written by save_to_disk")
    if options.format != "auto":
        return options.format
    extension = Path(name.removesuffix(".gz")).suffix.lower()
    if extension not in EXTENSIONS:
        what = f"its extension '{extension}' says nothing" if extension else "it has no extension"
        raise DataError(f"cannot tell the format of {name}: {what}; format='text' reads it as plain text")
    return EXTENSIONS[extension]


def _names(paths: tuple[Path, ...]) -> list[str]:
    """File names; where two are alike, paths below the folder all files share."""
    names = [path.name for path in paths]
    if len(set(names)) == len(names):
        return names
    resolved = [path.resolve() for path in paths]
    root = os.path.commonpath([path.parent for path in resolved])
    return [path.relative_to(root).as_posix() for path in resolved]


def _stem(name: str) -> str:
    return str(Path(name.removesuffix(".gz")).with_suffix(""))
