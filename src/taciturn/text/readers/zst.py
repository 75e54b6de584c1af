"""Zstandard files as a seekable stream, as ``gzip.GzipFile`` is one."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

from taciturn.errors import MissingExtra

MAGIC = b"\x28\xb5\x2f\xfd"
_INPUT = 1 << 9  # a few bytes may unpack into a block of 128 KiB: at most about 16 MiB from one read


class Damaged(Exception):
    """The stream is cut off, or is no Zstandard."""


class ZstdFile(io.RawIOBase):
    """The unpacked bytes of all frames. Seeking back starts again from the beginning.

    ``zstandard``'s own reader ends a file that is cut off as if it were whole: this one raises Damaged.
    """

    def __init__(self, packed: BinaryIO) -> None:
        try:
            import zstandard
        except ImportError:
            raise MissingExtra("zstandard", "zstd") from None
        self._new, self._error = zstandard.ZstdDecompressor, zstandard.ZstdError
        self._packed = packed
        self._restart()

    def _restart(self) -> None:
        self._packed.seek(0)
        self._frame: Any = None
        self._rest, self._ready, self._at = b"", memoryview(b""), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("the unpacked size is not known")
        goal = offset + (self._at if whence == io.SEEK_CUR else 0)
        if goal < self._at:
            self._restart()
        while self._at < goal and self.read(min(goal - self._at, 1 << 20)):
            pass
        return self._at

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            if not self._unpack():
                return 0
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        self._at += count
        return count

    def _unpack(self) -> bool:
        """The next bytes, maybe none of them; False at the end of the file."""
        data = self._rest or self._packed.read(_INPUT)
        self._rest = b""
        if not data:
            if self._frame is not None:
                raise Damaged
            return False
        if self._frame is None:
            self._frame = self._new().decompressobj()
        try:
            self._ready = memoryview(self._frame.decompress(data))
        except self._error:
            raise Damaged from None
        if self._frame.eof:
            self._rest, self._frame = self._frame.unused_data, None
        return True
