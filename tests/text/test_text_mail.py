"""Mail: what is read of a message, in whatever charset and nesting, and where one message of a box ends."""

from __future__ import annotations

import mailbox
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import DataError
from taciturn.text.document import Document
from taciturn.text.readers import Blank, Quarantined, ReadOptions, read
from taciturn.text.readers.items import BadRecord
from taciturn.text.readers.mail import Mail, mail

HEAD = b"From: Ann <Ann@Example.org>\nMessage-ID: <1@x>\nSubject: Hi\n"


def parsed(data: bytes, **options: Any) -> Mail:
    return mail(data, ReadOptions(**options))


def text(data: bytes, **options: Any) -> str:
    return parsed(data, **options).value["text"]


def test_a_message_is_its_subject_and_its_body(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_bytes(HEAD + b"To: bob@x, Eve <eve@x>\nX-Folder: Inbox\n\nHello.\n")
    assert read(path).documents() == [Document("<1@x>", "Hi\n\nHello.\n", user="ann@example.org")]
    (other,) = read(path, text="body", user="to", id="x-folder", label="X-Folder").documents()
    assert other == Document("Inbox", "Hello.\n", user="bob@x", label="Inbox")
    with pytest.raises(DataError, match=r"no.* has a field 'txt'; fields there: body, from, message-id, subject, text"):
        list(read(path, text="txt").items())


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"=?utf-8?q?caf=C3=A9_?=\n =?utf-8?q?noir?=", "café noir"),
        (b"=?utf-8?b?Y2Fmww==?= =?UTF-8?Q?=A9?=", "café"),  # a character cut in two, as some programs do
        (b"a =?iso-8859-1?q?=E9?= =?utf-8?q?=C3=A9?= b", "a éé b"),
        (b"=?iso-2022-jp?B?GyRCJF4bKEI=?=", "ま"),
        (b"=?utf-8*en?q?x?=", "x"),
        ("plain é".encode(), "plain é"),
        (b"=?utf-8?b?!?= =?utf-8?x?a?= =?=", "=?utf-8?b?!?= =?utf-8?x?a?= =?="),
        (b"folded\r\n\t over lines", "folded over lines"),
        (b"=?utf-8?q?two=0Alines?=", "two lines"),
    ],
)
def test_headers(header: bytes, expected: str) -> None:
    assert parsed(b"Subject: " + header + b"\n\nx").value["subject"] == expected


@pytest.mark.parametrize(
    ("declared", "body", "expected"),
    [
        (b"text/plain; charset=iso-8859-1", b"caf\xe9", "café"),
        (b"text/plain; charset=ISO-2022-JP", b"\x1b$B$^\x1b(B", "ま"),
        (b'text/plain; charset="gb18030"', "中文".encode("gb18030"), "中文"),
        (b"text/plain; charset=koi8-r", "привет".encode("koi8-r"), "привет"),
        (b"text/plain; charset=windows-874", "ไทย".encode("cp874"), "ไทย"),
        (b"text/plain; charset=ISO-8859-8-I", "שלום".encode("iso8859-8"), "שלום"),
        (b"text/plain; charset=x-sjis", "ま".encode("shift_jis"), "ま"),
        (b"text/plain; charset=unicode", b"four", "four"),
        (b"text/plain; charset=us-ascii", "é".encode(), "é"),
        (b"text/plain", "é".encode(), "é"),
        (b"text/plain; charset=utf-7", b"+AOk-", "é"),
        (b"text/plain; charset=made-up", b"ascii", "ascii"),
        (b"text/html; charset=utf-8", b"<p>a&eacute;</p><p>b</p>", "aé\nb"),
        (b"text/html", b"<meta charset=windows-1252>\x80", "€"),
        (b"nonsense", b"x", "x"),
    ],
)
def test_charsets(declared: bytes, body: bytes, expected: str) -> None:
    assert text(b"Content-Type: " + declared + b"\n\n" + body) == expected
    import base64

    packed = b"Content-Transfer-Encoding: base64\nContent-Type: " + declared + b"\n\n" + base64.encodebytes(body)
    assert text(packed) == expected


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (HEAD + b"\ncaf\xe9", "a part of the body does not decode in UTF-8, at its byte 3"),
        (HEAD + b"Content-Type: text/plain; charset=ascii\n\ncaf\xe9", "does not decode in UTF-8"),
        (HEAD + b"Content-Type: text/plain; charset=gb18030\n\n\xff\xff", "does not decode in its charset"),
        (HEAD + b"Content-Type: text/plain; charset=made-up\n\n\xe9", "a charset that Python does not know"),
        (
            HEAD + b"Content-Type: text/plain; charset=unicode_escape\n\n\\xe9\xe9",
            "a charset that Python does not know",
        ),
        (HEAD + b"Content-Type: text/plain; charset=rot13\n\n\xe9", "a charset that Python does not know"),
        (b"Subject: caf\xe9\n\nx", "a header does not decode"),
        (b"Subject: =?x-y?q?=E9?=\n\nx", "a header is in a charset that Python does not know"),
    ],
)
def test_undecodable_mail_is_quarantined_or_private(data: bytes, reason: str) -> None:
    with pytest.raises(BadRecord, match=reason):
        parsed(data)
    kept = parsed(data, encoding_errors="replace")
    assert kept.private
    assert "\ufffd" in kept.value["text"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"Content-Type: multipart/mixed; boundary=b\n\nno parts here", "their boundary is missing"),
        (b"Content-Type: multipart/mixed\n\nx", "their boundary is missing"),
        (b"Content-Transfer-Encoding: base64\nSubject: s\n\nQUJDR", "cut off"),
        (b"Subject: " + b"x" * 40_000 + b"\n\nx", "a header of more than 32768 bytes"),
        (b"\n\nbody", "without headers"),
        (b"Content-Type: message/rfc822\n\n" * 60 + b"x", "nested more than 50 deep"),
    ],
)
def test_broken_mail(data: bytes, reason: str) -> None:
    with pytest.raises(BadRecord, match=reason):
        parsed(data)


