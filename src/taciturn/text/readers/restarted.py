"""Streams made of another one from its beginning to its end, which seek back by beginning again."""

from __future__ import annotations

import io
from abc import abstractmethod
from typing import Any

_SKIPPED = 1 << 16  # bytes made at once on the way to a place further on


class Restarted(io.RawIOBase):
    """What its two methods make, as a file that can be read and sought from its start."""

    def __init__(self) -> None:
        self._begin()

    @abstractmethod
    def _restart(self) -> None:
        """Back to the beginning of the other stream."""

    @abstractmethod
    def _next(self) -> bytes | None:
        """The bytes that follow, maybe none of them; None at the end."""

    def _begin(self) -> None:
        self._restart()
        self._ready, self._at = memoryview(b""), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("the size of what is made is not known")
        goal = offset + (self._at if whence == io.SEEK_CUR else 0)
        if goal < self._at:
            self._begin()
        while self._at < goal and self.read(min(goal - self._at, _SKIPPED)):
            pass
        return self._at

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            if (data := self._next()) is None:
                return 0
            self._ready = memoryview(data)
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        self._at += count
        return count
