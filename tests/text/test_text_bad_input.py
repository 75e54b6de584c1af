"""One table of bad input, through every format: a clear error, or a stated and counted outcome.

``FORMS`` knows how to write records in each format, on the spot; every fault below goes through all of them.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from taciturn.errors import DataError
from taciturn.text.document import Document
from taciturn.text.readers import Blank, Corpus, Quarantined, read


@dataclass(frozen=True, slots=True)
class Form:
    """write: a file of these texts, each given as the bytes that stand in the file. many: a file holds several records.
    bytes: a text may be any bytes. ids: names the records, where the format has ids."""

    name: str
    write: Callable[[Sequence[bytes]], bytes]
    many: bool = True
    any_bytes: bool = True
    ids: Callable[[Sequence[str]], bytes] | None = None
    options: tuple[tuple[str, str], ...] = ()


def quoted(text: bytes) -> bytes:
    """JSON for the bytes: escaped where JSON must, raw elsewhere, so that they stay what they are."""
    escaped = text.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return b'"' + b"".join(b"\\u%04x" % c if c < 32 else bytes([c]) for c in escaped) + b'"'


def rows(texts: Sequence[bytes]) -> list[bytes]:
    return [b'{"text": ' + quoted(text) + b"}" for text in texts]


def jsonl(texts: Sequence[bytes]) -> bytes:
    return b"".join(row + b"\n" for row in rows(texts))


def json_list(texts: Sequence[bytes]) -> bytes:
    return b"[" + b", ".join(rows(texts)) + b"]"


def table(delimiter: bytes, texts: Sequence[bytes]) -> bytes:
    cells = [b'"' + text.replace(b'"', b'""') + b'"' for text in texts]
    return b"".join(b"%b%bn\n" % (cell, delimiter) for cell in (b"text", *cells))


def parquet(texts: Sequence[bytes]) -> bytes:
    column = pa.array(texts, pa.binary()).view(pa.string())  # a cast would check the bytes
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": column}), sink)
    return sink.getvalue()


def mbox(texts: Sequence[bytes]) -> bytes:
    return b"".join(b"From a Mon Jan  1 10:20:30 2024\nX-Y: z\n\n" + text + b"\n\n" for text in texts)


def cards(texts: Sequence[bytes]) -> bytes:
    return b"".join(b"BEGIN:VCARD\r\nNOTE:" + text + b"\r\nEND:VCARD\r\n" for text in texts)


def slack(texts: Sequence[bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, text in enumerate(texts, 1):
            archive.writestr(f"general/2024-01-{number:02}.json", b"[" + rows([text])[0] + b"]")
    return sink.getvalue()


def id_rows(ids: Sequence[str]) -> list[dict[str, str]]:
    return [{"id": name, "text": f"text {number}"} for number, name in enumerate(ids)]


def id_parquet(ids: Sequence[str]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(id_rows(ids)), sink)
    return sink.getvalue()


BY_ID = (("id", "id"),)
FORMS = [
    Form("text", lambda texts: texts[0], many=False),
    Form("lines", lambda texts: b"\n".join(texts)),
    Form("jsonl", jsonl, ids=lambda ids: b"\n".join(json.dumps(row).encode() for row in id_rows(ids)), options=BY_ID),
    Form("json", json_list, ids=lambda ids: json.dumps(id_rows(ids)).encode(), options=BY_ID),
    Form("csv", lambda texts: table(b",", texts), options=BY_ID,
         ids=lambda ids: b"id,text\n" + b"".join(b"%b,x\n" % name.encode() for name in ids)),
    Form("tsv", lambda texts: table(b"\t", texts), options=BY_ID,
         ids=lambda ids: b"id\ttext\n" + b"".join(b"%b\tx\n" % name.encode() for name in ids)),
    Form("parquet", parquet, any_bytes=False, ids=id_parquet, options=BY_ID),
    Form("html", lambda texts: b"<p>" + texts[0], many=False),
    Form("eml", lambda texts: b"X-Y: z\n\n" + texts[0], many=False),
    Form("mbox", mbox, ids=lambda ids: b"".join(
        b"From a Mon Jan  1 10:20:30 2024\nMessage-ID: %b\n\nx\n\n" % name.encode() for name in ids)),
    Form("vcard", cards, ids=lambda ids: b"".join(
        b"BEGIN:VCARD\nUID:%b\nFN:x\nEND:VCARD\n" % name.encode() for name in ids)),
    Form("whatsapp", lambda texts: b"[31/12/2020, 21:41:07] Ann: " + texts[0], many=False),
    Form("slack", slack, any_bytes=False),
]  # fmt: skip
FILES = [form for form in FORMS if form.name not in ("slack", "parquet")]
"""Formats whose bytes are the text's, after unpacking."""


def every(forms: Sequence[Form] = FORMS) -> Any:
    return pytest.mark.parametrize("form", forms, ids=lambda form: form.name)


def corpus(folder: Path, form: Form, data: bytes, ending: str = "", **options: Any) -> Corpus:
    path = folder / f"a.{form.name}{ending}"
    path.write_bytes(data)
    return read(path, format=form.name, **options)


