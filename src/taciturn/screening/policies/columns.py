"""Columns of a table of secrets: CSV, TSV, Parquet, JSON lines. Strict: a cell that is lost is a secret not found."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import orjson

from taciturn.errors import DataError, UsageError, nearest

SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson")
_LONGEST_CELL = 1 << 24
_PLAIN_NUMBER = re.compile(r"\s*(?:[-+]?\d{0,5}(?:\.\d*)?|true|false)\s*", re.IGNORECASE)


def names(path: Path, wanted: Sequence[str]) -> tuple[str, ...]:
    """The columns to use: ``wanted``, or else all that hold text. In CSV, where all is text, those are the columns with a
    cell that is no number, or one of six digits and more. Raises UsageError: there is no such column."""
    known = _all(path)
    for name in wanted:
        if name not in known:
            raise UsageError(f"{path.name} has no column '{name}'; {nearest(name, known)}")
    chosen = tuple(wanted) or tuple(n for n in known if n in _text(path, known))
    if not chosen:
        raise UsageError(f"{path.name} has no column with text in it; name the columns after a '#'")
    return chosen


def cells(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, str]]:
    """(number of the column, cell), row by row; empty ones and nulls left out."""
    if path.suffix.lower() == ".parquet":
        with _guarded(path):
            for batch in _parquet(path).iter_batches(columns=list(columns)):
                for number, name in enumerate(columns):
                    for value in batch.column(name).to_pylist():
                        if isinstance(value, list | dict | bytes):
                            raise DataError(f"{path.name}: '{name}' is a {type(value).__name__}, not text")
                        if value is not None:
                            yield number, str(value)
    elif path.suffix.lower() in (".jsonl", ".ndjson"):
        for line, row in _objects(path):
            for number, name in enumerate(columns):
                value = row.get(name)
                if isinstance(value, str | int | float):
                    yield number, str(value)
                elif value is not None:
                    raise DataError(f"{path.name}, line {line}: '{name}' is a {type(value).__name__}, not text")
    else:
        table = _rows(path)
        header = next(table)
        places = [header.index(name) for name in columns]
        for of_row in table:
            for number, place in enumerate(places):
                if of_row[place]:
                    yield number, of_row[place]


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """(0, line): only LF and CRLF end one."""
    with _opened(path) as file:
        for line in file:
            yield 0, line.removesuffix("\n").removesuffix("\r")


def _all(path: Path) -> list[str]:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"values: {path.name} is none of {', '.join(SUFFIXES)}; wordlist: takes one value a line")
    if suffix == ".parquet":
        with _guarded(path):
            return list(_parquet(path).schema_arrow.names)
    if suffix in (".jsonl", ".ndjson"):
        return list(dict.fromkeys(name for _, row in _objects(path) for name in row))
    header = next(_rows(path), [])
    for name in header:
        if header.count(name) > 1:
            raise DataError(f"{path.name} has more than one column '{name}'; rename one")
    return header


def _text(path: Path, known: Sequence[str]) -> set[str]:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        import pyarrow.types as types

        with _guarded(path):
            return {f.name for f in _parquet(path).schema_arrow if types.is_string(_plain(f.type)) or _large(f.type)}
    if suffix in (".jsonl", ".ndjson"):
        return {name for _, row in _objects(path) for name, value in row.items() if isinstance(value, str)}
    rows = _rows(path)
    next(rows, None)
    found: set[str] = set()
    for row in rows:
        found |= {n for n, cell in zip(known, row, strict=True) if n not in found and not _PLAIN_NUMBER.fullmatch(cell)}
    return found


def _plain(kind: Any) -> Any:
    import pyarrow.types as types

    return kind.value_type if types.is_dictionary(kind) else kind


def _large(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_large_string(_plain(kind)) or types.is_string_view(_plain(kind)))


def _rows(path: Path) -> Iterator[list[str]]:
    """The header, then rows of as many cells."""
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    with _opened(path) as file:
        first = file.readline()
        file.seek(0)
        tab = path.suffix.lower() == ".tsv"
        delimiter = "\t" if tab else "," if "," in first else max(",\t;|", key=first.count)
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            header = next(reader, [])
            yield [name.strip() for name in header]
            for row in reader:
                if len(row) == len(header):
                    yield row
                elif row:
                    raise DataError(
                        f"{path.name}, line {reader.line_num}: {len(row)} cells, the header has {len(header)}; mend it"
                    )
        except csv.Error:
            raise DataError(f"{path.name}, line {reader.line_num}: a quote is not closed or not doubled") from None


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, (_, line) in enumerate(lines(path), 1):
        if line.strip():
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                raise DataError(f"{path.name}, line {number}: not valid JSON") from None
            if not isinstance(row, dict):
                raise DataError(f"{path.name}, line {number}: not a JSON object")
            yield number, row


def _parquet(path: Path) -> Any:
    import pyarrow.parquet as parquet

    return parquet.ParquetFile(path)


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    with _guarded(path), path.open(encoding="utf-8-sig", newline="\n") as file:
        yield file


@contextmanager
def _guarded(path: Path) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except UnicodeDecodeError:
        raise DataError(f"{path.name} is not UTF-8; convert it (iconv -t UTF-8)") from None
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path.name} cannot be read ({type(error).__name__})") from None
