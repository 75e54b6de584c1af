"""A stream in another encoding as a stream of UTF-8, so that readers know one encoding."""

from __future__ import annotations

import codecs
from typing import Any, BinaryIO

from taciturn.text.readers.restarted import Restarted

_CHUNK = 1 << 16


def _no_character(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff", error.end


codecs.register_error("taciturn.no_character", _no_character)


class Recoded(Restarted):
    """UTF-8 of ``stream``, without a byte order mark. Bytes that are no character of ``encoding`` become 0xFF, which is
    nowhere valid in UTF-8: the reader then treats the record as it treats any that does not decode."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream, self._encoding = stream, encoding
        super().__init__()

    def _restart(self) -> None:
        self._stream.seek(0)
        self._decoder: Any = codecs.getincrementaldecoder(self._encoding)("taciturn.no_character")
        self._first, self._ended = True, False

    def _next(self) -> bytes | None:
        if self._ended:
            return None
        data = self._stream.read(_CHUNK)
        self._ended = not data
        text = self._decoder.decode(data, final=self._ended)
        if self._first and text:
            text, self._first = text.removeprefix("\ufeff"), False
        made: bytes = text.encode("utf-8", "surrogateescape")
        return made
