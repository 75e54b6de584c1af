"""Bytes of input files: opening, gzip and zstd, byte order marks, bounded lines, UTF-8, digests."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Literal, NamedTuple, cast

from taciturn.errors import DataError
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers import zst
from taciturn.text.readers.held import MOST, File
from taciturn.text.readers.items import BadRecord
from taciturn.text.readers.recode import Recoded

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


def packed(path: File) -> Literal["gzip", "zstd"] | None:
    """How the file is compressed, by its first bytes or its name."""
    try:
        with path.open("rb", buffering=0) as plain:
            magic = plain.read(len(zst.MAGIC))
    except OSError as error:
        raise DataError(f"cannot read {path.name}: {error.strerror or type(error).__name__}") from None
    if magic.startswith(GZIP_MAGIC) or path.suffix == ".gz":
        return "gzip"
    return "zstd" if magic == zst.MAGIC or path.suffix == ".zst" else None


@contextmanager
def opened(path: File, name: str, start: int = 0, encoding: str | None = None) -> Iterator[BinaryIO]:
    """The file's bytes from ``start``, uncompressed and as UTF-8; from 0: after a byte order mark.

    encoding: of the file; None is UTF-8, or UTF-16 where its byte order mark says so.
    Raises DataError for a file that cannot be opened, a truncated or damaged stream, and UTF-16 without a mark.
    """
    try:
        with path.open("rb") as plain:
            unpacked: io.IOBase = plain
            if how := packed(path):
                unpacked = gzip.GzipFile(fileobj=plain) if how == "gzip" else zst.ZstdFile(plain)
            stream = io.BufferedReader(cast(io.RawIOBase, unpacked), buffer_size=1 << 17)
            head = stream.read(4096)
            if encoding := encoding or _marked(head, name):
                recoded = io.BufferedReader(Recoded(cast(BinaryIO, stream), encoding), buffer_size=1 << 17)
                recoded.seek(start)
                yield cast(BinaryIO, recoded)
                return
            stream.seek(start or (len(UTF8_BOM) if head.startswith(UTF8_BOM) else 0))
            yield cast(BinaryIO, stream)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(f"{name} is a truncated or damaged gzip file; fetch or compress it again") from None
    except zst.Damaged:
        raise DataError(f"{name} is a truncated or damaged zstd file; fetch or compress it again") from None
    except OSError as error:
        raise DataError(f"cannot read {name}: {error.strerror or type(error).__name__}") from None


def content(path: File, name: str) -> bytes:
    """All bytes of a file that cannot be read in parts. Raises BadRecord for too many, DataError."""
    with opened(path, name) as stream:
        data = stream.read(MOST + 1)
    if len(data) > MOST:
        raise BadRecord(f"larger than {MOST >> 20} MiB; split it")
    return data


def plain_name(name: str) -> str:
    """A file name without the ending of a compressed file."""
    return next((name.removesuffix(ending) for ending in PACKED if name.endswith(ending)), name)


def recoded(path: File, encoding: str | None) -> bool:
    """Whether ``opened`` gives other bytes than lie in the (uncompressed) file. Raises DataError."""
    try:
        with path.open("rb", buffering=0) as plain:
            return encoding is not None or plain.read(2) in UTF16_BOMS
    except OSError as error:
        raise DataError(f"cannot read {path.name}: {error.strerror or type(error).__name__}") from None


def _marked(head: bytes, name: str) -> str | None:
    """UTF-16 or UTF-32 by its mark. Raises DataError for NULs at every other byte, as Latin text without a mark has them."""
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
    if head.startswith(UTF16_BOMS):
        return "utf-16"
    half = len(head) // 2
    counts = (head[0::2].count(0), head[1::2].count(0))
    if half >= 4 and min(counts) == 0 and max(counts) > 0.8 * half:
        order = "le" if counts[1] else "be"
        raise DataError(
            f"{name} is UTF-16 without a byte order mark, not UTF-8; read it with encoding='utf-16-{order}'"
        )
    return None


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


def decode(data: bytes, offset: int, options: ReadOptions) -> tuple[str, str | None]:
    """The text, and why it must be private, if it must. ``offset``: of data in its file, as ``opened`` gives it.

    Raises BadRecord with the offset of the first undecodable byte when strict.
    """
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError as error:
        at = offset + error.start
    if options.encoding_errors == "replace":
        return data.decode("utf-8", "replace"), REPLACED
    if options.encoding is not None:
        raise BadRecord(
            f"holds bytes that the encoding '{options.encoding}' does not have; name the right one, or keep such records, "
            "private, with encoding_errors='replace'"
        )
    raise BadRecord(
        f"not valid UTF-8 at byte {at}; name the file's encoding (encoding='cp1252'), or keep such records, private, with "
        "encoding_errors='replace'",
        location=f"byte {at}",
    )


def whole(path: File, name: str, options: ReadOptions) -> tuple[bytes, int]:
    """All bytes of a file that is one document, and where they begin, as ``decode`` wants it.

    Raises DataError as ``opened`` does, BadRecord for more bytes than a record may have.
    """
    with opened(path, name, encoding=options.encoding) as stream:
        offset = stream.tell()
        data = stream.read(options.max_record_bytes + 1)
    if len(data) > options.max_record_bytes:
        raise too_long(options.max_record_bytes)
    return data, offset


def too_long(limit: int) -> BadRecord:
    return BadRecord(f"longer than max_record_bytes = {limit}; nothing is cut: raise the limit or split it yourself")


def digest(path: File) -> str:
    """SHA-256 of the file as it lies on disk (compressed, if it is)."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path.name}: {error.strerror or type(error).__name__}") from None
