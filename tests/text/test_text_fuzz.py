"""Readers on damaged files: whatever the bytes, items or a TaciturnError, soon, and not a word of the content in either."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import documents
from taciturn.errors import TaciturnError
from taciturn.screening.policies.deadline import deadline
from taciturn.text.document import Document
from taciturn.text.read_options import Format
from taciturn.text.readers import Blank, Quarantined, read

MARK = "7Q7z7x7j"
"""In every text below. Half of it in a message is a leak. It is no name that a column would have: those are shown."""
IN_BASE64 = base64.b64encode(MARK.encode()).decode()
PIECES = [MARK[i : i + 4] for i in range(len(MARK) - 3)]

soon = settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])


def packed_slack() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("users.json", json.dumps([{"id": "U1", "name": MARK}]))
        message = {"type": "message", "user": "U1", "text": f"{MARK} &lt;here&gt;", "files": [{"id": "F"}]}
        archive.writestr("general/2024-01-31.json", json.dumps([message, {"subtype": "channel_join", "text": MARK}]))
    return buffer.getvalue()


def table(write: Callable[[Any], None]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def docbin() -> bytes:
    from spacy.tokens import Doc, DocBin, Span
    from spacy.vocab import Vocab

    doc = Doc(Vocab(), [MARK, "naïve", MARK], [True, False, False])
    doc.ents = [Span(doc, 0, 1, MARK)]
    doc.spans[MARK] = [Span(doc, 1, 3, MARK)]
    return DocBin(docs=[doc, doc], store_user_data=True).to_bytes()


ROWS = [{"id": f"i{n}", "text": f"{MARK} {n}\nnaïve ☃", "turns": None} for n in range(4)]
MAIL = f"""From: Ann <ann@{MARK}.example>
Subject: =?utf-8?b?{IN_BASE64}?= =?iso-2022-jp?q?{MARK}?=
Message-ID: <{MARK}@x>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b{MARK}

--b{MARK}
Content-Type: multipart/alternative; boundary=c

--c
Content-Type: text/html; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

<p title=3D"a">{MARK} &eacute;=E9<br><!-- {MARK} --><script>{MARK}</script>
--c--
--b{MARK}
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: base64

{IN_BASE64}
--b{MARK}
Content-Type: message/rfc822

Subject: inner {MARK}

From {MARK} at 10:20 in 2024
>From {MARK}
--b{MARK}
Content-Type: image/png
Content-Disposition: attachment; filename*=utf-8''{MARK}.png

