"""Bytes in a charset that somebody declared, maybe wrongly, into text."""

from __future__ import annotations

import codecs
from typing import Literal

from taciturn.text.readers.items import BadRecord

UNKNOWN = "is in a charset that Python does not know; it was read as ASCII"
UNDECODABLE = "holds bytes that its charset does not have; they were replaced"

# Codecs of Python that no mail or page means: they transform text, or cost more than linear time.
_NO_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "mbcs", "oem"})

# What else the web's standard has labels for: no text, private letters, and UTF-16, which few who say "unicode" mean.
_NOT_FROM_LABELS = ("replacement", "x-user-defined", "utf-16")


def decoded(
    data: bytes, charset: str | None, what: str, errors: Literal["strict", "replace"]
) -> tuple[str, str | None]:
    """The text, and why it must be private, if it must.

    Without a charset, or with one that names ASCII, the bytes may also be UTF-8. what: the thing in messages ("the body").
    Raises BadRecord when strict; neither it nor the reason quotes the bytes or the charset, which came with them.
    """
    codec = codec_of(charset) if charset else "utf-8"
    if codec == "ascii":
        codec = "utf-8"
    if codec is None:
        if data.isascii():
            return data.decode("ascii"), None
        if errors == "strict":
            raise BadRecord(
                f"{what} is in a charset that Python does not know; encoding_errors='replace' keeps its ASCII part, private"
            )
        return data.decode("ascii", "replace"), f"{what} {UNKNOWN}"
    try:
        return data.decode(codec), None
    except UnicodeDecodeError as error:
        at = error.start
    except ValueError:  # UTF-7 and UTF-16 have ends of their own
        at = 0
    if errors == "strict":
        raise BadRecord(
            f"{what} does not decode in {'UTF-8' if codec == 'utf-8' else 'its charset'}, at its byte {at}; "
            "encoding_errors='replace' keeps such records, private"
        )
    return data.decode(codec, "replace"), f"{what} {UNDECODABLE}"


def codec_of(charset: str) -> str | None:
    """Python's name of a charset, None for an unknown one.

    >>> codec_of("Latin1"), codec_of("windows-874"), codec_of("rot13")
    ('iso8859-1', 'cp874', None)
    """
    charset = charset.strip().strip("\"'")
    if not charset.isascii() or not 0 < len(charset) <= 40:
        return None
    try:
        info = codecs.lookup(charset)
    except (LookupError, ValueError):
        return _web_codec(charset)
    return info.name if info._is_text_encoding and info.name not in _NO_CHARSETS else None


def _web_codec(label: str) -> str | None:
    """The codec of a name that only the web's standard knows (WHATWG Encoding)."""
    from webencodings import lookup

    found = lookup(label)
    name = found.codec_info.name if found else ""
    return None if name.startswith(_NOT_FROM_LABELS) or not name else str(name)
