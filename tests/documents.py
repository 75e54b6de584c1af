"""Files of office programs for tests, written by the libraries people write them with, or by hand where there is none."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping

import docx
import openpyxl
import pptx
import pptx.util
from openpyxl.comments import Comment

FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def word(body: str, *, header: str = "", footer: str = "", cell: str = "", comment: str = "") -> bytes:
    """A Word file: a paragraph for each line, then a table of one row."""
    made = docx.Document()
    for line in body.split("\n"):
        paragraph = made.add_paragraph(line)
    if comment:
        made.add_comment(paragraph.runs, comment, author="a")
    if cell:
        made.add_table(1, 2).rows[0].cells[0].text = cell
        made.tables[0].rows[0].cells[1].text = "next"
    made.sections[0].header.paragraphs[0].text = header
    made.sections[0].footer.paragraphs[0].text = footer
    return _saved(made)


def slides(*texts: str, note: str = "") -> bytes:
    """A slide with a text box for each text, a note on the last."""
    made = pptx.Presentation()
    for text in texts:
        slide = made.slides.add_slide(made.slide_layouts[6])
        slide.shapes.add_textbox(0, 0, pptx.util.Inches(1), pptx.util.Inches(1)).text_frame.text = text
    if note:
        slide.notes_slide.notes_text_frame.text = note
    return _saved(made)


def workbook(sheets: Mapping[str, list[list[object]]], comment: str = "") -> bytes:
    made = openpyxl.Workbook()
    made.remove(made.active)
    for title, rows in sheets.items():
        sheet = made.create_sheet(title)
        for row in rows:
            sheet.append(row)
    if comment:
        sheet["A1"].comment = Comment(comment, "a")
    return _saved(made)


def portable(*pages: str | None) -> bytes:
    """A PDF with a page for each text; "" is an empty page, None one that shows a box and has no text."""
    shown = [
        b""
        if text == ""
        else b"0 0 9 9 re f"
        if text is None
        else b"BT /F1 12 Tf 72 720 Td (" + _escaped(text) + b") Tj ET"
        for text in pages
    ]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    ]
    for number, stream in enumerate(shown):
        about = "/Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>"
        page = f"<<{about}/Contents {5 + 2 * number} 0 R>>"
        objects += [page.encode(), f"<</Length {len(stream)}>>stream\n".encode() + stream + b"\nendstream"]
    data, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    rows = b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    size = len(objects) + 1
    head = f"xref\n0 {size}\n0000000000 65535 f \n".encode()
    return data + head + rows + f"trailer<</Size {size}/Root 1 0 R>>\nstartxref\n{len(data)}\n%%EOF\n".encode()


def outlook(properties: Mapping[str, str], attachments: int = 0) -> bytes:
    """A .msg file: properties by tag ("0037": subject), stored as UTF-16. A compound file (MS-CFB) of whole sectors."""
    streams = {f"__substg1.0_{tag}001F": text.encode("utf-16-le") for tag, text in properties.items()}
    streams = {name: data + bytes(-len(data) % 512 or 0) for name, data in streams.items()}
    streams = {name: data + bytes(max(0, 4096 - len(data))) for name, data in streams.items()}
    folders = [f"__attach_version1.0_#{n:08X}" for n in range(attachments)]
    count = 1 + len(streams) + len(folders)
    chain: list[int] = []
    body = b""

    def placed(data: bytes) -> int:
        nonlocal body
        start, sectors = 1 + len(chain), len(data) // 512
        chain.extend([*range(start + 1, start + sectors), END])
        body += data
        return start

    entries = [_entry("Root Entry", 5, child=1, right=FREE, start=END, size=0)]
    for number, (name, data) in enumerate(streams.items(), 1):
        right = number + 1 if number + 1 < count else FREE
        entries.append(_entry(name, 2, child=FREE, right=right, start=placed(data), size=len(data)))
    for number, name in enumerate(folders, 1 + len(streams)):
        right = number + 1 if number + 1 < count else FREE
        entries.append(_entry(name, 1, child=FREE, right=right, start=END, size=0))
    directory = b"".join(entries)
    directory = placed(directory + bytes(-len(directory) % 512))
    table = [FAT, *chain]
    assert len(table) <= 128, "one sector of the table is enough for a test"
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    head += struct.pack("<IIIIIIIII", 0, 1, directory, 0, 4096, END, 0, END, 0)
    head += struct.pack("<109I", 0, *[FREE] * 108)
    return head + struct.pack("<128I", *table, *[FREE] * (128 - len(table))) + body


def _entry(name: str, kind: int, child: int, right: int, start: int, size: int) -> bytes:
    text = name.encode("utf-16-le") + b"\0\0"
    return (
        text.ljust(64, b"\0") + struct.pack("<HBBIII", len(text), kind, 1, FREE, right, child) + bytes(36)
        + struct.pack("<IQ", start, size)
    )  # fmt: skip


def _escaped(text: str) -> bytes:
    return text.encode("cp1252").replace(b"\\", rb"\\").replace(b"(", rb"\(").replace(b")", rb"\)")


def _saved(made: object) -> bytes:
    buffer = io.BytesIO()
    made.save(buffer)  # type: ignore[attr-defined]
    return buffer.getvalue()