{MARK}
--b{MARK}--
"""
SEEDS: dict[str, bytes] = {
    "text": f"{MARK}\r\n{MARK} ☃\n".encode(),
    "lines": f"{MARK}\r\n\n{MARK} ☃\n".encode(),
    "jsonl": b"".join(json.dumps(row).encode() + b"\n" for row in ROWS),
    "json": json.dumps(ROWS, ensure_ascii=False).encode(),
    "csv": b"id,text\n" + b"".join(f'{n},"{MARK} ""{n}""\n☃"\n'.encode() for n in range(4)),
    "tsv": b"id\ttext\n" + b"".join(f"{n}\t{MARK} {n}\n".encode() for n in range(4)),
    "parquet": table(lambda to: pq.write_table(pa.Table.from_pylist(ROWS), to)),
    "html": f"<meta charset=utf-8><title>{MARK}</title><p a='x'>{MARK}&amp;&#233;<!--{MARK}--><td>{MARK}</td>☃".encode(),
    "eml": MAIL.encode(),
    "mbox": b"".join(f"From {MARK} Mon Jan  1 10:20:30 2024\n".encode() + MAIL.encode() + b"\n" for _ in range(2)),
    "vcard": (
        f"BEGIN:VCARD\r\nVERSION:2.1\r\nN;CHARSET=utf-8;ENCODING=QUOTED-PRINTABLE:{MARK};=C3=A9=\r\n;x\r\n"
        f"PHOTO;ENCODING=BASE64:\r\n UXp4\r\n\r\nitem1.TEL;TYPE=\"a:b\":{MARK}\r\nUID:{MARK}\r\n\r\nEND:VCARD\r\n"
    ).encode() * 2,
    "whatsapp": (
        f"[31/12/2020, 21:41:07] Ann: {MARK}\n12/31/20, 9:41\u202fPM - Bob {MARK}: {MARK}\n{MARK}\n"
        f"12/31/20, 9:41 PM - {MARK} was added\n"
    ).encode(),
    "slack": packed_slack(),
    "docx": documents.word(f"{MARK}\n☃ {MARK}", header=MARK, cell=MARK, comment=MARK),
    "pptx": documents.slides(MARK, f"{MARK} ☃", note=MARK),
    "xlsx": documents.workbook(
        {MARK: [[MARK, 1.5], ["☃", None, MARK]], "table": [["id", "text"], [1, MARK]]}, comment=MARK
    ),
    "pdf": documents.portable(MARK, "", f"more {MARK}"),
    "rtf": (rb"{\rtf1\ansi\ansicpg1252 " + MARK.encode() + rb" \'e9\u8364 ?{\header " + MARK.encode() + rb"}{\pict 00}}"),
    "ipynb": json.dumps({"nbformat": 4, "cells": [
        {"cell_type": "code", "source": [f"{MARK}\n", "x"], "attachments": {MARK: {}}, "outputs": [
            {"output_type": "stream", "text": MARK}, {"data": {"text/html": f"<b>{MARK}</b>", "image/png": MARK}},
            {"output_type": "error", "traceback": [MARK]}]}]}).encode(),
    "xml": f"<?xml version='1.0' encoding='utf-8'?><a b='{MARK}'><!-- {MARK} -->&#9731; {MARK}</a>".encode(),
    "subtitles": (
        f"WEBVTT\n\nNOTE {MARK}\n\n1\n00:01.000 --> 00:02.000 align:start\n<v {MARK}>{MARK} &amp; <i>☃</i>\n"
    ).encode(),
    "spacy": docbin(),
    "msg": documents.outlook({"0037": MARK, "1000": f"{MARK} ☃", "5D01": f"ann@{MARK}.example"}, attachments=2),
}  # fmt: skip
MODES = [form for form in get_args(Format) if form not in ("auto", "datasets")]


@deadline(60)
def outcome(data: bytes, form: str, **options: Any) -> list[Document | Quarantined | Blank] | TaciturnError:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        path.write_bytes(data)
        try:
            return list(read(path, format=form, duplicate_ids="suffix", **options).items())
        except TaciturnError as error:
            return error


def check(found: list[Document | Quarantined | Blank] | TaciturnError) -> None:
    """No message, reason or location shows what was read."""
    if isinstance(found, TaciturnError):
        said = [str(found)]
        assert found.exit_code in (2, 3)
    else:
        assert all(isinstance(item, Document | Quarantined | Blank) for item in found)
        said = [repr(item) for item in found if not isinstance(item, Document)]
    assert not [piece for piece in PIECES for each in said if piece in each]
    assert all(len(each) < 700 for each in said)


def test_there_is_a_seed_for_every_format_and_each_reads() -> None:
    assert sorted(MODES) == sorted(SEEDS)
    for form, data in SEEDS.items():
        found = outcome(data, form)
        check(found)
        assert isinstance(found, list), form
        texts = [item.text for item in found if isinstance(item, Document)]
        assert texts, form
        assert all(MARK in text for text in texts), form
        assert not [item for item in found if isinstance(item, Quarantined)], form


changes = st.lists(
    st.tuples(
        st.sampled_from(["delete", "insert", "replace", "repeat", "cut", "move"]),
        st.floats(0, 1),
        st.floats(0, 1),
        st.one_of(
            st.binary(max_size=12),
            st.sampled_from(
                [b"\xff", b"\0", b'"', b"\\ud800", b"<MASK>", b"\n", b"\r", b"=", b"=?", b"?=", b"--b", b"charset=x",
                 b"charset=utf-16", b"charset=unicode_escape", b"charset=punycode", b"\nFrom ", b":", b"{", b"[" * 40,
                 b"&#99999999999;", b"&#" + b"9" * 5000, b"<!--", b"<a b='", b"(" * 300, b"BEGIN:VCARD\n", b"END:VCARD\n",
                 b"Content-Transfer-Encoding: x-uuencode\n", b"Content-Transfer-Encoding: base64\n", b"\xef\xbb\xbf"]
            ),
        ),
    ),
    min_size=1,
    max_size=4,
)  # fmt: skip


def changed(data: bytes, how: list[tuple[str, float, float, bytes]]) -> bytes:
    for what, from_, length, new in how:
        at = int(from_ * len(data))
        end = min(len(data), at + int(length * length * 64) + 1)
        match what:
            case "delete":
                data = data[:at] + data[end:]
            case "insert":
                data = data[:at] + new + data[at:]
            case "replace":
                data = data[:at] + new + data[end:]
            case "repeat":
                data = data[:end] + data[at:end] * 3 + data[end:]
            case "cut":
                data = data[:at]
            case _:
                data = data[end:] + data[at:end] + data[:at]
    return data


@pytest.mark.parametrize("form", MODES)
@soon
@given(how=changes, errors=st.sampled_from(["strict", "replace"]))
def test_damaged_files(form: str, how: list[tuple[str, float, float, bytes]], errors: str) -> None:
    check(outcome(changed(SEEDS[form], how), form, encoding_errors=errors))


@pytest.mark.parametrize("form", MODES)
@settings(soon, max_examples=40)
@given(data=st.binary(max_size=400), errors=st.sampled_from(["strict", "replace"]))
def test_random_bytes(form: str, data: bytes, errors: str) -> None:
    check(outcome(data, form, encoding_errors=errors))


@settings(soon, max_examples=40)
@given(data=st.binary(max_size=400))
def test_random_bytes_of_a_file_without_an_ending(data: bytes) -> None:
    check(outcome(data, "auto"))


@pytest.mark.parametrize("form", MODES)
def test_every_truncation(form: str) -> None:
    data = SEEDS[form]
    for end in range(0, len(data), max(1, len(data) // 150)):
        check(outcome(data[:end], form))


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
@settings(soon, max_examples=60)
@given(how=changes)
def test_damaged_compressed_files(packing: str, how: list[tuple[str, float, float, bytes]]) -> None:
    compress = gzip.compress if packing == "gzip" else pytest.importorskip("zstandard").compress
    whole = compress(SEEDS["jsonl"])
    found = outcome(changed(whole, how), "jsonl")
    if isinstance(found, TaciturnError):
        check(found)


UNIT = {
    "html": [b"<a b=\"", b"<a b ", b"<!--", b"<", b"<![", b"</", b"&#", b"<script>", b"<a '", b"<pre>\t"],
    "eml": [b"a: b\n", b"=?utf-8?q?a?= ", b"(", b"<", b"a;", b"\";", b"--x\nContent-Type: multipart/mixed; boundary=x\n\n"],
    "vcard": [b"BEGIN:VCARD\n", b"N:=\n", b"N;", b";", b"\\", b"N;ENCODING=QUOTED-PRINTABLE:=\n"],
    "mbox": [b"From a 10:10 2024\n", b"\nFrom a 10:10 2024\na:b\n", b"From ", b">From \n", b"10:10 "],
    "whatsapp": [b"[1/1/20, 1:11] a: b\n", b"1", b"1/", b"[" , b" "],
    "csv": [b'"', b",", b'"",', b"a\n"],
    "json": [b"[", b'{"a":', b'"\\ud800",', b"1,"],
    "jsonl": [b"[", b"{}\n", b'"\\ud800"\n'],
}  # fmt: skip
HEADS = {
    "eml": b"Subject: ", "vcard": b"BEGIN:VCARD\nN:x\n", "mbox": b"From a Mon 10:10 2024\nSubject: ", "csv": b"text\n",
    "whatsapp": b"[1/1/20, 1:11] a: b\n",
}  # fmt: skip


@pytest.mark.parametrize(("form", "unit"), [(form, unit) for form, units in UNIT.items() for unit in units])
def test_repetition_costs_linear_time(form: str, unit: bytes) -> None:
    """200 kB of one thing over and over, also as a header that is structured; that each is read in time is the assertion."""
    for head in {
        HEADS.get(form, b""),
        *([b"Content-Type: multipart/mixed; boundary=x; ", b"From: "] if form == "eml" else []),
    }:
        for tail in (b"", b">", b"\n\n>\"'"):
            check(outcome(head + unit * (200_000 // len(unit)) + tail, form))
