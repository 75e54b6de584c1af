"""A screened folder in the making: hidden, resumable, renamed into place when it is whole."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from taciturn.errors import DataError, MismatchError, UsageError
from taciturn.screening.corpus.manifest import MANIFEST, RUNS, Manifest, Shard, file_digest
from taciturn.screening.corpus.piece import Done, Job
from taciturn.screening.corpus.sink import Sink, close_durably
from taciturn.text.atomic import create
from taciturn.text.locks import hold
from taciturn.text.readers.pieces import Piece

DUPLICATES = pa.schema({"duplicate": pa.bool_()})
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Finished:
    """A piece that is done, and the files that hold it."""

    done: Done
    shards: tuple[Shard, ...]


def screen_piece(
    job: Job, piece: Piece, folder: Path, originals: bool, progress: Callable[[int, int], None] = lambda *_: None
) -> Finished:
    """Screen a piece into ``folder``; the last file written says that all of them are there. May be repeated."""
    sink = Sink(folder, piece.number, originals)
    try:
        done = job.screen(piece, sink, progress)
        finished = Finished(done, tuple(sink.close()))
    except BaseException:
        sink.abandon()
        raise
    path = _note(folder, piece.number).with_suffix(".json.tmp")
    handle = create(path)
    handle.write(orjson.dumps({"done": done.to_json(), "shards": [shard.model_dump() for shard in finished.shards]}))
    close_durably(handle, path)
    return finished


@dataclass(slots=True)
class Store:
    """A context around the folder ``.NAME.unfinished`` beside ``out``.

    Work that was interrupted stays in it and is taken up again by the same screening (equal content keys); after an error
    of the input or the options, which would come again, it is removed. Screened again into the same folder, a corpus keeps
    the history of the runs made on it: what they spent does not go away.

    Raises on entry DataError if ``out`` exists and is not a screened corpus, or if another process is writing it, and
    MismatchError if ``out`` or what is unfinished is another screening.
    """

    out: Path
    key: str
    originals: bool
    secret: bytes = field(default=b"", init=False, repr=False)
    _lock: BinaryIO | None = field(default=None, init=False, repr=False)

    @property
    def folder(self) -> Path:
        return self.out.parent / f".{self.out.name}.unfinished"

    @property
    def replaced(self) -> Path:
        """Where the folder that a new one takes the place of stands for a moment."""
        return self.out.parent / f".{self.out.name}.replaced"

    def __enter__(self) -> Self:
        out = self.out = Path(os.path.abspath(self.out))
        if not out.exists() and (self.replaced / MANIFEST).is_file():
            os.rename(self.replaced, out)  # a screening ended between putting it aside and taking its place
        if out.exists() and not (out.is_dir() and (not any(out.iterdir()) or (out / MANIFEST).is_file())):
            raise DataError(f"'{out.name}' exists and is not a screened corpus; choose another folder")
        if (out / MANIFEST).is_file() and Manifest.read(out / MANIFEST).key != self.key:
            raise MismatchError(f"'{out.name}' holds another screened corpus; remove it or choose another folder")
        make_folders(self.folder, self.originals)
        self._lock = (self.folder / "work" / "lock").open("ab")
        busy = DataError(f"another process is screening into '{out.name}'; wait, or choose another folder")
        try:
            hold(self._lock.fileno(), out, lambda: busy)
            self.secret = self._secret()
        except BaseException:
            self._lock.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None:
            self._lock.close()
        if isinstance(value, DataError | UsageError) and not isinstance(value, MismatchError):
            shutil.rmtree(self.folder, ignore_errors=True)

    def _secret(self) -> bytes:
        """The key of all digests; with the content key it is the first thing written, so it says what is unfinished."""
        path = self.folder / "work" / "started"
        if path.is_file():
            held = path.read_bytes()
            if held[_KEY_BYTES:].decode() != self.key:
                raise MismatchError(
                    f"an unfinished screening of other input or options is in '{self.folder.name}'; repeat that one to "
                    "finish it, or remove the folder"
                )
            return held[:_KEY_BYTES]
        secret = secrets.token_bytes(_KEY_BYTES)
        handle = create(path.with_suffix(".tmp"))
        handle.write(secret + self.key.encode())
        close_durably(handle, path.with_suffix(".tmp"))
        return secret

    def work(self, number: int, kind: str) -> Path:
        """The file of a piece's deduplication entries ("entries") or ids ("ids")."""
        return self.folder / "work" / f"part-{number:05d}.{kind}"

    def finish(
        self,
        manifest: Manifest,
        finished: Sequence[Finished],
        duplicates: Sequence[npt.NDArray[Any]],
        put: Callable[[Path, Manifest], None],
    ) -> tuple[Manifest, Path]:
        """Write which rows are copies and the manifest, ``put`` the folder elsewhere (an end in the middle leaves what the
        same screening takes up again), and rename it into place."""
        shards: list[Shard] = []
        for piece, copied in zip(finished, duplicates, strict=True):
            if not piece.done.rows:
                for shard in piece.shards:
                    (self.folder / shard.path).unlink()
                continue
            shards += [*piece.shards, self._duplicates(piece.done.number, copied)]
        path = self.folder / f"{MANIFEST}.tmp"
        handle = create(path)
        manifest = manifest.model_copy(update={"shards": tuple(shards)})
        handle.write(manifest.to_json())
        close_durably(handle, path)
        put(self.folder, manifest)
        shutil.rmtree(self.folder / "work")
        for inside in (*(p for p in self.folder.iterdir() if p.is_dir()), self.folder):
            _sync(inside)
        if self.out.exists():
            self._keep_history()
            shutil.rmtree(self.replaced, ignore_errors=True)
            os.rename(self.out, self.replaced)
        os.rename(self.folder, self.out)
        _sync(self.out.parent)
        shutil.rmtree(self.replaced, ignore_errors=True)
        return manifest, self.out

    def _keep_history(self) -> None:
        """Take the corpus's runs along, as the same file: a run that is being made goes on writing to it."""
        history, ours = self.out / RUNS, self.folder / RUNS
        if history.exists():
            ours.unlink(missing_ok=True)
            try:
                os.link(history, ours)
            except OSError:  # a file system without links
                shutil.copy2(history, ours)
            _sync(self.folder)

    def _duplicates(self, number: int, copied: npt.NDArray[Any]) -> Shard:
        path = self.folder / "duplicates" / f"part-{number:05d}.parquet.tmp"
        handle = create(path)
        pq.write_table(pa.table({"duplicate": copied}, schema=DUPLICATES), handle, compression="zstd")
        final = close_durably(handle, path)
        return Shard(path=f"duplicates/{final.name}", rows=len(copied), digest=file_digest(final))


