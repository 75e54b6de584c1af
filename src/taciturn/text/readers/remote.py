"""Files on object stores, and on whatever else fsspec knows, by URL ("s3://bucket/mail/a.jsonl"): read by ranges."""

from __future__ import annotations

import errno
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, cast

from taciturn.errors import DataError
from taciturn.text.urls import reached, scheme, system

_MAGIC = re.compile(r"[*?[]")
_FIRST, _MOST = 1 << 16, 1 << 21
"""Bytes of the first request of a stream, and of the largest: each asks for twice as much as the one before it."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A file or a folder of a file system of fsspec. It has what readers use of a path.

    url: any of that file system. path: as the file system names it. size: bytes, when it was listed.
    """

    url: str
    path: str
    size: int
    folder: bool = False

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.path).suffix

    @property
    def place(self) -> PurePosixPath:
        """Where it lies, comparable with paths of other stores and of this machine."""
        path, server = self.path.lstrip("/"), self.url.partition("://")[2].partition("/")[0]
        # Some file systems have what follows the slashes in their paths (a bucket), some have not (a server).
        return PurePosixPath("/", scheme(self.url), "" if path.split("/")[0] == server else server, path)

    def is_dir(self) -> bool:
        return self.folder

    def open(self, mode: str = "rb", buffering: int = -1) -> io.BufferedReader:  # noqa: ARG002  # the signature of Path
        """buffering: 0 asks for exactly what is read."""
        ranges = _Ranges(self, _FIRST if buffering else self.size)
        return io.BufferedReader(ranges, buffer_size=_MOST) if buffering else cast(io.BufferedReader, ranges)

    def entries(self) -> list[Remote]:
        """What lies in a folder, by name. Raises Unreachable."""
        store, _ = system(self.url)
        with reached(self.name):
            found = [_of(self.url, info) for info in store.ls(self.path, detail=True)]
        # Some stores hold an empty object that stands for the folder.
        return sorted((each for each in found if each.path.strip("/") != self.path.strip("/")), key=lambda e: e.name)


def named(url: str) -> list[Remote]:
    """What a URL names: a file, a folder, or the files that match a pattern, sorted.

    Raises DataError when there is nothing, UsageError for a URL that carries a secret or that nothing installed can read,
    Unreachable.
    """
    store, path = system(url)
    store.invalidate_cache()  # of listings
    with reached(url):
        if not _MAGIC.search(path) or store.exists(path):
            if not store.exists(path):
                raise DataError(f"no such file: {url}")
            return [_of(url, store.info(path))]
        found = [_of(url, info) for name, info in sorted(store.glob(path, detail=True).items()) if _seen(name, path)]
    files = [each for each in found if not each.folder]
    if not files:
        raise DataError(f"no file matches {url}")
    return files


def _seen(name: str, pattern: str) -> bool:
    """Whether a shell's pattern matches, too: a wildcard stands for no name that begins with a dot."""
    return "/." in pattern or "/." not in name


def _of(url: str, info: Mapping[str, Any]) -> Remote:
    folder = info["type"] == "directory"
    if not folder and info["size"] is None:
        raise DataError(f"{url}: the server does not say how long it is; download it")
    return Remote(url, info["name"].rstrip("/"), 0 if folder else int(info["size"]), folder)


class _Ranges(io.RawIOBase):
    """A file as a stream of requests. first: bytes asked for after a seek."""

    def __init__(self, file: Remote, first: int) -> None:
        self._file, self._first = file, first
        self._system, _ = system(file.url)
        self._at, self._step = 0, first

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        at = offset + (0, self._at, self._file.size)[whence]
        if at < 0:
            raise OSError(errno.EINVAL, "a place before the file")
        if at != self._at:
            self._at, self._step = at, self._first
        return at

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), self._step, self._file.size - self._at)
        if count <= 0:
            return 0
        with reached(self._file.name):
            data = self._system.cat_file(self._file.path, start=self._at, end=self._at + count)
        if len(data) != count:
            raise DataError(f"{self._file.name} changed while it was read, or its server gives no ranges")
        buffer[:count] = data
        self._at += count
        self._step = max(self._first, min(2 * self._step, _MOST))
        return count
