"""A synthetic corpus on disk: made piece by piece in a hidden folder, renamed into place when it is whole.

synthetic/   README.md  manifest.json  data/part-00000.jsonl …  certificate.json and the files it is computed again from
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, ValidationError

from taciturn.errors import DataError, MismatchError
from taciturn.screening.corpus.manifest import MANIFEST, Shard, file_digest
from taciturn.synthesis.settings import Format
from taciturn.text.atomic import write_bytes
from taciturn.text.locks import hold

FORMAT = "taciturn-synthetic/1"
Row = dict[str, str]


class Counts(BaseModel):
    """Of texts drawn, what became of them: drawn == kept + empty + copies + marked. cut: of kept ones, by max_tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    drawn: int = 0
    kept: int = 0
    empty: int = 0
    copies: int = 0
    marked: int = 0
    cut: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in Counts.model_fields})


class Manifest(BaseModel):
    """manifest.json, the last file written. key: of model and settings. counts: of all texts drawn for it. claims: see
    claims.py."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: str = FORMAT
    taciturn: str
    key: str
    number: int
    settings: dict[str, Any]
    counts: Counts
    claims: dict[str, Any]
    shards: tuple[Shard, ...]

    @staticmethod
    def read(folder: Path) -> Manifest:
        """Raises DataError if there is none, or another's."""
        try:
            return Manifest.model_validate(orjson.loads((folder / MANIFEST).read_bytes()))
        except (OSError, orjson.JSONDecodeError, ValidationError) as error:
            raise DataError(
                f"{folder} is no synthetic corpus, or one that is not finished ({type(error).__name__}): expected what "
                "taciturn synthesize writes"
            ) from None


class Piece(BaseModel):
    """What a finished piece says of itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    counts: Counts
    shard: Shard


@dataclass(frozen=True, slots=True)
class Making:
    """The hidden folder of a corpus that is being made, held by this process."""

    folder: Path
    out: Path
    format: Format

    def piece(self, number: int) -> Piece | None:
        """A finished piece; None if it is not there, or not as it was written."""
        try:
            found = Piece.model_validate(orjson.loads(self._note(number).read_bytes()))
            return found if file_digest(self.folder / found.shard.path) == found.shard.digest else None
        except (OSError, ValueError):
            return None

    def write(self, number: int, rows: Sequence[Row], counts: Counts) -> Piece:
        """A piece, its note last."""
        piece = Piece(counts=counts, shard=self._shard(number, rows))
        write_bytes(self._note(number), piece.model_dump_json().encode())
        return piece

    def rows(self, shard: Shard) -> list[Row]:
        return rows_of(self.folder / shard.path)

    def finish(self, pieces: Sequence[Piece], manifest: Manifest, others: dict[str, bytes]) -> Manifest:
        """Cut the pieces at ``manifest.number`` rows, write ``others`` and the manifest, put the folder in its place."""
        left, shards = manifest.number, []
        for number, piece in enumerate(pieces):
            kept = min(left, piece.shard.rows)
            left -= kept
            cut = kept < piece.shard.rows
            shards += [self._shard(number, self.rows(piece.shard)[:kept]) if cut else piece.shard] if kept else []
        names = {Path(shard.path).name for shard in shards}
        for path in (self.folder / "data").iterdir():
            if path.name not in names:
                path.unlink()
        for name, content in others.items():
            write_bytes(self.folder / name, content)
        manifest = manifest.model_copy(update={"shards": tuple(shards)})
        data = orjson.dumps(manifest.model_dump(mode="json"), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
        write_bytes(self.folder / MANIFEST, data + b"\n")
        shutil.rmtree(self.folder / "work")
        self.folder.chmod(0o755)
        os.rename(self.folder, self.out)
        return manifest

    def _shard(self, number: int, rows: Sequence[Row]) -> Shard:
        name = f"data/part-{number:05d}.{self.format}"
        write_bytes(self.folder / name, encoded(rows, self.format))
        return Shard(path=name, rows=len(rows), digest=file_digest(self.folder / name))

    def _note(self, number: int) -> Path:
        return self.folder / "work" / f"part-{number:05d}.json"


@contextmanager
def making(out: Path, key: str, format: Format) -> Iterator[Making]:
    """The folder ``.NAME.unfinished`` beside ``out``, new or taken up where it was left.

    Raises DataError if ``out`` exists or another process is at work, MismatchError if what is unfinished is another corpus.
    """
    out = Path(os.path.abspath(out))
    if out.exists():
        raise DataError(f"{out} exists: name a new folder, so that nothing older stays in it")
    folder = out.parent / f".{out.name}.unfinished"
    for each in (folder, folder / "data", folder / "work"):
        each.mkdir(mode=0o700 if each == folder else 0o755, parents=True, exist_ok=True)
    with (folder / "work" / "lock").open("ab") as lock:
        hold(
            lock.fileno(),
            out,
            lambda: DataError(f"another process is writing {out.name}: wait, or name another folder"),
        )
        started = folder / "work" / "started"
        if not started.is_file():
            write_bytes(started, key.encode())
        elif started.read_text() != key:
            raise MismatchError(
                f"{folder} holds the beginning of another corpus (another model, seed or other settings): give that command "
                "again to finish it, or remove the folder"
            )
        yield Making(folder, out, format)


def encoded(rows: Sequence[Row], format: Format) -> bytes:
    if format == "jsonl":
        return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
    names = list(rows[0]) if rows else ["text"]
    table = pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in names})
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()


def rows_of(path: Path) -> list[Row]:
    """The rows of a shard."""
    if path.suffix == ".jsonl":
        return [orjson.loads(line) for line in path.read_bytes().splitlines()]
    rows: list[Row] = pq.read_table(path).to_pylist()
    return rows
