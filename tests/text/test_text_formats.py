"""Address books, chats, pages, compressed and named files: what becomes of each."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import DataError, MissingExtra, UsageError
from taciturn.text.document import Document, Turn
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers import Blank, Quarantined, read
from taciturn.text.readers.detect import format_of
from taciturn.text.readers.markup import text_of_html


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


CARDS = (
    "BEGIN:VCARD\r\nVERSION:2.1\r\nN;CHARSET=iso-8859-1;ENCODING=QUOTED-PRINTABLE:Caf=E9;Ann;;Dr.\r\n"
    "NOTE;ENCODING=QUOTED-PRINTABLE:one=0D=0Atwo=\r\n and three\r\nPHOTO;JPEG;ENCODING=BASE64:\r\n AAAA\r\n BBBB\r\n\r\n"
    "TEL;HOME:+44 20 7946 0000\r\nEND:VCARD\r\n\r\n"
    "begin:vcard\nVERSION:3.0\nFN:Bob\\, the\\n sec\n ond\nitem1.EMAIL;type=\"a:b;c\":bob@x\n"
    "ADR;TYPE=home:;;1 Main St;Town\\;ship;;12345;\nUID:u-1\nKEY;ENCODING=b:AAAA\nend:vcard\n"
    "BEGIN:VCARD\nVERSION:4.0\nFN:Ünal\nPHOTO:data:image/png;base64,AAAA\nNICKNAME:\nEND:VCARD\n"
)  # fmt: skip


def test_cards(tmp_path: Path) -> None:
    path = write(tmp_path / "a.vcf", CARDS)
    assert list(read(path).items()) == [
        Blank("a.vcf", "card 1 (line 1)", "PHOTO"),
        Document("a:1", "N: Café, Ann, Dr.\nNOTE: one\r\ntwo and three\nTEL: +44 20 7946 0000\n"),
        Blank("a.vcf", "card 2 (line 13)", "KEY"),
        Document("u-1", "FN: Bob, the\n second\nEMAIL: bob@x\nADR: 1 Main St, Town;ship, 12345\n"),
        Blank("a.vcf", "card 3 (line 22)", "PHOTO"),
        Document("a:3", "FN: Ünal\n"),
    ]
    assert [d.text for d in read(write(tmp_path / "b.vcf", CARDS[CARDS.index("begin") :]), text="fn").documents()] == [
        "Bob, the\n second",
        "Ünal",
    ]


@pytest.mark.parametrize(
    ("content", "reason", "where"),
    [
        (b"BEGIN:VCARD\nFN:x\n", "cut off", "card 1 (line 1)"),
        (b"BEGIN:VCARD\nno property\nEND:VCARD\n", "property 1 of the card has no name", "card 1 (line 1)"),
        (b"BEGIN:VCARD\nFN:caf\xe9\nEND:VCARD\n", "property 1 of the card does not decode in UTF-8", "card 1 (line 1)"),
        (b"BEGIN:VCARD\nFN;CHARSET=x-y:caf\xe9\nEND:VCARD\n", "charset that Python does not know", "card 1 (line 1)"),
        (b"BEGIN:VCARD\nFN:x\nEND:VCARD\nstray\n", "outside of a card", "line 4"),
        (b"BEGIN:VCARD\nFN:" + b"x" * 2000 + b"\nEND:VCARD\n", "max_record_bytes", "card 1 (line 1)"),
    ],
)
def test_bad_cards(tmp_path: Path, content: bytes, reason: str, where: str) -> None:
    path = write(tmp_path / "a.vcf", content)
    (bad,) = [item for item in read(path, max_record_bytes=1000).items() if isinstance(item, Quarantined)]
    assert reason in bad.reason
    assert bad.location == where


STAMPS = {
    "ios": ("[31/12/2020, 21:41:07] ", "[31/12/2020, 21:42:07] ", "\u200e[01/01/2021, 00:00:01] "),
    "ios, 12 hours": ("[12/31/20, 9:41:07\u202fPM] ", "[12/31/20, 9:42:07\u202fPM] ", "[1/1/21, 12:00:01\u202fAM] "),
    "android": ("12/31/20, 9:41 PM - ", "12/31/20, 9:42 p.m. - ", "1/1/21, 12:00 AM - "),
    "german": ("31.12.20, 21:41 - ", "31.12.20, 21:42 - ", "01.01.21, 00:00 - "),
    "iso": ("2020-12-31, 21:41 - ", "2020-12-31 21:42 – ", "2021-01-01, 00:00 - "),
    "arabic": ("٣١/١٢/٢٠٢٠، ٩:٤١ م - ", "٣١/١٢/٢٠٢٠، ٩:٤٢ م - ", "١/١/٢٠٢١، ١٢:٠٠ ص - "),
}


@pytest.mark.parametrize("style", STAMPS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_whatsapp(tmp_path: Path, style: str, end: str) -> None:
    said = ("Ann: Hi\n", "Bob B.: two\nlines: yes\n", "Ann: \u200eimage omitted\n")
    text = "".join(stamp + each for stamp, each in zip(STAMPS[style], said, strict=True))
    (chat,) = read(write(tmp_path / "chat.txt", text.replace("\n", end)), format="whatsapp").documents()
    assert chat.text == "Hi\ntwo\nlines: yes\n\u200eimage omitted\n"
    assert chat.turns == (Turn(0, 3, "Ann"), Turn(3, 18, "Bob B."), Turn(18, 33, "Ann"))


def test_whatsapp_notices_and_faults(tmp_path: Path) -> None:
    head = "12/31/20, 9:41 PM - "
    path = write(tmp_path / "c.txt", f"{head}Ann added Bob\n{head}Bob: Hi\n{head}Ann:\n".encode() + b"caf\xe9\nlast\n")
    chat, bad = sorted(read(path, format="whatsapp").items(), key=lambda item: isinstance(item, Quarantined))
    assert isinstance(chat, Document)
    assert chat.text == "Ann added Bob\nHi\n\nlast\n"
    assert [turn.speaker for turn in chat.turns] == [None, "Bob", "Ann"]
    assert isinstance(bad, Quarantined)
    assert bad.location == "line 4"
    (kept,) = read(path, format="whatsapp", encoding_errors="replace").documents()
    assert kept.private_because
    for other in ("Dear Ann,\n", "2020. 12. 31. 오후 9:41, Ann : Hi\n"):
        with pytest.raises(DataError, match="is no WhatsApp export: line 1 does not begin with a date and a time"):
            list(read(write(tmp_path / "d.txt", other), format="whatsapp").items())
    (long,) = read(
        write(tmp_path / "e.txt", "[31/12/2020, 21:41:07] Ann: Hi\n" * 9), format="whatsapp", max_record_bytes=200
    ).items()
    assert isinstance(long, Quarantined)


def slack(folder: Path) -> Path:
    days: dict[str, Any] = {
        "users.json": [{"id": "U1", "name": "ann"}, {"id": "U2"}],
        "channels.json": [{"name": "general"}],
        "general/2024-01-02.json": [{"type": "message", "user": "U9", "text": "later"}],
        "general/2024-01-01.json": [
            {"type": "message", "user": "U1", "text": "a &lt; b &amp;amp; c"},
            {"type": "message", "subtype": "channel_join", "user": "U2", "text": "<@U2> has joined"},
            {"type": "message", "user": "U1", "text": "", "files": [{"id": "F1"}]},
            {"type": "message", "text": None},
            {"type": "message", "subtype": "bot_message", "username": "robot", "text": "beep"},
        ],
        "random/2024-01-01.json": [],
        "random/2024-01-02.json": {"not": "a list"},
    }
    for name, value in days.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(value))
    return folder


def test_slack_folder_and_zip(tmp_path: Path) -> None:
    folder = slack(tmp_path / "export")
    found = list(read(folder, format="slack").items())
    assert found == [
        Blank("export", "general/2024-01-01.json, message 3", "shared file"),
        Quarantined("export", "general/2024-01-01.json, message 4", "holds no object with a text"),
        Document(
            "general/2024-01-01",
            "a < b &amp; c\n<@U2> has joined\nbeep\n",
            turns=(Turn(0, 14, "ann"), Turn(14, 31, None), Turn(31, 36, "robot")),
        ),
        Document("general/2024-01-02", "later\n", turns=(Turn(0, 6, "U9"),)),
        Blank("export", "random/2024-01-01.json"),
        Quarantined("export", "random/2024-01-02.json", "holds no list of messages"),
    ]
    packed = tmp_path / "export.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in folder.rglob("*.json"):
            archive.write(path, path.relative_to(folder).as_posix())
    again = list(read(packed, format="slack").items())
    assert [item for item in again if isinstance(item, Document)] == [i for i in found if isinstance(i, Document)]
    assert len(again) == len(found)
    write(packed, packed.read_bytes()[:-30])
    with pytest.raises(DataError, match="damaged or encrypted zip"):
        list(read(packed, format="slack").items())
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="is no Slack export"):
        list(read(tmp_path / "empty", format="slack").items())


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("plain & simple", "plain & simple"),
        ("<p>a<br/>b</p>\n\n<p>c", "a\nb\nc"),
        ("<ul><li>one</li> <li>two</li></ul>", "one\ntwo"),
        ("<tr><td>a</td> <td>b <td>c</tr><tr><th>d</table>", "a\tb\tc\nd"),
        ("<title>T</title><style>x{}</style><SCRIPT>if (a<b) x('</p>')</SCRIPT>seen", "T\nseen"),
        ("a<!-- x > y -->b<!DOCTYPE html>c<?php d ?>e", "abce"),
        ("&eacute;&#233;&#xe9;&nope;&amp;lt;", "ééé&nope;&lt;"),
        ("1 < 2 and 3 > 2 <3", "1 < 2 and 3 > 2 <3"),
        ('<a title="a > b" href=x>link</a>', "link"),
        ('<a title="never closed>link</a> text', "link text"),
        ("open <a tag", "open <a tag"),
        ("open <!-- comment", "open"),
        ("wide\n   spaces\t\there", "wide spaces here"),
        ("\u00a0non-breaking\u2028", "\u00a0non-breaking\u2028"),
    ],
)
def test_pages(source: str, expected: str) -> None:
    assert text_of_html(source) == expected


@given(st.text(max_size=60))
def test_text_that_is_escaped_comes_back_but_for_white_space(text: str) -> None:
    from html import escape, unescape

    again = text_of_html(f"<p>{escape(text)}</p>")
    assert again.split() == unescape(escape(text)).split()


def test_a_page_declares_its_charset(tmp_path: Path) -> None:
    page = "<html><head><meta charset='windows-1252'></head>€</html>"
    (latin,) = read(write(tmp_path / "a.html", page.encode("cp1252"))).documents()
    assert latin.text == "€"
    (wrong,) = read(write(tmp_path / "b.html", "<p>€".encode("cp1252"))).items()
    assert isinstance(wrong, Quarantined)
    for name in ("utf-16", "utf16", "U16", "utf-32", "unicode"):
        (ascii_page,) = read(
            write(tmp_path / "d.html", f"<meta charset={name}>pin 4711 of Ann."), encoding_errors="replace"
        ).documents()
        assert ascii_page.text == "pin 4711 of Ann."
    (again,) = read(write(tmp_path / "c.html", "<meta charset=utf-16>€")).documents()
    assert again.text == "€"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.py", b"x = 1", "text"), ("a.SQL", b"", "text"), ("a.yml.gz", b"", "text"), ("a.log.zst", b"", "text"),
        (".env", b"A=1", "text"), (".env.prod", b"A=1", "text"), ("config.env", b"", "text"), ("a.pem", b"", "text"),
        ("a.htm", b"", "html"), ("a.eml", b"", "eml"), ("a.mbox", b"", "mbox"), ("a.vcf", b"", "vcard"),
        ("private_key", b"-----BEGIN", "text"), ("cut", b"\xe2\x82\xac" * 1400, "text"), ("empty", b"", "text"),
        ("Inbox", b"From a Mon Jan  1 10:20:30 2024\n", "mbox"), ("cards", b"\nbegin:vcard\n", "vcard"),
        ("binary", b"\x7fELF\0\0", None), ("latin", b"caf\xe9 au lait", None), ("a.xyz", b"text", None),
        ("a.zip", b"", "archive"), ("a.tar.gz", b"", "archive"), ("a.docx", b"", "docx"), ("a.vtt", b"", "subtitles"),
        ("a.doc", b"", None), ("a.png", b"", None), ("a.pst", b"", None),
    ],
)  # fmt: skip
def test_the_format_of_a_file(tmp_path: Path, name: str, content: bytes, expected: str | None) -> None:
    path = write(tmp_path / name, content)
    if name.endswith((".gz", ".zst")):
        assert format_of(path, name, ReadOptions()) == expected
    elif expected is None:
        with pytest.raises(DataError, match=r"cannot tell the format of .*format='text'|tesseract|soffice|readpst"):
            format_of(path, name, ReadOptions())
    else:
        assert format_of(path, name, ReadOptions()) == expected


@pytest.mark.parametrize(
    ("row", "chat"),
    [
        ({"messages": []}, "openai"),
        ({"conversations": []}, "sharegpt"),
        ({"prompt": "", "completion": ""}, "pairs"),
        ({"instruction": "", "output": ""}, "alpaca"),
    ],
)
def test_conversations_are_recognised_in_the_error(tmp_path: Path, row: dict[str, Any], chat: str) -> None:
    path = write(tmp_path / "a.jsonl", json.dumps(row) + "\n")
    with pytest.raises(DataError, match=rf"they look like conversations: chat='{chat}'"):
        list(read(path).items())


def test_named_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    folder = tmp_path / "set"
    (folder / "data").mkdir(parents=True)
    pq.write_table(pa.table({"body": ["a", "b"], "other": [1, 2]}), folder / "data" / "train-00000.parquet")
    pq.write_table(pa.table({"body": ["c"], "other": [3]}), folder / "data" / "test-00000.parquet")
    train = read(f"hf:{folder}#train", text="body")
    assert [(d.id, d.text) for d in train.documents()] == [("set#train:1", "a"), ("set#train:2", "b")]
    digests = train.digests()
    assert digests == read(f"hf:{folder}#train").digests()
    with pytest.raises(UsageError, match=r"has the splits test, train; name one: hf:.*#test"):
        read(f"hf:{folder}", text="body").documents()
    with pytest.raises(UsageError, match="did you mean 'train'"):
        read(f"hf:{folder}#trian", text="body").documents()
    with pytest.raises(DataError, match=r"none of the 2 records has a field 'text'; fields there: body, other"):
        read(f"hf:{folder}#train").documents()
    (folder / "data" / "test-00000.parquet").unlink()
    assert len(read(f"hf:{folder}", text="body").documents()) == 2
    assert read(f"hf:{folder}#train").digests() != digests
    with pytest.raises(DataError, match=r"cannot load the data set 'nobody/nothing' \(.*where there is no network"):
        read("hf:nobody/nothing").documents()
    with pytest.raises(UsageError, match="needs the name"):
        read("hf:#train").documents()
    assert datasets
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"pip install 'taciturn\[datasets\]'"):
        read("hf:nobody/nothing").documents()


def test_folders_that_are_no_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (".", str(tmp_path)):
        with pytest.raises(DataError, match=r"is no dataset written by save_to_disk; .*hf:"):
            read(name, format="datasets").documents()
