"""Files on object stores, and on whatever else fsspec knows, by URL ("s3://bucket/mail/a.jsonl"): read by ranges.

What is kept, and handed to workers, is the URL: credentials come from the environment of each process.
"""

from __future__ import annotations

import errno
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, cast

from taciturn.errors import DataError, MissingExtra, TaciturnError, Unreachable, UsageError

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_PASSWORD = re.compile(r"://[^/]*:[^/]*@")
_MAGIC = re.compile(r"[*?[]")
_FIRST, _MOST = 1 << 16, 1 << 21
"""Bytes of the first request of a stream, and of the largest: each asks for twice as much as the one before it."""


def is_url(path: str) -> bool:
    """Whether this is a URL and no path of this machine.

    >>> is_url("s3://bucket/a.jsonl"), is_url("hf:owner/name#train"), is_url("mail/a.jsonl")
    (True, False, False)
    """
    return _URL.match(path) is not None


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
        return PurePosixPath("/", _scheme(self.url), "" if path.split("/")[0] == server else server, path)

    def is_dir(self) -> bool:
        return self.folder

    def open(self, mode: str = "rb", buffering: int = -1) -> io.BufferedReader:  # noqa: ARG002  # the signature of Path
        """buffering: 0 asks for exactly what is read."""
        ranges = _Ranges(self, _FIRST if buffering else self.size)
        return io.BufferedReader(ranges, buffer_size=_MOST) if buffering else cast(io.BufferedReader, ranges)

    def entries(self) -> list[Remote]:
        """What lies in a folder, by name. Raises Unreachable."""
        system, _ = _system(self.url)
        with _reached(self.name):
            found = [_of(self.url, info) for info in system.ls(self.path, detail=True)]
        # Some stores hold an empty object that stands for the folder.
        return sorted((each for each in found if each.path.strip("/") != self.path.strip("/")), key=lambda e: e.name)


def named(url: str) -> list[Remote]:
    """What a URL names: a file, a folder, or the files that match a pattern, sorted.

    Raises DataError when there is nothing, UsageError for a URL that carries a secret or that nothing installed can read,
    Unreachable.
    """
    system, path = _system(url)
    system.invalidate_cache()  # of listings
    with _reached(url):
        if not _MAGIC.search(path) or system.exists(path):
            if not system.exists(path):
                raise DataError(f"no such file: {url}")
            return [_of(url, system.info(path))]
        found = [_of(url, info) for name, info in sorted(system.glob(path, detail=True).items()) if _seen(name, path)]
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


def _scheme(url: str) -> str:
    return url.partition("://")[0].lower()


def _system(url: str) -> tuple[Any, str]:
    """The file system, which fsspec keeps for the next call, and the path in it."""
    if _PASSWORD.search(url) or (_scheme(url) in ("http", "https") and "?" in url):
        raise UsageError(
            f"a URL ({_scheme(url)}://…) carries a password or a signature, and would be kept; give credentials in the "
            "environment or in the store's own settings"
        )
    if "::" in url:
        raise UsageError(f"{url}: chained URLs are not read; archives are, by their own URL")
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtra("fsspec", "cloud") from None
    try:
        system, path = url_to_fs(url)
    except ImportError as error:
        raise UsageError(f"{_scheme(url)}:// needs a package that is not installed: {error}") from None
    except Exception as error:
        raise UsageError(
            f"{_scheme(url)}:// cannot be used ({type(error).__name__}): no such file system, or its settings are wrong"
        ) from None
    return system, path


@contextmanager
def _reached(name: str) -> Iterator[None]:
    """The errors of every store as two; their messages are not shown: they may quote what was sent."""
    try:
        yield
    except TaciturnError:
        raise
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory") from None
    except Exception as error:
        raise Unreachable(
            f"{name} cannot be read from its store ({type(error).__name__}): check address, credentials and network, then "
            "give the same command again"
        ) from None


class _Ranges(io.RawIOBase):
    """A file as a stream of requests. first: bytes asked for after a seek."""

    def __init__(self, file: Remote, first: int) -> None:
        self._file, self._first = file, first
        self._system, _ = _system(file.url)
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
        with _reached(self._file.name):
            data = self._system.cat_file(self._file.path, start=self._at, end=self._at + count)
        if len(data) != count:
            raise DataError(f"{self._file.name} changed while it was read, or its server gives no ranges")
        buffer[:count] = data
        self._at += count
        self._step = max(self._first, min(2 * self._step, _MOST))
        return count