def between(folder: Path, form: Form, text: bytes, **options: Any) -> Document | Quarantined | Blank | None:
    """What the text becomes between two good ones, which must not suffer; alone where a file holds one record."""
    texts = [b"one", text, b"three"] if form.many else [text]
    items = list(corpus(folder, form, form.write(texts), **options).items())
    if form.many:
        first, last = items[0], items[-1]
        assert isinstance(first, Document)
        assert isinstance(last, Document)
        assert first.text.strip().removeprefix("NOTE: ") == "one"
        assert last.text.strip().removeprefix("NOTE: ") == "three"
        items = items[1:-1]
    assert len(items) <= 1
    return items[0] if items else None


def quarantined(folder: Path, form: Form, text: bytes) -> Quarantined:
    """The one thing that is quarantined when the text stands in a file: the record; of a JSON list, which is one value,
    the file; of a chat, the line."""
    if form.many and form.name != "json":
        bad = between(folder, form, text)
    else:
        texts = [b"one", text, b"three"] if form.many else [b"one\n" + text + b"\nthree"]
        (bad,) = (i for i in corpus(folder, form, form.write(texts)).items() if isinstance(i, Quarantined))
    assert isinstance(bad, Quarantined)
    assert "secret" not in repr(bad)
    return bad


@every()
def test_invalid_utf8_is_quarantined(tmp_path: Path, form: Form) -> None:
    bad = quarantined(tmp_path, form, b"caf\xe9 secret")
    assert "UTF-8" in bad.reason
    if form.name == "whatsapp":
        assert bad.location == "line 2"


@every()
def test_invalid_utf8_can_be_replaced_and_is_then_private(tmp_path: Path, form: Form) -> None:
    found = between(tmp_path, form, b"caf\xe9 secret", encoding_errors="replace")
    if form.name == "parquet":  # its strings are UTF-8 or it is damaged
        assert isinstance(found, Quarantined)
        return
    assert isinstance(found, Document)
    assert "caf\ufffd secret" in found.text
    assert found.private_because


@every()
def test_lone_surrogates_are_quarantined(tmp_path: Path, form: Form) -> None:
    """As the three bytes that would encode one, which are not UTF-8."""
    assert "UTF-8" in quarantined(tmp_path, form, b"\xed\xa0\x80 secret").reason


@pytest.mark.parametrize("escape", [b"\\ud800", b"\\udfff x", b"\\udc00\\ud800"])
def test_escapes_of_lone_surrogates_are_quarantined(tmp_path: Path, escape: bytes) -> None:
    row = b'{"text": "secret ' + escape + b'"}'
    day = io.BytesIO()
    with zipfile.ZipFile(day, "w") as archive:
        archive.writestr("g/2024-01-01.json", b"[" + row + b"]")
    for name, data in (("jsonl", row), ("json", b"[" + row + b"]"), ("slack", day.getvalue())):
        (tmp_path / name).write_bytes(data)
        (bad,) = read(tmp_path / name, format=name).items()
        assert isinstance(bad, Quarantined), name
        assert "lone surrogate" in bad.reason
        assert "secret" not in repr(bad)


@every()
def test_nul_is_kept_and_private(tmp_path: Path, form: Form) -> None:
    found = between(tmp_path, form, b"a\0b")
    assert isinstance(found, Document)
    assert "a\0b" in found.text
    assert found.private_because