def test_the_plain_alternative_is_read_and_attachments_are_named() -> None:
    message = EmailMessage()
    message["Subject"] = "s"
    message.set_content("plain\n")
    message.add_alternative("<p>rich</p>", subtype="html")
    message.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="secret.png")
    message.add_attachment("notes", filename="secret.txt")
    inner = EmailMessage()
    inner["Subject"] = "forwarded"
    inner.set_content("inner text\n")
    message.add_attachment(inner, disposition="inline")
    read_ = parsed(message.as_bytes())
    assert read_.value["text"] == "s\n\nplain\nforwarded\n\ninner text\n"
    assert read_.left_out == ["attachment (image)", "attachment (text)"]


def test_html_is_read_where_the_plain_alternative_says_nothing() -> None:
    message = EmailMessage()
    message.set_content(" \n")
    message.add_alternative("<html><head><style>p {}</style></head><p>rich</p></html>", subtype="html")
    assert text(message.as_bytes()) == "rich"


BOX = (
    b"From ann@x Mon Jan  1 10:20:30 2024\n"
    + HEAD
    + b"\nFirst.\n\nFrom now on, at 10:20 in 2024, I sleep.\n>From me.\n"
    b">>From quoted.\n\n"
    b"From 17@xxx Tue Dec 01 12:00:00 +0000 2020\r\nSubject: two\r\n\r\nSecond.\r\n\r\n"
    b"From - Sat Nov 01 00:00:00 2008\nSubject: three\n\ncaf\xe9\n\n"
    b"From MAILER-DAEMON Fri Jul  8 12:08:34 2011\nSubject: four\n\nFourth.\n"
)


def test_a_box_is_cut_where_messages_begin(tmp_path: Path) -> None:
    path = tmp_path / "a.mbox"
    path.write_bytes(BOX)
    one, two, bad, four = read(path).items()
    assert one == Document(
        "<1@x>",
        "Hi\n\nFirst.\n\nFrom now on, at 10:20 in 2024, I sleep.\nFrom me.\n>From quoted.\n",
        user="ann@example.org",
    )
    assert two == Document("a:2", "two\n\nSecond.\r\n")
    assert isinstance(bad, Quarantined)
    assert (bad.location, bad.source) == ("message 3 (line 17)", "a.mbox")
    assert four == Document("a:4", "four\n\nFourth.\n")
    (tmp_path / "Inbox").write_bytes(BOX)
    assert next(read(tmp_path / "Inbox").items()) == one


