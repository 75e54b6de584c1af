"""Word and PowerPoint files (.docx, .pptx) into their text: a zip of XML parts (ECMA-376), each walked from end to end.

python-docx and python-pptx are made to write such files: what their paragraphs and shapes give lacks text boxes, insertions
and footnotes. lxml refuses what expands without bound; entities are not resolved.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from taciturn.errors import MissingExtra
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.files import content
from taciturn.text.readers.formats import Item
from taciturn.text.readers.held import MOST, File
from taciturn.text.readers.items import BadRecord, Blank, Quarantined, Row

OLE = b"\xd0\xcf\x11\xe0"
_KINDS = "document|header|footer|footnotes|endnotes|comments|charts|diagrams/data"
_WORD = re.compile(rf"word/(?:glossary/)?({_KINDS})[^/]*/?[^/]*\.xml")
_POINT = re.compile(r"ppt/(slides|notesSlides|comments|charts|diagrams)/(?!layout|colors|quickStyle|style)[^/]*\.xml")
_ORDER = ("document", "slides", "header", "footer", "footnotes", "endnotes", "notesSlides", "comments")
_LEFT_OUT = (("/media/", "image"), ("/embeddings/", "embedded file"), ("vbaProject", "macro"))
_DIGITS = re.compile(r"\d+")

Parts = dict[str, bytes]


def docx(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """The body with its tables and text boxes, then headers, footers, notes and comments. Deleted text is left out, as are
    field codes; images and embedded files are counted."""
    yield from _document(path, name, options, _WORD)


def pptx(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """The slides in their order, then their notes, comments and charts. Layouts and masters are left out."""
    yield from _document(path, name, options, _POINT)


def _document(path: File, name: str, options: ReadOptions, wanted: re.Pattern[str]) -> Iterator[Item]:
    try:
        parts = unpacked(content(path, name))
        found = sorted((_place(match), part) for part in parts if (match := wanted.fullmatch(part)))
        text = "".join(f"{read}\n" for _, part in found if (read := text_of_part(parts[part]).strip("\n")))
    except BadRecord as bad:
        yield Quarantined(name, "line 1", bad.reason)
        return
    for part in parts:
        for where, kind in _LEFT_OUT:
            if where in part:
                yield Blank(name, "line 1", kind)
    yield Row(1, "line 1", {options.text: text.removesuffix("\n")})


def _place(match: re.Match[str]) -> tuple[int, int, str]:
    """Kinds in their order, then slide2 before slide10."""
    kind, part = match[1], match[0]
    number = _DIGITS.findall(part)
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER), int(number[-1]) if number else 0, part


def unpacked(data: bytes) -> Parts:
    """The parts of an office file by name; pictures and the like are empty. Raises BadRecord."""
    if data.startswith(OLE):
        raise BadRecord("encrypted, or in an older format; save it without a password in the present one")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            every = archive.infolist()
            if sum(info.file_size for info in every if info.filename.endswith(".xml")) > MOST:
                raise BadRecord(f"unpacks to more than {MOST >> 20} MiB; split it")
            return {i.filename: archive.read(i) if i.filename.endswith((".xml", ".rels")) else b"" for i in every}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError):
        raise BadRecord("damaged, or no office file: open it in the program that wrote it and save it again") from None


def parsed(data: bytes) -> Any:
    """The root element of a part. Raises BadRecord for what is no XML, or expands."""
    try:
        from lxml import etree
    except ImportError:
        raise MissingExtra("lxml", "documents") from None
    try:
        return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True))
    except etree.XMLSyntaxError:
        raise BadRecord("damaged inside: a part is not valid XML; open it in its program and save it again") from None


def text_of_part(data: bytes) -> str:
    """The text of a part: a line for each paragraph and row, tabs between cells."""
    return "".join(_texts(parsed(data)))


def _texts(element: Any) -> Iterator[str]:
    if not isinstance(element.tag, str):  # an entity or a processing instruction
        return
    tag = element.tag.rpartition("}")[2]
    if tag == "t":
        yield element.text or ""
    elif tag in ("v", "text"):  # of numbers in charts, of comments
        yield element.text or ""
        yield from (text for child in element for text in _texts(child))
        yield "\n"
    elif tag in ("br", "cr"):
        yield "\n"
    elif tag == "tab":
        yield "\t"
    elif tag == "noBreakHyphen":
        yield "-"
    elif tag == "tc":
        yield _joined(element).strip("\n") + "\t"
    elif tag == "tr":
        yield _joined(element).removesuffix("\t") + "\n"
    elif tag == "txbxContent":
        yield "\n" + _joined(element)
    elif tag not in ("Fallback", "pPr"):  # the same again for old readers; tab stops
        for child in element:
            yield from _texts(child)
        if tag == "p":
            yield "\n"


def _joined(element: Any) -> str:
    return "".join(text for child in element for text in _texts(child))
