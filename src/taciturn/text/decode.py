"""What a text says once the encodings in it are read: a second view for detectors, with the way back to exact offsets.

"anna.berg&#64;example.com" and "an<b>na</b>" hold a secret that no pattern sees. Read are HTML entities, percent signs,
quoted-printable, escapes of JSON and C, base64, tags, terminal colours, lines broken inside a word, and letters of another
script that look like ours.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote_to_bytes

import regex
from confusable_homoglyphs.confusables import confusables_data

from taciturn.text.document import MASK
from taciturn.text.fold import Folded

VERSION = 1
"""Of what is read: part of the identity of policies."""

DEPTH = 3
"""An encoding in an encoding is read so many times."""

_TOKENS = {
    "mask": re.escape(MASK),
    "entity": r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});",
    "percent": r"(?:%[0-9A-Fa-f]{2})+",
    "quoted": r"(?:=[0-9A-F]{2}(?:=\r?\n)?)+",  # a line may end inside a character
    "escaped": r"(?:\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2})+|\\[nrt/\"']",
    "broken": r"(?:=|(?<=[^\W_])-)\r?\n(?=\S)",
    "tag": r"<(?:!--[^<>\x1e\x1f]{0,200}--|[/!?]?[A-Za-z][^<>\x1e\x1f]{0,200})>",
    "colour": r"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\))",
    "base64": r"[A-Za-z0-9+/]{16,}(?:(?<=[A-Za-z0-9+/]{60})\r?\n[A-Za-z0-9+/]+)*={0,2}",
}
_TOKEN = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _TOKENS.items()))

CODED = "|".join(
    (
        r"&#?[0-9A-Za-z]{1,31};",
        r"[%=][0-9A-Fa-f]{2}",
        r"[=-]\r?\n",
        r"\\[uxnrt/\"']",
        r"<[/!?]?[A-Za-z-]",
        r"\x1b[\[\]]",
        r"[A-Za-z0-9+/]{8}[A-Za-z0-9+/]{8,}",  # the filter counts to eight
    )
)
"""Matches in every text of ASCII that ``decode`` may change, whole or with words of it masked: no assertion, so that what is
left of a text holds no match that the text did not."""

_INLINE = frozenset("a abbr b big cite code em font i ins mark q s small span strong sub sup tt u var wbr".split())  # noqa: SIM905
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_MIXED = regex.compile(
    r"[\p{Latin}0-9@](?:[._-]?)[\p{Cyrillic}\p{Greek}\p{Armenian}\p{Cherokee}\p{Lisu}\p{Hebrew}\p{Georgian}]"
    r"|[\p{Cyrillic}\p{Greek}\p{Armenian}\p{Cherokee}\p{Lisu}\p{Hebrew}\p{Georgian}](?:[._-]?)[\p{Latin}0-9@]"
)
"""Two scripts in one word."""
_RUN = re.compile(r"\S+")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")  # what the product means by these, no encoding may mean


@dataclass(frozen=True, slots=True)
class Decoded:
    """text: what is read. layers: one for each time that something was."""

    text: str
    layers: tuple[Folded, ...]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The original span of ``text[start:end]`` (not empty): everything between the first and the last character of it.

        >>> coded = "write to anna&#64;example.com"
        >>> decode(coded).text, coded[slice(*decode(coded).original(9, 25))]
        ('write to anna@example.com', 'anna&#64;example.com')
        """
        for layer in reversed(self.layers):
            start, end = layer.span(start, end)
        return start, end


def mixed(text: str) -> bool:
    """Whether a text outside ASCII has words in two scripts."""
    return not text.isascii() and _MIXED.search(text) is not None


def decode(text: str) -> Decoded:
    """``text`` with its encodings read, at most ``DEPTH`` times over; a ``<MASK>`` is left as it is.

    Nothing is dropped but tags, colours and line breaks inside a word; a tag that sets a block, a row or a cell becomes a
    blank. Bytes are UTF-8, else Latin-1; base64 is read if what it holds is printable UTF-8 (not that of URLs: a hyphenated
    word could be some).
    """
    layers: list[Folded] = []
    for _ in range(DEPTH):
        layer = _layer(text, _replacements(text))
        if layer is None:
            break
        layers.append(layer)
        text = layer.text
    if mixed(text) and (layer := _layer(text, _alike(text))) is not None:
        layers.append(layer)
        text = layer.text
    return Decoded(text, tuple(layers))


Replacement = tuple[int, int, str]


def _replacements(text: str) -> list[Replacement]:
    found = []
    for match in _TOKEN.finditer(text):
        name = match.lastgroup or ""
        if name != "mask" and (read := _READ[name](match[0])) is not None and read != match[0]:
            found.append((*match.span(), _CONTROL.sub(" ", read)))
    return found


def _layer(text: str, replacements: Sequence[Replacement]) -> Folded | None:
    """The text with these replaced; None where there are none, or where nothing would be left."""
    parts: list[str] = []
    at: list[int] = []
    origin: list[int] = []
    width: list[int] = []
    size = done = 0
    for start, end, new in (*replacements, (len(text), len(text), "")):
        for piece, begin, wide in ((text[done:start], done, 0), (new, start, end - start)):
            if piece:
                parts.append(piece)
                at.append(size)
                origin.append(begin)
                width.append(wide)
                size += len(piece)
        done = end
    return Folded("".join(parts), at, origin, width) if replacements and size else None


def _alike(text: str) -> list[Replacement]:
    """Letters that look like one of ASCII, in words that have two scripts (confusables.txt of UTS 39)."""
    found = []
    for match in _RUN.finditer(text):
        if mixed(match[0]):
            for i, char in enumerate(match[0], match.start()):
                if (plain := _lookalike(char)) != char:
                    found.append((i, i + 1, plain))
    return found


@lru_cache(1 << 12)
def _lookalike(char: str) -> str:
    if char.isascii():
        return char
    return next((each["c"] for each in confusables_data.get(char, ()) if each["c"].isascii()), char)


def _bytes(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _escaped(token: str) -> str:
    if token[1] in "nrt/\"'":
        return {"n": "\n", "r": "\n", "t": "\t"}.get(token[1], token[1])
    units = [int(code, 16) for code in re.findall(r"[0-9A-Fa-f]{2,4}", token)]
    data = b"".join(unit.to_bytes(2, "little") for unit in units)  # halves of a pair come together
    return data.decode("utf-16-le", "replace")


def _tag(token: str) -> str:
    name = _NAME.search(token)
    return "" if token.startswith("<!--") or (name and name[0].lower() in _INLINE) else " "


def _base64(token: str) -> str | None:
    """None for what is no text in base64: other bytes, a long word."""
    packed = re.sub(r"[\r\n=]", "", token)
    try:
        text = base64.b64decode(packed + "=" * (-len(packed) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
    return text if all(c.isprintable() or c in "\t\r\n" for c in text) else None


_READ: dict[str, Callable[[str], str | None]] = {
    "entity": html.unescape,
    "percent": lambda token: _bytes(unquote_to_bytes(token)),
    "quoted": lambda token: _bytes(bytes.fromhex(re.sub(r"[=\r\n]", "", token))),
    "escaped": _escaped,
    "broken": lambda _: "",
    "tag": _tag,
    "colour": lambda _: "",
    "base64": _base64,
}
