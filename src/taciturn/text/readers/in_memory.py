"""Rows that are in memory already: texts, dictionaries, frames of pandas and polars, tables of pyarrow, 🤗 datasets.

They are told apart by what they can do, so that none of these libraries is imported here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from taciturn.errors import DataError, UsageError
from taciturn.text.document import Document
from taciturn.text.readers.items import Row

TAKEN = (
    "a list or generator of texts, of dictionaries or of Documents, a frame of pandas or polars, a table of pyarrow, or a "
    "dataset of 🤗 datasets"
)

_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")


def rows(data: Any, text: str) -> Iterator[Row | Document]:
    """The rows of ``data`` in its order; a text is a row with the one field ``text``. Cells without a value are None.

    Raises UsageError for what has no rows, or is several tables; DataError for a row that is neither text nor fields.
    """
    for number, each in enumerate(_each(data), 1):
        where = f"record {number}"
        if isinstance(each, Document):
            yield each
        elif isinstance(each, str):
            yield Row(number, where, {text: each})
        elif isinstance(each, Mapping):
            yield Row(number, where, dict(each))
        else:
            raise DataError(f"{where}: expected a text or a dictionary of fields, found {type(each).__name__}")


def _each(data: Any) -> Iterable[Any]:
    kind = type(data).__name__
    if isinstance(data, Mapping):
        # A key may be text of somebody: only names such as those of splits and columns are shown.
        parts = [repr(name) for name in list(data)[:4] if isinstance(name, str) and _NAME.fullmatch(name)]
        raise UsageError(
            f"read: found a {kind} of {len(data)} parts{': ' * bool(parts)}{', '.join(parts)}; read one of them, as in "
            f"read(data[{parts[0] if parts else '...'}]), or rows as a list of dictionaries"
        )
    if hasattr(data, "collect") and hasattr(data, "schema") and not hasattr(data, "__iter__"):
        raise UsageError(f"read: found a {kind}, which holds no rows yet: give data.collect()")
    if hasattr(data, "itertuples") and hasattr(data, "columns"):
        names = [str(name) for name in data.columns]
        return (dict(zip(names, map(_cell, row), strict=True)) for row in data.itertuples(index=False, name=None))
    if hasattr(data, "iter_rows"):
        named: Iterable[Any] = data.iter_rows(named=True)
        return named
    if hasattr(data, "to_batches") and hasattr(data, "schema"):
        return (row for batch in data.to_batches() for row in batch.to_pylist())
    if isinstance(data, bytes | bytearray) or not hasattr(data, "__iter__"):
        raise UsageError(f"read: expected names of files, or {TAKEN}; found a {kind}")
    several: Iterable[Any] = data
    return _not_paths(data) if isinstance(data, list | tuple) else several


def _not_paths(data: list[Any] | tuple[Any, ...]) -> Iterable[Any]:
    if data and all(isinstance(each, Path) or (isinstance(each, str) and _is_file(each)) for each in data):
        raise UsageError(
            f"read: the {len(data)} entries of this {type(data).__name__} are names of files; read(*names) reads these, and "
            "Corpus.from_texts takes them as texts"
        )
    return data


def _is_file(text: str) -> bool:
    try:
        return len(text) < 4096 and "\n" not in text and Path(text).exists()
    except (OSError, ValueError):
        return False


def _cell(value: Any) -> Any:
    """None for what pandas has in empty cells (NaN, NaT, NA); its numbers and times as Python's."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, float) and value != value:
        return None
    item = getattr(value, "item", None)
    return item() if item is not None and getattr(value, "ndim", None) == 0 else value
