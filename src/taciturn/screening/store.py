"""Where rows go: Parquet shards in a folder that appears whole or not at all, or a table in memory."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import pyarrow as pa
import pyarrow.parquet as pq

from taciturn.errors import DataError, MismatchError
from taciturn.screening.manifest import Manifest, Shard
from taciturn.screening.screened import MANIFEST, ScreenedCorpus

_RECORDS: dict[str, Any] = {
    "ordinal": pa.int64(),
    "id": pa.string(),
    "document_id": pa.string(),
    "user": pa.string(),
    "part": pa.string(),
    "label": pa.string(),
    "redacted": pa.string(),
    "duplicate": pa.bool_(),
    "suspicious": pa.bool_(),
    "skeleton": pa.string(),
}
# Offsets come in pairs, start and end: stable in ``original``, suspects in ``redacted`` (see rows.Row).
_ORIGINALS: dict[str, Any] = {
    "ordinal": pa.int64(),
    "original": pa.string(),
    "stable": pa.list_(pa.int32()),
    "suspects": pa.list_(pa.int32()),
}
RECORDS, ORIGINALS = pa.schema(_RECORDS), pa.schema(_ORIGINALS)
SHARD_ROWS = 1 << 17


class Store:
    """A context: add rows, then finish. Whatever ends it early leaves nothing behind.

    out: the folder to make (mode 0700, files 0600, written beside it and renamed into place), or None for memory.
    Raises DataError if ``out`` exists and is not a screened corpus, MismatchError on finish if it is another one.
    """

    def __init__(self, out: Path | None, originals: bool) -> None:
        self._out = None if out is None else Path(os.path.abspath(out))
        self._kinds = {"records": RECORDS} | ({"originals": ORIGINALS} if originals else {})
        self._tables: dict[str, list[pa.Table]] = {kind: [] for kind in self._kinds}
        self._shards: list[Shard] = []
        self._rows, self._number = 0, 0
        self._writers: dict[str, tuple[Path, BinaryIO, Any]] = {}
        self._temporary: Path | None = None

    def __enter__(self) -> Self:
        if self._out is None:
            return self
        if self._out.exists() and not (
            self._out.is_dir() and (not any(self._out.iterdir()) or (self._out / MANIFEST).is_file())
        ):
            raise DataError(f"'{self._out.name}' exists and is not a screened corpus; choose another folder")
        self._temporary = self._out.parent / f".{self._out.name}.{os.getpid()}.tmp"
        self._out.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self._temporary, ignore_errors=True)
        for folder in (self._temporary, *(self._temporary / kind for kind in self._kinds)):
            folder.mkdir(mode=0o700)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _, handle, _ in self._writers.values():
            handle.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def add(self, rows: Sequence[dict[str, Any]]) -> None:
        """Append rows; a shard closes once it holds 131,072."""
        for kind, schema in self._kinds.items():
            table = pa.table({name: [row[name] for row in rows] for name in schema.names}, schema=schema)
            if self._temporary is None:
                self._tables[kind].append(table)
                continue
            if kind not in self._writers:
                path = self._temporary / kind / f"part-{self._number:05d}.parquet"
                handle = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
                self._writers[kind] = path, handle, pq.ParquetWriter(handle, schema, compression="zstd")
            self._writers[kind][2].write_table(table)
        self._rows += len(rows)
        if self._rows >= SHARD_ROWS:
            self._close()

    def finish(self, manifest: Manifest) -> ScreenedCorpus:
        """The screened corpus, on disk if there is a folder for it."""
        if self._temporary is None or self._out is None:
            whole = {k: pa.concat_tables(t) if t else self._kinds[k].empty_table() for k, t in self._tables.items()}
            return ScreenedCorpus(manifest, whole["records"], None, whole.get("originals"))
        self._close()
        manifest = manifest.model_copy(update={"shards": tuple(self._shards)})
        path = self._temporary / MANIFEST
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handle:
            handle.write(manifest.to_json())
            _sync(handle)
        for folder in (*(self._temporary / kind for kind in self._kinds), self._temporary):
            _sync_folder(folder)
        if (self._out / MANIFEST).is_file() and Manifest.read(self._out / MANIFEST).key != manifest.key:
            raise MismatchError(f"'{self._out.name}' holds another screened corpus; remove it or choose another folder")
        if self._out.exists():
            shutil.rmtree(self._out)
        os.rename(self._temporary, self._out)
        _sync_folder(self._out.parent)
        return ScreenedCorpus.load(self._out)

    def _close(self) -> None:
        for kind, (path, handle, writer) in self._writers.items():
            writer.close()
            _sync(handle)
            handle.close()
            self._shards.append(Shard(path=f"{kind}/{path.name}", rows=self._rows, digest=file_digest(path)))
        self._writers.clear()
        self._rows, self._number = 0, self._number + 1


def file_digest(path: Path) -> str:
    """BLAKE2b-256 of a file, hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


def _sync(handle: BinaryIO) -> None:
    handle.flush()
    os.fsync(handle.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
