"""Data sets by name ("hf:owner/name#train"), as ``datasets.load_dataset`` finds them: on the hub, or a folder of files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taciturn.errors import DataError, MissingExtra, UsageError, nearest
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.files import digest
from taciturn.text.readers.formats import Item
from taciturn.text.readers.held import File
from taciturn.text.readers.tables import BATCH, column_rows, wanted_columns

PREFIX = "hf:"


def named(path: str | os.PathLike[str]) -> bool:
    return os.fspath(path).startswith(PREFIX)


def hub(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """Rows of one split, streamed: "hf:NAME", "hf:NAME#SPLIT" or "hf:NAME:CONFIG#SPLIT".

    Raises DataError when it cannot be loaded, UsageError when there are several splits and none is named.
    """
    where, config, split = _parts(path)
    datasets = _datasets()
    with _loading(where):
        loaded = datasets.load_dataset(where, config, streaming=True)
    if split is None and len(loaded) > 1:
        raise UsageError(f"{name} has the splits {', '.join(sorted(loaded))}; name one: {path}#{min(loaded)}")
    if split is not None and split not in loaded:
        raise UsageError(f"{name} has no split '{split}'; {nearest(split, loaded)}")
    rows = loaded[split if split is not None else next(iter(loaded))]
    number = 0
    with _loading(where):
        wanted = wanted_columns(rows.column_names or (), options)
        chosen = rows.select_columns(wanted) if wanted else rows
        for table in chosen.with_format("arrow").iter(batch_size=BATCH):
            for batch in table.to_batches():
                yield from column_rows(batch, name, number)
                number += batch.num_rows


def identity(path: Path) -> str:
    """What the content of a named data set is known by: digests of a folder's files, or the hub's revision of each file."""
    where, config, _ = _parts(path)
    content = hashlib.sha256()
    if Path(where).is_dir():
        for each in sorted(p for p in Path(where).rglob("*") if p.is_file()):
            content.update(f"{each.relative_to(where).as_posix()}\0{digest(each)}\0".encode())
        return content.hexdigest()
    datasets = _datasets()
    with _loading(where):
        builder = datasets.load_dataset_builder(where, config)
        files = builder.config.data_files or {}
        parts = [
            builder.hash,
            *sorted((str(s), sorted(map(str, f)), repr(f.origin_metadata)) for s, f in files.items()),
        ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _parts(path: File) -> tuple[str, str | None, str | None]:
    where, _, split = str(path).removeprefix(PREFIX).partition("#")
    where, _, config = where.partition(":")
    if not where:
        raise UsageError("'hf:' needs the name of a data set: hf:owner/name#train")
    return where, config or None, split or None


def _datasets() -> Any:
    try:
        import datasets
    except ImportError:
        raise MissingExtra("datasets", "datasets") from None
    return datasets


@contextmanager
def _loading(where: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the hub, the network and every file format have errors of their own
        raise DataError(
            f"cannot load the data set '{where}' ({type(error).__name__}): no such data set, no network, or files it cannot "
            "read; where there is no network, download it and name its folder"
        ) from None
