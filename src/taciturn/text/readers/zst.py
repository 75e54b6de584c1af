"""Zstandard files as a seekable stream, as ``gzip.GzipFile`` is one."""

from __future__ import annotations

from typing import Any, BinaryIO

from taciturn.errors import MissingExtra
from taciturn.text.readers.restarted import Restarted

MAGIC = b"\x28\xb5\x2f\xfd"
_INPUT = 1 << 9  # a few bytes may unpack into a block of 128 KiB: at most about 16 MiB from one read


class Damaged(Exception):
    """The stream is cut off, or is no Zstandard."""


class ZstdFile(Restarted):
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
        super().__init__()

    def _restart(self) -> None:
        self._packed.seek(0)
        self._frame: Any = None
        self._rest = b""

    def _next(self) -> bytes | None:
        data = self._rest or self._packed.read(_INPUT)
        self._rest = b""
        if not data:
            if self._frame is not None:
                raise Damaged
            return None
        if self._frame is None:
            self._frame = self._new().decompressobj()
        try:
            unpacked: bytes = self._frame.decompress(data)
        except self._error:
            raise Damaged from None
        if self._frame.eof:
            self._rest, self._frame = self._frame.unused_data, None
        return unpacked