def test_a_long_message_is_quarantined_and_costs_no_memory(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "a.mbox"
    with path.open("wb") as file:
        file.write(b"From a Mon Jan  1 10:20:30 2024\nSubject: big\n\n")
        for _ in range(16):
            file.write(b"x" * 2**20 + b"\n")
        file.write(b"\nFrom a Mon Jan  1 10:20:30 2024\nSubject: small\n\nok\n")
    tracemalloc.start()
    big, small = read(path, max_record_bytes=2**16).items()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(big, Quarantined)
    assert "max_record_bytes" in big.reason
    assert isinstance(small, Document)
    assert peak < 4 * 2**20


def test_what_is_no_mail_says_so(tmp_path: Path) -> None:
    for name in ("a.mbox", "a.eml"):
        (tmp_path / name).write_text("This is not mail.\n")
        with pytest.raises(DataError, match="is no m"):
            list(read(tmp_path / name).items())
        (tmp_path / name).write_text("\n \n")
        with pytest.raises(DataError, match="the corpus is empty"):
            list(read(tmp_path / name).items())
    (tmp_path / "a.mbox").write_bytes(
        b"From a Mon Jan  1 10:20:30 2024\n\n\nFrom a Mon Jan  1 10:20:30 2024\nS: x\n\nx"
    )
    assert [type(item) for item in read(tmp_path / "a.mbox").items()] == [Blank, Document]


# A line that begins with ">From " is left out: mboxo does not quote it, mboxrd does, and no reader can tell the two apart.
words = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=20).filter(
    lambda s: not s.lstrip(">").startswith("From ")
)
paragraphs = st.lists(st.one_of(words, st.sampled_from(["From a Mon 10:10 2024", "From x", "--", "."])), max_size=5)


@given(st.lists(st.tuples(words, paragraphs), min_size=1, max_size=4))
def test_boxes_of_the_standard_library_come_back(tmp_path_factory: pytest.TempPathFactory, sent: Any) -> None:
    path = tmp_path_factory.mktemp("box") / "a.mbox"
    box = mailbox.mbox(path)
    expected = []
    for subject, body in sent:
        message = EmailMessage()
        message["Subject"] = subject
        message.set_content("\n".join(body) + "\n")
        box.add(message)
        expected.append((subject.strip(), "\n".join(body)))
    box.close()
    found = list(read(path, text="body").items()) if any(b.strip() for _, b in expected) else []
    texts = [item.text.rstrip("\n") for item in found if isinstance(item, Document)]
    assert texts == [body.rstrip("\n") for _, body in expected if body.strip()]


def test_screening_counts_attachments_apart_from_blank_lines(tmp_path: Path) -> None:
    from taciturn.screening import policy, screen

    message = EmailMessage()
    message["From"], message["Subject"] = "dana@example.org", "numbers"
    message.set_content("see the sheet, please")
    message.add_attachment(b"\x00\x01", maintype="application", subtype="octet-stream", filename="a.bin")
    (tmp_path / "a.eml").write_bytes(bytes(message))
    (tmp_path / "b.jsonl").write_text('{"text": "hello"}\n\n')
    screened = screen(read(*sorted(tmp_path.iterdir())), policy("email"), policy("conservative"))
    assert (screened.counts.left_out, screened.counts.blank, screened.counts.documents) == (1, 1, 2)


def test_what_stands_before_a_box_is_named_and_from_lines_in_a_mail_stay(tmp_path: Path) -> None:
    (tmp_path / "a.mbox").write_bytes(b"Exported by a program\n\nFrom a Mon Jan  1 10:20:30 2024\nSubject: s\n\nbody\n")
    before, message = read(tmp_path / "a.mbox").items()
    assert isinstance(before, Quarantined)
    assert (before.location, "before the first message" in before.reason) == ("line 1", True)
    assert isinstance(message, Document)
    lines = "".join(f"From {n} o'clock on 10:20 in 2024\nSubject: {n}\n\n" for n in range(10))
    (tmp_path / "a.eml").write_text(f"Subject: s\n\n{lines}")
    (whole,) = read(tmp_path / "a.eml").documents()
    assert whole.text == f"s\n\n{lines}"
