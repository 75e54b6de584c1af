"""Rows of tables: CSV, Parquet, and datasets saved to disk. All stream."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import Any

from taciturn.errors import DataError, MissingExtra
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.files import Line, decode, lines, opened, packed, too_long
from taciturn.text.readers.formats import Item
from taciturn.text.readers.held import File, Held
from taciturn.text.readers.items import BadRecord, Blank, Quarantined, Row
from taciturn.text.readers.pieces import Stretch
from taciturn.text.readers.remote import Remote

BATCH = 256


def delimited(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """CSV with a header line; quoted cells may hold line ends, which are kept as they are.

    Tab, semicolon or ``|`` is the delimiter when the header line has no comma. A row with more or fewer cells than the
    header is quarantined: its quotes are most likely broken.
    """
    # The limit of the csv module is process-wide and refuses cells above 128 KiB; ours is max_record_bytes.
    csv.field_size_limit(max(csv.field_size_limit(), options.max_record_bytes))
    with opened(path, name, encoding=options.encoding) as stream:
        feed = _Feed(lines(stream, options.max_record_bytes), options)
        try:
            while not (first := next(feed)).strip():
                yield Blank(name, feed.where())
                feed.begin()
            header, reader = _header(feed, first)
        except StopIteration:
            return
        except (BadRecord, csv.Error):
            raise DataError(f"the header line of {name} is not valid CSV in UTF-8") from None
        for text in (options.text, *options.texts):
            if header.count(text) > 1:
                raise DataError(f"{name} has more than one column '{text}'; rename one")
        number = 0
        while True:
            number += 1
            feed.begin()
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error:
                yield Quarantined(
                    name, feed.where(), "not valid CSV: a quote is not closed, or not doubled inside a cell"
                )
            except BadRecord as bad:
                feed.finish_row()
                yield Quarantined(name, feed.where(), bad.reason)
            else:
                if len(cells) < 2 and not "".join(cells).strip():
                    yield Blank(name, feed.where())
                elif len(cells) != len(header):
                    reason = f"the row has {len(cells)} cells, the header {len(header)}"
                    yield Quarantined(name, feed.where(), reason)
                else:
                    yield Row(number, feed.where(), dict(zip(header, cells, strict=True)), feed.private)


def _header(feed: _Feed, first: str) -> tuple[list[str], Any]:
    delimiter = "," if "," in first else max(",\t;|", key=first.count)
    feed.push_back(first)
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    return next(reader), reader


class _Feed:
    """Hands decoded lines to ``csv.reader`` and knows of the current row: its first and last line, size, quotes."""

    def __init__(self, source: Iterator[Line], options: ReadOptions) -> None:
        self._source, self._options = source, options
        self._pushed: list[str] = []
        self._line = 0
        self.begin()

    def __iter__(self) -> _Feed:
        return self

    def begin(self) -> None:
        """The next line starts a row."""
        self._first, self._size, self._open = self._line + 1, 0, False
        self.private: str | None = None

    def push_back(self, line: str) -> None:
        self._pushed.append(line)

    def where(self) -> str:
        return f"line {self._first}" if self._line <= self._first else f"lines {self._first}-{self._line}"

    def _next_line(self) -> Line:
        line = next(self._source)
        self._line = line.number
        if line.data is not None and line.data.count(b'"') % 2:
            self._open = not self._open
        return line

    def __next__(self) -> str:
        if self._pushed:
            return self._pushed.pop()
        line = self._next_line()
        limit = self._options.max_record_bytes
        if line.data is None or self._size + len(line.data) > limit:
            raise too_long(limit)
        self._size += len(line.data) + len(line.ending)
        content, private = decode(line.data, line.offset, self._options)
        self.private = self.private or private
        return content + line.ending.decode()

    def finish_row(self) -> None:
        """Skip what is left of a row that was given up inside a quoted cell."""
        while self._open:
            try:
                self._next_line()
            except StopIteration:
                return


def parquet(path: File, name: str, options: ReadOptions, stretch: Stretch | None = None) -> Iterator[Item]:
    """Rows of a Parquet file, by batches. A compressed one is unpacked in memory: the format needs random access."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if isinstance(path, Held) or packed(path):
            with opened(path, name) as stream:
                file = pq.ParquetFile(pa.BufferReader(stream.read()))
        else:
            file = pq.ParquetFile(path.open("rb", buffering=0) if isinstance(path, Remote) else path, pre_buffer=False)
        wanted = wanted_columns(file.schema_arrow.names, options)
        number = stretch.first if stretch else 0
        groups = list(range(stretch.start, stretch.end)) if stretch else None
        for batch in file.iter_batches(batch_size=BATCH, row_groups=groups, columns=wanted, use_threads=False):
            yield from column_rows(batch, name, number)
            number += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{name} is not a readable Parquet file ({type(error).__name__})") from None


def dataset(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """Rows of a folder written by ``save_to_disk``; of a dict of splits, every split in its order."""
    try:
        import datasets
    except ImportError:
        raise MissingExtra("datasets", "datasets") from None
    try:
        loaded = datasets.load_from_disk(str(path))
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{name} is not a readable saved dataset ({type(error).__name__})") from None
    splits = list(loaded.values()) if isinstance(loaded, datasets.DatasetDict) else [loaded]
    number = 0
    for rows in splits:
        wanted = wanted_columns(rows.column_names, options)
        chosen = (rows.select_columns(wanted) if wanted else rows).with_format("arrow")
        for table in chosen.iter(batch_size=BATCH):
            for batch in table.to_batches():
                yield from column_rows(batch, name, number)
                number += batch.num_rows


def wanted_columns(names: Iterable[str], options: ReadOptions) -> list[str] | None:
    """Columns to load; None for all, when the text is not among them and the error is to name what is there."""
    present = set(names)

    def column(field: str) -> str:
        return field if field in present else field.split(".")[0]

    _, chat = options.chat_fields
    if not present & {column(field) for field in chat or (options.text, *options.texts, options.turns)}:
        return None
    others = (options.user, options.id, options.spans, options.text_pair, options.label)
    fields = (options.text, *options.texts, options.turns, "dialogue_id", *chat, *others)
    return sorted(present & {column(field) for field in fields if field})


def column_rows(batch: Any, name: str, before: int) -> Iterator[Item]:
    """Arrow decodes lazily: a cell that is not UTF-8, or a date beyond Python's, must not take its whole batch along."""
    values: list[Any]
    try:
        values = batch.to_pylist()
    except (ValueError, OverflowError):
        values = []
        for at in range(batch.num_rows):
            try:
                values += batch.slice(at, 1).to_pylist()
            except UnicodeDecodeError:
                values.append("holds text that is not valid UTF-8")
            except (ValueError, OverflowError):
                values.append("holds a value that Python cannot hold; leave its column out")
    for number, value in enumerate(values, before + 1):
        if isinstance(value, str):
            yield Quarantined(name, f"row {number}", value)
        else:
            yield Row(number, f"row {number}", value)
