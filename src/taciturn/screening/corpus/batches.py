"""Rows of a screened corpus a few thousand at a time: reading takes the memory of one row group, however many there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from taciturn.errors import DataError
from taciturn.screening.corpus.manifest import Manifest

ROWS = 4096
"""Rows of one batch, at most; screening writes row groups of about so many."""


def of_folder(
    path: Path, manifest: Manifest, kind: str, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of all shards of a kind, in order; columns: which of them, None for all. Raises DataError where there are
    none, or others than the manifest counts."""
    shards = [shard for shard in manifest.shards if shard.path.startswith(f"{kind}/")]
    if not shards:
        raise DataError(f"'{path.name}' has no {kind}; screen again")
    rows = 0
    for shard in shards:
        with (path / shard.path).open("rb") as handle:
            file = pq.ParquetFile(handle, pre_buffer=False)
            for group in range(file.num_row_groups):
                # One thread: a pool that is still starting when a short command ends aborts the interpreter.
                table = file.read_row_group(group, columns, use_threads=False)
                rows += table.num_rows
                yield from table.to_batches(ROWS)
    expected = manifest.counts.public + manifest.counts.private
    if rows != expected:
        raise DataError(f"'{path.name}': {rows} rows of {kind} where the manifest counts {expected}; screen again")


def side_by_side(streams: Mapping[str, Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Rows of several kinds as wider rows: the n-th of one beside the n-th of each other, whatever their batches."""
    left: dict[str, pa.RecordBatch] = {}
    while True:
        for kind, stream in streams.items():
            while kind not in left or not left[kind].num_rows:
                batch = next(stream, None)
                if batch is None:
                    if any(each.num_rows for each in left.values()) or any(
                        b.num_rows for s in streams.values() for b in s
                    ):
                        raise DataError(
                            f"a screened corpus has fewer rows of {kind} than of what is beside them; screen again"
                        )
                    return
                left[kind] = batch
        rows = min(batch.num_rows for batch in left.values())
        wide = {name: each.column(name)[:rows] for each in left.values() for name in each.schema.names}
        yield pa.RecordBatch.from_pydict(wide)
        left = {kind: batch.slice(rows) for kind, batch in left.items()}
