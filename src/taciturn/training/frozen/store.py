"""Tensors by key in a file: what frozen layers make of records (cache.py)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from taciturn.errors import DataError

ASKED = 10_000
"""Keys in one query; SQLite takes 32,766."""


@dataclass(frozen=True, slots=True)
class Store:
    """Tensors [tokens, width] in an SQLite database, which several processes may use at once. Both methods raise DataError
    for a file that is none, is damaged, or has no room."""

    db: sqlite3.Connection
    name: str

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Tensor]:
        """What is there of ``keys``, on the CPU."""
        found: dict[bytes, Tensor] = {}
        with self._told():
            for start in range(0, len(keys), ASKED):
                some = keys[start : start + ASKED]
                marks = ",".join("?" * len(some))
                rows = self.db.execute(f"SELECT key, dtype, width, hidden FROM kept WHERE key IN ({marks})", some)
                for key, dtype, width, hidden in rows:
                    found[key] = torch.frombuffer(bytearray(hidden), dtype=getattr(torch, dtype)).view(-1, width)
        return found

    def write(self, rows: Mapping[bytes, Tensor]) -> None:
        """Keep, or replace, in one transaction."""
        made = [(key, str(t.dtype).removeprefix("torch."), t.shape[-1], _bytes(t)) for key, t in rows.items()]
        with self._told(), self.db:
            self.db.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)", made)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, RuntimeError, AttributeError) as error:
            raise DataError(
                f"train.frozen_cache: {self.name} cannot be used ({error}); expected a file that an earlier run made, or "
                "none, on a disk with room: remove it or name another, and continue with --resume"
            ) from error


@contextmanager
def store(path: Path | None) -> Iterator[Store]:
    """The file, made (mode 0600) where there is none; for None one in memory."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    with closing(sqlite3.connect(path or ":memory:", timeout=60)) as db:
        made = Store(db, str(path))
        with made._told():
            db.execute("PRAGMA journal_mode = WAL")  # readers do not wait for a writer
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("CREATE TABLE IF NOT EXISTS kept (key BLOB PRIMARY KEY, dtype TEXT, width INTEGER, hidden BLOB)")
        yield made


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
