"""Where the rows of one piece go: Parquet files that appear whole or not at all, or tables in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from taciturn.screening.corpus.manifest import Shard, file_digest
from taciturn.screening.rows import Row
from taciturn.text.atomic import create

_RECORDS: dict[str, Any] = {
    "id": pa.string(),
    "document_id": pa.string(),
    "user": pa.string(),
    "part": pa.string(),
    "label": pa.string(),
    "redacted": pa.string(),
    "suspicious": pa.bool_(),
    "skeleton": pa.string(),
}
# Offsets come in pairs, start and end: stable and behind in ``original``, suspects in ``redacted`` (see rows.Row).
_ORIGINALS: dict[str, Any] = {
    "original": pa.string(),
    "stable": pa.list_(pa.int32()),
    "behind": pa.list_(pa.int32()),
    "stands": pa.bool_(),
    "suspects": pa.list_(pa.int32()),
    "entities": pa.list_(pa.string()),
}
RECORDS, ORIGINALS = pa.schema(_RECORDS), pa.schema(_ORIGINALS)
_REPEATED = ["user", "part", "label"]  # the only columns in which a dictionary saves anything


class Sink:
    """Takes the rows of a piece in order. folder: where ``records/``, ``originals/`` and ``work/`` are, or None.

    entries, ids: what ``note`` and ``name`` were given, for deduplication and for the check of ids.
    """

    def __init__(self, folder: Path | None, number: int, originals: bool) -> None:
        self._folder, self._name = folder, f"part-{number:05d}"
        self._kinds = {"records": RECORDS} | ({"originals": ORIGINALS} if originals else {})
        self.tables: dict[str, list[pa.Table]] = {kind: [] for kind in self._kinds}
        self._writers: dict[str, tuple[Path, BinaryIO, pq.ParquetWriter]] = {}
        self._rows = 0
        if folder is None:
            self.entries, self.ids = BytesIO(), BytesIO()  # type: BinaryIO, BinaryIO
            return
        self.entries, self.ids = create(self._work("entries")), create(self._work("ids"))
        for kind, schema in self._kinds.items():
            path = folder / kind / f"{self._name}.parquet.tmp"
            handle = create(path)
            options: dict[str, Any] = {"compression": "zstd", "use_dictionary": _REPEATED, "write_statistics": False}
            writer = pq.ParquetWriter(handle, schema, **options)
            self._writers[kind] = path, handle, writer

    def add(self, rows: Sequence[Row]) -> None:
        """Append a batch."""
        self._rows += len(rows)
        for kind, columns in (("records", _records), ("originals", _originals)):
            if kind not in self._kinds:
                continue
            table = pa.table(columns(rows), schema=self._kinds[kind])
            if self._folder is None:
                self.tables[kind].append(table)
            else:
                self._writers[kind][2].write_table(table)

    def note(self, entry: bytes) -> None:
        """A deduplication entry."""
        self.entries.write(entry)

    def name(self, digest: bytes) -> None:
        """The digest of a document's id."""
        self.ids.write(digest)

    def close(self) -> list[Shard]:
        """Make the files durable and give them their names."""
        shards = []
        for kind, (path, handle, writer) in self._writers.items():
            writer.close()
            final = close_durably(handle, path)
            shards.append(Shard(path=f"{kind}/{final.name}", rows=self._rows, digest=file_digest(final)))
        if self._folder is not None:
            close_durably(self.entries, self._work("entries"))
            close_durably(self.ids, self._work("ids"))
        return shards

    def abandon(self) -> None:
        """Close what is open; the unnamed files are written anew by whoever does the piece next."""
        for _, handle, writer in self._writers.values():
            with suppress(OSError, ValueError):  # a full disk, perhaps: that is the error to report, not this one
                writer.close()
            handle.close()
        self.entries.close()
        self.ids.close()

    def _work(self, kind: str) -> Path:
        assert self._folder is not None
        return self._folder / "work" / f"{self._name}.{kind}.tmp"


def _records(rows: Sequence[Row]) -> Mapping[str, list[Any]]:
    return {
        "id": [row.record.id for row in rows],
        "document_id": [row.record.document_id for row in rows],
        "user": [row.record.user for row in rows],
        "part": [row.part for row in rows],
        "label": [row.record.label for row in rows],
        "redacted": [row.redacted for row in rows],
        "suspicious": [row.suspicious for row in rows],
        "skeleton": [row.skeleton for row in rows],
    }


def _originals(rows: Sequence[Row]) -> Mapping[str, list[Any]]:
    return {
        "original": [row.body for row in rows],
        "stable": [_flat(row.stable) for row in rows],
        "behind": [_flat(row.behind) for row in rows],
        "stands": [row.stands for row in rows],
        "suspects": [_flat(row.suspects) for row in rows],
        "entities": [row.entities for row in rows],
    }


def _flat(pairs: Sequence[tuple[int, int]]) -> Sequence[int]:
    return [offset for pair in pairs for offset in pair] if pairs else ()


def close_durably(handle: BinaryIO, path: Path) -> Path:
    """Flush to disk, close, and drop the ".tmp" of the name."""
    handle.flush()
    os.fsync(handle.fileno())
    handle.close()
    final = path.with_suffix("")
    os.replace(path, final)
    return final
