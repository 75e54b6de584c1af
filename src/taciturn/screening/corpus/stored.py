"""A screened corpus on an object store, by URL.

A store has no rename, so what makes a corpus whole is its manifest: written last, read first. Until it is there, the object
``unfinished`` says whose files the others are. On this machine a corpus by URL is a folder as any other: the copy in which
it was screened, or into which it was fetched, private to its user. The history of its runs is that copy's, not the store's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from taciturn.errors import DataError, MismatchError, Unreachable, UsageError
from taciturn.screening.corpus.manifest import MANIFEST, RUNS, Manifest, file_digest
from taciturn.text.atomic import create, write_bytes
from taciturn.text.locks import hold
from taciturn.text.urls import here, is_url, reached, system

UNFINISHED = "unfinished"
_KEY = re.compile(r"[0-9a-f]{32}")
_SHARD = re.compile(r"(records|originals|duplicates)/part-\d{5,}\.parquet")

Put = Callable[[Path, Manifest], None]


def copy_of(key: str) -> Path:
    """The folder of this machine that stands for a screened corpus on a store. It lies with the user's data, not with what
    is cached (XDG Base Directory Specification): the history of its runs must not be swept away."""
    data = os.environ.get("XDG_DATA_HOME", "")
    return (Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share") / "taciturn" / "screened" / key


@contextmanager
def destination(out: str | os.PathLike[str], key: str) -> Iterator[tuple[Path, Put]]:
    """The folder to screen into, and what puts it, when it is whole, where ``out`` says.

    Raises, before anything is screened, MismatchError where a URL holds another screening or the beginning of one, DataError
    where it holds anything else, Unreachable.
    """
    place = here(os.fspath(out))
    if not is_url(place):
        yield Path(place), lambda *_: None
        return
    store, copy = _Store.of(place), copy_of(key)
    begun = store.claim(key)
    copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        yield copy, store.put
    except (DataError, UsageError):  # it would come again; an interrupted screening keeps its place
        with suppress(Unreachable):
            if begun:
                store.remove(UNFINISHED)
        raise


def fetched(url: str) -> tuple[Manifest, Path]:
    """A screened corpus by URL, and its copy on this machine. What the copy has is not fetched again.

    Raises DataError if there is none, or if a file is missing or not what the manifest says; Unreachable.
    """
    store = _Store.of(url)
    content = store.read(MANIFEST)
    if content is None:
        raise DataError(f"{url}: no screened corpus, or one that is still being written")
    manifest = Manifest.parse(content, url)
    if not _KEY.fullmatch(manifest.key) or not all(_SHARD.fullmatch(shard.path) for shard in manifest.shards):
        raise DataError(f"{url}: its manifest names files as no screened corpus does; screen again")
    copy = copy_of(manifest.key)
    with _alone(copy):
        whole = (copy / MANIFEST).is_file()
        folder = copy if whole else copy.parent / f".{copy.name}.fetched"
        folder.mkdir(mode=0o700, exist_ok=True)
        for shard in manifest.shards:
            file = folder / shard.path
            if not file.is_file() or file_digest(file) != shard.digest:
                store.fetch(shard.path, shard.digest, file)
        if not whole and (history := store.read(RUNS)) is not None:  # of a folder that was copied there by hand
            write_bytes(folder / RUNS, history, 0o600)
        write_bytes(folder / MANIFEST, content, 0o600)
        if not whole:
            folder.rename(copy)
    return manifest, copy


@contextmanager
def _alone(copy: Path) -> Iterator[None]:
    """One process fetches into a copy at a time; the others, of one run perhaps, wait for it."""
    copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (copy.parent / f".{copy.name}.lock").open("ab") as lock:
        hold(lock.fileno(), copy.parent, lambda: DataError(f"'{copy.name}' is in use"), wait=True)
        yield


@dataclass(frozen=True, slots=True)
class _Store:
    """The objects below a URL. Raises Unreachable, everywhere."""

    url: str
    path: str

    @classmethod
    def of(cls, url: str) -> _Store:
        """Raises UsageError for a URL with a secret in it, or that nothing installed can open."""
        store, path = system(url)
        store.invalidate_cache()  # of listings
        return cls(url, path.rstrip("/"))

    def claim(self, key: str) -> bool:
        """Write down that what comes is the screening ``key``; whether that was not written there before."""
        content, unfinished = self.read(MANIFEST), self.read(UNFINISHED)
        if content is not None:
            if Manifest.parse(content, self.url).key != key:
                raise MismatchError(f"{self.url} holds another screened corpus; remove it or choose another place")
            return False
        if unfinished is not None:
            if unfinished.decode("ascii", "replace") != key:
                raise MismatchError(
                    f"an unfinished screening of other input or options is at {self.url}; repeat that one to finish it, or "
                    "remove what is there"
                )
            return False
        if self._sizes():
            raise DataError(f"{self.url} holds something and is no screened corpus; choose another place")
        self._write(UNFINISHED, key.encode())
        return True

    def put(self, folder: Path, manifest: Manifest) -> None:
        """Every file of a whole folder, the manifest last. What an interrupted screening has put is not put again."""
        sizes = {} if self.read(MANIFEST) is not None else self._sizes()
        for shard in manifest.shards:
            file = folder / shard.path
            if sizes.get(shard.path) != file.stat().st_size:
                self._written(lambda store, path, file=file: store.put_file(str(file), path), shard.path)
        self._write(MANIFEST, (folder / MANIFEST).read_bytes())
        self.remove(UNFINISHED)

    def fetch(self, name: str, digest: str, file: Path) -> None:
        """An object into a file, which is there whole or not at all."""
        file.parent.mkdir(mode=0o700, exist_ok=True)
        partial = file.with_name(f"{file.name}.tmp")
        create(partial).close()
        try:
            with reached(self.url):
                system(self.url)[0].get_file(f"{self.path}/{name}", str(partial))
        except FileNotFoundError:
            raise DataError(f"{self.url}: {name} is missing; screen again") from None
        if file_digest(partial) != digest:
            partial.unlink()
            raise DataError(
                f"{self.url}: {name} is not what the manifest says; give the command again, or screen again"
            )
        with partial.open("rb") as handle:
            os.fsync(handle.fileno())
        partial.rename(file)

    def read(self, name: str) -> bytes | None:
        """A small object; None if there is none."""
        try:
            with reached(self.url):
                return bytes(system(self.url)[0].cat_file(f"{self.path}/{name}"))
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """An object, if it is there."""
        with suppress(FileNotFoundError), reached(self.url, "written to"):
            system(self.url)[0].rm_file(f"{self.path}/{name}")

    def _sizes(self) -> dict[str, int]:
        """Bytes of all objects there are, by their names below the URL."""
        store, _ = system(self.url)
        store.invalidate_cache()
        try:
            with reached(self.url):
                found = store.find(self.path, detail=True)
        except FileNotFoundError:
            return {}
        own = self.path.strip("/")
        sizes = {name.strip("/"): int(info["size"]) for name, info in found.items()}
        # Some stores hold an empty object that stands for the folder.
        return {name.removeprefix(f"{own}/"): size for name, size in sizes.items() if size or name != own}

    def _write(self, name: str, content: bytes) -> None:
        self._written(lambda store, path: store.pipe_file(path, content), name)

    def _written(self, write: Callable[..., object], name: str) -> None:
        store, _ = system(self.url)
        try:
            with reached(self.url, "written to"):
                write(store, f"{self.path}/{name}")
        except FileNotFoundError:
            raise DataError(f"{self.url} cannot be written: no such bucket or folder") from None