def recall(folder: Path, number: int) -> Finished | None:
    """A finished piece, read back; None if it is not there, or not as it was written."""
    try:
        data = orjson.loads(_note(folder, number).read_bytes())
        shards = tuple(Shard.model_validate(shard) for shard in data["shards"])
        if any(file_digest(folder / shard.path) != shard.digest for shard in shards):
            return None
        if not all(_note(folder, number).with_suffix(f".{kind}").is_file() for kind in ("entries", "ids")):
            return None
        return Finished(Done.from_json(data["done"]), shards)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def make_folders(folder: Path, originals: bool) -> None:
    """What ``screen_piece`` writes into."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for kind in ("records", "duplicates", "work", *(["originals"] if originals else [])):
        (folder / kind).mkdir(mode=0o700, exist_ok=True)


def taken_out(folder: Path, number: int) -> list[tuple[str, bytes]]:
    """The files of a finished piece by their names in the folder; the last says that all of them are there."""
    note = _note(folder, number)
    others = sorted(path for path in folder.glob(f"*/{note.stem}.*") if path != note)
    return [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in (*others, note)]


def put_in(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write what ``taken_out`` gave, in its order."""
    for name, data in files:
        path = folder / f"{name}.tmp"
        handle = create(path)
        handle.write(data)
        close_durably(handle, path)


def mark(folder: Path) -> bytes | None:
    """What only the folder of this screening has in it; None if there is no such folder here."""
    try:
        return (folder / "work" / "started").read_bytes()
    except OSError:
        return None


def _note(folder: Path, number: int) -> Path:
    return folder / "work" / f"part-{number:05d}.json"


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
