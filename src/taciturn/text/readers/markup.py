"""HTML into the text a reader sees. ``html.parser`` takes 6 s for 40 kB of tags left open; this takes linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.charsets import codec_of, decoded
from taciturn.text.readers.files import decode, whole
from taciturn.text.readers.formats import Item
from taciturn.text.readers.held import File
from taciturn.text.readers.items import BadRecord, Quarantined, Row

_TAG = re.compile(r"""</?([a-zA-Z][^\s/>]*+)(?:[^>"']++|"[^"]*+"|'[^']*+')*+>""")
_HASTY_TAG = re.compile(r"</?([a-zA-Z][^\s/>]*+)[^>]*+>")
_SPACE = re.compile(r"[ \t\n\r\f]+")
_TIDY = ((re.compile(" {2,}"), " "), (re.compile(r" *\t[ \t]*"), "\t"), (re.compile(r"[ \t]*\n[ \t\n]*"), "\n"))
_UNSEEN = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style")}
_BLOCK_NAMES = """
    address article aside blockquote body br caption center dd div dl dt fieldset figcaption figure footer form h1 h2 h3
    h4 h5 h6 head header hr html legend li main nav ol option p pre section select table tbody tfoot thead title tr ul
    """
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_META = re.compile(rb"<meta\b[^>]{0,200}?\bcharset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_PROLOG = re.compile(rb"<\?xml\b[^>]{0,200}?\bencoding\s*=\s*[\"']([A-Za-z0-9_:.-]{1,40})[\"']")
_META_WITHIN = 1024  # bytes, as the HTML standard has it


def html(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """A page is one document: its text in a charset that a <meta> declares, else UTF-8."""
    try:
        data, offset = whole(path, name, options)
        if options.encoding is None and (charset := declared(data)):
            source, private = decoded(data, charset, "the page", options.encoding_errors)
        else:
            source, private = decode(data, offset, options)
        yield Row(1, "line 1", {options.text: text_of_html(source)}, private)
    except BadRecord as bad:
        yield Quarantined(name, bad.location or "line 1", bad.reason)


def xml(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """The file as it stands, tags and all, in the encoding it declares: names of tags say what a value is, attributes and
    comments hold text too, and an entity that is not expanded is no bomb."""
    try:
        data, offset = whole(path, name, options)
        found = _PROLOG.match(data) if options.encoding is None else None
        if found and not (codec_of(charset := found[1].decode("ascii")) or "").startswith(("utf-16", "utf-32")):
            source, private = decoded(data, charset, "the file", options.encoding_errors)
        else:
            source, private = decode(data, offset, options)
        yield Row(1, "line 1", {options.text: source}, private)
    except BadRecord as bad:
        yield Quarantined(name, bad.location or "line 1", bad.reason)


def declared(data: bytes) -> str | None:
    """The charset that a page declares for itself. A page that can say so in ASCII is not UTF-16 or UTF-32, by any name."""
    found = _META.search(data, 0, _META_WITHIN)
    charset = found[1].decode("ascii") if found else None
    return None if charset is None or (codec_of(charset) or "").startswith(("utf-16", "utf-32")) else charset


def text_of_html(source: str) -> str:
    """The visible text: blocks on lines of their own, cells apart by a tab, references as characters.

    Scripts, styles, comments and attributes are left out. Never fails but for a BadRecord where a character reference is
    thousands of digits long.

    >>> text_of_html("<p>Fish &amp;\\n  chips<br>twice<script>x()</script>")
    'Fish & chips\\ntwice'
    """
    parts: list[str] = []
    pattern = _TAG
    at, end, last = 0, len(source), source.rfind(">")
    while at < end:
        mark = source.find("<", at)
        if mark < 0:
            mark = end
        parts.append(_SPACE.sub(" ", _unescaped(source[at:mark])))
        if mark == end:
            break
        if source.startswith("<!--", mark):
            at = _after(source, "-->", mark + 4)
        elif source.startswith(("<!", "<?"), mark):
            at = _after(source, ">", mark)
        elif found := pattern.match(source, mark) or _HASTY_TAG.match(source, mark):
            # A quote that is never closed is met once; from there on a tag ends at the first ">".
            pattern = found.re
            tag = found[1].lower()
            parts.append("\n" if tag in _BLOCKS else "\t" if tag in ("td", "th") else "")
            at = found.end()
            if tag in _UNSEEN and source[mark + 1] != "/":
                close = _UNSEEN[tag].search(source, at)
                at = close.start() if close else end
        elif mark > last:
            parts.append(_SPACE.sub(" ", _unescaped(source[mark:])))
            break
        else:
            parts.append("<")
            at = mark + 1
    text = "".join(parts)
    for pattern, instead in _TIDY:
        text = pattern.sub(instead, text)
    return text.strip(" \t\n")


def _after(source: str, mark: str, start: int) -> int:
    found = source.find(mark, start)
    return len(source) if found < 0 else found + len(mark)


def _unescaped(text: str) -> str:
    try:
        return unescape(text)
    except ValueError:  # Python refuses integers of more than 4300 digits
        raise BadRecord("holds a character reference of thousands of digits") from None