@every()
@pytest.mark.parametrize("mark", ["\r", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d"])
def test_only_lf_and_crlf_end_a_line(tmp_path: Path, form: Form, mark: str) -> None:
    found = between(tmp_path, form, f"a{mark}b".encode())
    assert isinstance(found, Document)
    kept = " " if form.name == "html" and mark in "\r\x0c" else mark  # white space of HTML
    assert f"a{kept}b" in found.text


@every(FILES)
def test_a_byte_order_mark_is_dropped(tmp_path: Path, form: Form) -> None:
    data = form.write([b"one", b"two"] if form.many else [b"one"])
    plain, marked = (corpus(tmp_path, form, mark + data).documents() for mark in (b"", b"\xef\xbb\xbf"))
    assert plain == marked


@every(FILES)
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_refused_with_the_fix(tmp_path: Path, form: Form, encoding: str) -> None:
    data = form.write([b"one two three"] * 3).decode().encode(encoding)
    with pytest.raises(DataError, match=f"encoding='{encoding}'"):
        list(corpus(tmp_path, form, data).items())


@every(FILES)
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_mark_says_which_utf_it_is(tmp_path: Path, form: Form, encoding: str) -> None:
    data = form.write([b"one", b"two"] if form.many else [b"one"])
    plain, marked = (corpus(tmp_path, form, each).documents() for each in (data, data.decode().encode(encoding)))
    assert plain == marked


@every()
def test_an_over_long_record_is_quarantined_whole(tmp_path: Path, form: Form) -> None:
    long = between(tmp_path, form, b"secret " * 100, max_record_bytes=300)
    assert isinstance(long, Quarantined)
    assert "longer than max_record_bytes = 300" in long.reason
    assert "secret" not in repr(long)
    whole = between(tmp_path, form, b"secret " * 100, max_record_bytes=10_000)
    assert isinstance(whole, Document)
    assert whole.text.count("secret") == 100


@every()
def test_blank_records_are_counted(tmp_path: Path, form: Form) -> None:
    if form.many:
        assert isinstance(between(tmp_path, form, b" \t "), Blank)
    else:
        with pytest.raises(DataError, match="the corpus is empty"):
            list(corpus(tmp_path, form, form.write([b" \t "])).items())


@pytest.mark.parametrize("name", ["jsonl", "json"])
@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b'{"text": "secret"', "not valid JSON"),
        (b"{text: 'secret'}", "not valid JSON"),
        (b'["secret"]', "holds a list where an object"),
        (b'"secret"', "holds text where an object"),
        (b"12", "holds a number where an object"),
        (b"null", "holds null where an object"),
        (b'{"secret": 1}', "field 'text' is missing"),
        (b'{"text": null}', "field 'text' holds null"),
        (b'{"text": ["secret"]}', "field 'text' holds a list"),
    ],
)
def test_rows_that_are_no_records(tmp_path: Path, name: str, row: bytes, reason: str) -> None:
    good = b'{"text": "good"}'
    data = b"\n".join([good, row, good]) if name == "jsonl" else b"[" + b",\n".join([good, row, good]) + b"]"
    (tmp_path / f"a.{name}").write_bytes(data)
    items = list(read(tmp_path / f"a.{name}").items())
    bad = [item for item in items if isinstance(item, Quarantined)]
    assert len(bad) == 1
    assert reason in bad[0].reason
    assert "secret" not in repr(bad)
    if name == "json" and "JSON" in reason:  # a list is one value: nothing of it can be trusted
        assert len(items) == 1
    else:
        assert bad[0].location == ("line 2" if name == "jsonl" else "record 2")
        assert len(items) == 3


@every([form for form in FORMS if form.ids is not None])
def test_repeated_ids(tmp_path: Path, form: Form) -> None:
    assert form.ids is not None
    data = form.ids(["x", "y", "x", "x"])
    with pytest.raises(DataError, match=r"its id was used by an earlier record; .*duplicate_ids='suffix'"):
        list(corpus(tmp_path, form, data, **dict(form.options)).items())
    found = corpus(tmp_path, form, data, duplicate_ids="suffix", **dict(form.options)).documents()
    assert [document.id for document in found] == ["x", "y", "x~2", "x~3"]


@every()
def test_an_empty_corpus_is_an_error(tmp_path: Path, form: Form) -> None:
    empty = [b"", b"\n \r\n", b"\xef\xbb\xbf"]
    if form.name in ("parquet", "slack"):
        empty = [form.write([])]
    for data in empty:
        with pytest.raises(DataError, match=r"the corpus is empty|is no Slack export") as caught:
            list(corpus(tmp_path, form, data).items())
        assert caught.value.exit_code == 3


@every([form for form in FORMS if form.name != "slack"])
@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_truncated_compressed_file_is_an_error(tmp_path: Path, form: Form, ending: str) -> None:
    pack = gzip.compress if ending == ".gz" else pytest.importorskip("zstandard").compress
    texts = [b"secret %d" % n for n in range(400)]
    data = pack(form.write(texts if form.many else [b" ".join(texts)]))
    plain = corpus(tmp_path, form, data, ending).documents()
    assert len(plain) == (400 if form.many else 1)
    assert f"{tmp_path.name}" not in plain[0].id
    for cut in (len(data) - 1, len(data) // 2, 12):
        with pytest.raises(DataError, match="truncated or damaged") as caught:
            list(corpus(tmp_path, form, data[:cut], ending).items())
        assert caught.value.exit_code == 3
        assert "secret" not in str(caught.value)


@every()
def test_a_literal_mask_is_read_as_it_is(tmp_path: Path, form: Form) -> None:
    text = b"I am &lt;MASK&gt;." if form.name == "html" else b"I am <MASK>."
    found = between(tmp_path, form, text)
    assert isinstance(found, Document)
    assert "I am <MASK>." in found.text


@every([form for form in FORMS if form.name in ("lines", "jsonl", "csv", "parquet", "mbox", "slack")])
def test_screening_keeps_what_is_odd_private(tmp_path: Path, form: Form) -> None:
    """A literal mask, NUL and replaced bytes: no policy marks anything in them, and none is public."""
    from taciturn.screening.pipeline import screen
    from taciturn.screening.policies import policy

    odd = [b"i am <MASK> today", b"i am\0here today"] + [b"i am caf\xe9 today"] * form.any_bytes
    texts = [b"good morning to you", *odd, b"how are you today"]
    read_ = corpus(tmp_path, form, form.write(texts), encoding_errors="replace")
    screened = screen(read_, policy("ssn"), policy("email"))
    assert screened.table["part"].to_pylist() == ["public", *["private"] * len(odd), "public"]
