"""Office files, notebooks, subtitles, .msg: every word of them is in the text, or is named or counted."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from pathlib import Path

import docx
import openpyxl
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

import documents
from taciturn.errors import MissingExtra
from taciturn.text.document import Document
from taciturn.text.readers import Blank, Quarantined, office, read


def one(tmp_path: Path, name: str, data: bytes | str, **options: object) -> list[Document | Quarantined | Blank]:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return list(read(path, **options).items())


def text(items: list[Document | Quarantined | Blank]) -> str:
    (found,) = (item for item in items if isinstance(item, Document))
    assert not [item for item in items if isinstance(item, Quarantined)]
    return found.text


def test_word(tmp_path: Path) -> None:
    made = documents.word("first\tline\nsecond", header="above", footer="below", cell="in a cell", comment="aside")
    assert text(one(tmp_path, "a.docx", made)) == "first\tline\nsecond\nin a cell\tnext\nabove\nbelow\naside"


def test_word_in_places_that_its_library_does_not_read(tmp_path: Path) -> None:
    made = docx.Document()
    paragraph = made.add_paragraph("a")
    ns, word = nsdecls("w"), paragraph._p
    word.append(parse_xml(f"<w:r {ns}><w:t xml:space='preserve'> </w:t></w:r>"))
    word.append(parse_xml(f"<w:ins {ns} w:id='1' w:author='x'><w:r><w:t>inserted</w:t></w:r></w:ins>"))
    word.append(parse_xml(f"<w:del {ns} w:id='2' w:author='x'><w:r><w:delText>deleted</w:delText></w:r></w:del>"))
    word.append(parse_xml(f"<w:r {ns}><w:fldChar w:fldCharType='begin'/><w:instrText>CODE</w:instrText></w:r>"))
    word.append(parse_xml(
        f"<w:r {ns}><w:pict><w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>"
    ))  # fmt: skip
    paragraph.paragraph_format.tab_stops.add_tab_stop(914400)
    for kind in ("Choice", "Fallback"):
        other = parse_xml(f"<w:r {ns}><w:t>twice</w:t></w:r>")
        holder = other.makeelement(f"{{http://schemas.openxmlformats.org/markup-compatibility/2006}}{kind}")
        holder.append(other)
        word.append(holder)
    made.add_picture(io.BytesIO(_png()))
    buffer = io.BytesIO()
    made.save(buffer)
    items = one(tmp_path, "a.docx", buffer.getvalue())
    assert text(items) == "a inserted\nboxed\ntwice"
    assert [item.what for item in items if isinstance(item, Blank)] == ["image"]
    assert "inserted" not in paragraph.text, "python-docx has learned to read insertions: use it"


def _png() -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (1, 1)).save(buffer, "PNG")
    return buffer.getvalue()


def test_slides_in_their_order(tmp_path: Path) -> None:
    made = documents.slides(*(f"slide {n}" for n in range(1, 12)), note="a note")
    lines = text(one(tmp_path, "a.pptx", made)).split("\n")
    assert lines[:11] == [f"slide {n}" for n in range(1, 12)]
    assert "a note" in lines


def test_a_sheet_is_a_table_or_a_document(tmp_path: Path) -> None:
    made = documents.workbook(
        {
            "tickets": [
                ["id", "text", "agent"],
                [1, "hello", "Ann"],
                [],
                [2.0, "more", None],
                [3, "x", "y", "too many"],
            ],
            "notes": [[None, "free", "=1+1"], [True, 1.25, 4111111111111111]],
            "nothing": [],
        },
        comment="aside",
    )
    items = one(tmp_path, "a.xlsx", made)
    found = {item.id: (item.text, item.user) for item in items if isinstance(item, Document)}
    assert list(found.values()) == [
        ("hello", None), ("more", None), ("\tfree\t=1+1\nTrue\t1.25\t4111111111111111", None), ("aside", None),
    ]  # fmt: skip
    assert sum(isinstance(item, Blank) for item in items) == 2
    (long,) = (item for item in items if isinstance(item, Quarantined))
    assert (long.location, long.reason) == ("sheet 1, row 4 below the header", "the row has more cells than the header")
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    assert book["tickets"]["C2"].value == "Ann"
    by = [item for item in one(tmp_path, "b.xlsx", made, user="agent") if isinstance(item, Document)]
    assert by[0].user == "Ann"


def test_pages_without_text_are_named(tmp_path: Path) -> None:
    scan, blank, whole = one(tmp_path, "a.pdf", documents.portable("one", None, "", "four"))
    assert isinstance(scan, Quarantined)
    assert (scan.location, "ocrmypdf" in scan.reason) == ("page 2", True)
    assert isinstance(blank, Blank)
    assert blank.location == "page 3"
    assert isinstance(whole, Document)
    assert "".join(whole.text.split()) == "onefour"


def test_a_locked_pdf_and_a_locked_word_file_are_named(tmp_path: Path) -> None:
    import pypdf

    writer = pypdf.PdfWriter(clone_from=io.BytesIO(documents.portable("secret")))
    writer.encrypt("password", algorithm="RC4-128")
    buffer = io.BytesIO()
    writer.write(buffer)
    (bad,) = one(tmp_path, "a.pdf", buffer.getvalue())
    assert isinstance(bad, Quarantined)
    assert "qpdf --decrypt" in bad.reason
    (bad,) = one(tmp_path, "a.docx", office.OLE + bytes(600))
    assert isinstance(bad, Quarantined)
    assert "without a password" in bad.reason


def test_rich_text(tmp_path: Path) -> None:
    made = r"{\rtf1\ansi\ansicpg1252 caf\'e9 \u8364 ?\par{\header above}{\*\annotation aside}{\footnote below}"
    made += r"{\pict 0}end\\header}"
    items = one(tmp_path, "a.rtf", made)
    found = text(items)
    assert all(word in found for word in ("café €", "above", "aside", "below", r"end\header"))
    assert [item.what for item in items if isinstance(item, Blank)] == ["image"]


def test_a_notebook(tmp_path: Path) -> None:
    cells = [
        {"source": ["# title\n", "words"], "attachments": {"a.png": {}}},
        {"source": "x = 1", "outputs": [
            {"text": ["printed\n"]}, {"data": {"text/plain": "shown", "text/html": "<b>no</b>", "image/png": "…"}},
            {"data": {"text/html": "<b>page</b>"}}, {"traceback": ["went", "wrong"]}]},
    ]  # fmt: skip
    items = one(tmp_path, "a.ipynb", json.dumps({"cells": cells}))
    assert text(items) == "# title\nwords\n\nx = 1\n\nprinted\n\nshown\n\npage\n\nwent\nwrong"
    assert sorted(item.what for item in items if isinstance(item, Blank)) == ["attachment", "image"]
    old = {"worksheets": [{"cells": [{"input": "y", "outputs": [{"text": "z", "png": "…"}]}]}]}
    assert text(one(tmp_path, "b.ipynb", json.dumps(old))) == "y\n\nz"


def test_subtitles(tmp_path: Path) -> None:
    srt = "1\r\n00:00:01,000 --> 00:00:02,500\r\n{\\an8}<i>Hello</i> 4 you\r\nand\r\n\r\n"
    srt += "2\r\n00:00:03,000 --> 00:00:04,000\r\n7\r\n"
    assert text(one(tmp_path, "a.srt", srt)) == "Hello 4 you\nand\n7"
    vtt = "WEBVTT - a title\n\nSTYLE\n::cue {}\n\nNOTE aside\n\n"
    vtt += "intro\n01:02.000 --> 01:03.000 align:start\n<v.loud Ann>a < b &amp; c\n"
    assert text(one(tmp_path, "a.vtt", vtt)) == "NOTE aside\nAnn: a < b & c"


def test_a_message_of_outlook(tmp_path: Path) -> None:
    made = documents.outlook({"0037": "Re: pin", "1000": "it is 4711\r\n", "5D01": "Ann@B.example", "1035": "<i@x>"}, 2)
    items = one(tmp_path, "a.msg", made)
    (found,) = (item for item in items if isinstance(item, Document))
    assert (found.text, found.user, found.id) == ("Re: pin\n\nit is 4711\r\n", "ann@b.example", "<i@x>")
    assert [item.what for item in items if isinstance(item, Blank)] == ["attachment (other)"] * 2
    page = documents.outlook({"1013": "<p>only a page"})
    assert text(one(tmp_path, "b.msg", page)) == "only a page"


def test_xml_stays_what_it_is(tmp_path: Path) -> None:
    bomb = "<!DOCTYPE a [<!ENTITY b 'bb'><!ENTITY c '&b;&b;'>]><a k='v'>&c; caf\u00e9<!-- note --></a>"
    made = f"<?xml version='1.0' encoding='iso-8859-1'?>\n{bomb}"
    assert text(one(tmp_path, "a.xml", made.encode("latin-1"))) == made


def test_office_files_that_expand_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(part: str, data: bytes) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(documents.word("x"))) as old, zipfile.ZipFile(buffer, "w", 8) as new:
            for info in old.infolist():
                new.writestr(info.filename, data if info.filename == part else old.read(info))
        return buffer.getvalue()

    names = "".join(f"<!ENTITY e{n + 1} '{f'&e{n};' * 10}'>" for n in range(12))
    bomb = f"<!DOCTYPE a [<!ENTITY e0 'lol'>{names}]><a>&e12;</a>".encode()
    items = one(tmp_path, "a.docx", changed("word/document.xml", bomb))
    assert not [item for item in items if isinstance(item, Document)]
    monkeypatch.setattr(office, "MOST", 1 << 20)
    (bad,) = one(tmp_path, "b.docx", changed("word/document.xml", bytes(1 << 21)))
    assert isinstance(bad, Quarantined)
    assert "unpacks to more than 1 MiB" in bad.reason


@pytest.mark.parametrize(
    ("name", "module"),
    [("a.docx", "lxml"), ("a.xlsx", "openpyxl"), ("a.pdf", "pypdf"), ("a.rtf", "striprtf"), ("a.msg", "olefile")],
)  # fmt: skip
def test_a_missing_library_is_named_with_its_extra(
    tmp_path: Path, name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for loaded in [each for each in sys.modules if each.partition(".")[0] == module]:
        monkeypatch.setitem(sys.modules, loaded, None)
    monkeypatch.setitem(sys.modules, module, None)
    data = documents.word("x") if name == "a.docx" else b"x"
    with pytest.raises(MissingExtra, match=r"pip install 'taciturn\[documents\]'"):
        one(tmp_path, name, data)
