"""Bytes of input files: opening, gzip and zstd, byte order marks, bounded lines, UTF-8, digests."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, cast

from taciturn.errors import DataError
from taciturn.text.readers import zst
from taciturn.text.readers.items import BadRecord

CHUNK = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"
PACKED = (".gz", ".zst")
UTF8_BOM = b"\xef\xbb\xbf"
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
REPLACED = "holds bytes that are not UTF-8; they were replaced"


class Line(NamedTuple):
    """number counts from 1; offset: of its first byte in the (uncompressed) file; data: without the line end, or None
    when longer than the limit; ending: LF, CRLF, or nothing at the end of the file."""

    number: int
    offset: int
    data: bytes | None
    ending: bytes


def packed(path: Path) -> Literal["gzip", "zstd"] | None:
    """How the file is compressed, by its first bytes or its name."""
    try:
        with path.open("rb") as plain:
            magic = plain.read(len(zst.MAGIC))
    except OSError as error:
        raise DataError(f"cannot read {path.name}: {error.strerror or type(error).__name__}") from None
    if magic.startswith(GZIP_MAGIC) or path.suffix == ".gz":
        return "gzip"
    return "zstd" if magic == zst.MAGIC or path.suffix == ".zst" else None


@contextmanager
def opened(path: Path, name: str, start: int = 0) -> Iterator[BinaryIO]:
    """The file's bytes from ``start``, uncompressed; from 0: after a UTF-8 byte order mark.

    Raises DataError for a file that cannot be opened, a truncated or damaged stream, and UTF-16.
    """
    try:
        with path.open("rb") as plain:
            unpacked: io.IOBase = plain
            if how := packed(path):
                unpacked = gzip.GzipFile(fileobj=plain) if how == "gzip" else zst.ZstdFile(plain)
            stream = io.BufferedReader(cast(io.RawIOBase, unpacked), buffer_size=1 << 17)
            head = stream.read(4096)
            if _is_utf16(head):
                raise DataError(f"{name} is UTF-16, not UTF-8; convert it first: iconv -f UTF-16 -t UTF-8")
            stream.seek(start or (len(UTF8_BOM) if head.startswith(UTF8_BOM) else 0))
            yield cast(BinaryIO, stream)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(f"{name} is a truncated or damaged gzip file; fetch or compress it again") from None
    except zst.Damaged:
        raise DataError(f"{name} is a truncated or damaged zstd file; fetch or compress it again") from None
    except OSError as error:
        raise DataError(f"cannot read {name}: {error.strerror or type(error).__name__}") from None


def plain_name(name: str) -> str:
    """A file name without the ending of a compressed file."""
    return next((name.removesuffix(ending) for ending in PACKED if name.endswith(ending)), name)


def _is_utf16(head: bytes) -> bool:
    """By its mark, or by NULs at every other byte, as Latin text without a mark has them."""
    if head.startswith(UTF16_BOMS):
        return True
    half = len(head) // 2
    counts = (head[0::2].count(0), head[1::2].count(0))
    return half >= 4 and min(counts) == 0 and max(counts) > 0.8 * half


def lines(stream: BinaryIO, limit: int, end: int | None = None, before: int = 0) -> Iterator[Line]:
    """Lines ended by LF or CRLF and nothing else; holds at most ``limit`` bytes of one, however long it is.

    end: the byte at which to stop, the start of a line. before: how many lines come before the first.
    """
    number, offset = before, stream.tell()
    while (end is None or offset < end) and (data := stream.readline(limit + 2)):
        number += 1
        size = len(data)
        ending = b"\r\n" if data.endswith(b"\r\n") else b"\n" if data.endswith(b"\n") else b""
        content = data.removesuffix(ending)
        if len(content) <= limit:
            yield Line(number, offset, content, ending)
        else:
            while data and not data.endswith(b"\n"):
                data = stream.readline(CHUNK)
                size += len(data)
            yield Line(number, offset, None, b"\n")
        offset += size


def decode(data: bytes, offset: int, errors: Literal["strict", "replace"]) -> tuple[str, str | None]:
    """The text, and why it must be private, if it must. ``offset``: of data in its file.

    Raises BadRecord with the offset of the first undecodable byte when strict.
    """
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError as error:
        at = offset + error.start
    if errors == "replace":
        return data.decode("utf-8", "replace"), REPLACED
    raise BadRecord(
        f"not valid UTF-8 at byte {at}; convert the file, or keep such records, private, with encoding_errors='replace'",
        location=f"byte {at}",
    )


def too_long(limit: int) -> BadRecord:
    return BadRecord(f"longer than max_record_bytes = {limit}; nothing is cut: raise the limit or split it yourself")


def digest(path: Path) -> str:
    """SHA-256 of the file as it lies on disk (compressed, if it is)."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path.name}: {error.strerror or type(error).__name__}") from None
