"""A stream in another encoding as a stream of UTF-8, so that readers know one encoding."""

from __future__ import annotations

import codecs
import io
from typing import Any, BinaryIO

_CHUNK = 1 << 16


def _no_character(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff", error.end


codecs.register_error("taciturn.no_character", _no_character)


class Recoded(io.RawIOBase):
    """UTF-8 of ``stream``, without a byte order mark. Bytes that are no character of ``encoding`` become 0xFF, which is
    nowhere valid in UTF-8: the reader then treats the record as it treats any that does not decode."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream, self._encoding = stream, encoding
        self._restart()

    def _restart(self) -> None:
        self._stream.seek(0)
        self._decoder: Any = codecs.getincrementaldecoder(self._encoding)("taciturn.no_character")
        self._ready, self._at, self._first, self._ended = b"", 0, True, False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("the recoded size is not known")
        goal = offset + (self._at if whence == io.SEEK_CUR else 0)
        if goal < self._at:
            self._restart()
        while self._at < goal and self.read(min(goal - self._at, _CHUNK)):
            pass
        return self._at

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._ended:
            data = self._stream.read(_CHUNK)
            self._ended = not data
            text = self._decoder.decode(data, final=self._ended)
            if self._first and text:
                text, self._first = text.removeprefix("\ufeff"), False
            self._ready = text.encode("utf-8", "surrogateescape")
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        self._at += count
        return count
