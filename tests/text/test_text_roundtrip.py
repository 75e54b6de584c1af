"""Any text, written by an ordinary program and read back, is the same text, or is set aside for a stated reason."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taciturn.text.chat import structured
from taciturn.text.document import Document
from taciturn.text.readers import Blank, Quarantined, read

whatever = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=("Cs", "Cc", "Cf", "Zl", "Zp", "Co", "Cn")),
        st.sampled_from('\r\n\t"\\,;:=<>&|\u2028\u2029\x85\ufeff\ufffe\U0001f600\U0010ffff\0\x1e\x1f\ud83d\ude00'),
    ),
    max_size=12,
)
texts = st.lists(
    st.one_of(whatever, st.sampled_from(["<MASK>", " ", "", "a\r", "\r\n", "=", '"'])), min_size=1, max_size=5
)


def encoded(text: str) -> bytes:
    """UTF-8, with the bytes that a careless program writes for a surrogate."""
    return text.encode("utf-8", "surrogatepass")


def write_jsonl(path: Path, held: list[str], **dump: bool) -> None:
    path.write_bytes(b"".join(encoded(json.dumps({"text": text}, **dump)) + b"\n" for text in held))  # type: ignore[arg-type]


def write_csv(path: Path, held: list[str], delimiter: str = ",") -> None:
    with path.open("w", newline="", encoding="utf-8", errors="surrogatepass") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL)
        writer.writerows([["text", "n"], *([text, n] for n, text in enumerate(held))])


def write_parquet(path: Path, held: list[str]) -> None:
    pq.write_table(pa.table({"text": pa.array(map(encoded, held), pa.binary()).view(pa.string())}), path)


WRITERS: dict[str, Callable[[Path, list[str]], None]] = {
    "jsonl": write_jsonl,
    "jsonl, unescaped": lambda path, held: write_jsonl(path, held, ensure_ascii=False),
    "json": lambda path, held: path.write_text(json.dumps([{"text": text} for text in held], indent=1)),
    "csv": write_csv,
    "tsv": lambda path, held: write_csv(path, held, "\t"),
    "parquet": write_parquet,
}


def same(item: Document | Quarantined | Blank, text: str) -> None:
    if any("\ud800" <= char <= "\udfff" for char in text):
        assert isinstance(item, Quarantined)
        assert "surrogate" in item.reason or "UTF-8" in item.reason
    elif structured(text):
        assert isinstance(item, Quarantined)
        assert "mark chat messages" in item.reason
    elif not text.strip():
        assert isinstance(item, Blank)
    else:
        assert isinstance(item, Document)
        assert item.text == text
        assert (item.private_because is not None) == ("\0" in text)


@pytest.mark.parametrize("form", WRITERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(held=texts)
def test_every_text_comes_back(tmp_path: Path, form: str, held: list[str]) -> None:
    # json.dumps writes the two halves of an astral character as one when both are there: that is the character.
    held = [text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") for text in held]
    path = tmp_path / f"a.{form.partition(',')[0]}"
    WRITERS[form](path, ["first", *held, "last"])
    items = list(read(path).items())
    assert len(items) == len(held) + 2
    for item, text in zip(items, ["first", *held, "last"], strict=True):
        same(item, text)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(held=texts)
def test_every_line_comes_back(tmp_path: Path, held: list[str]) -> None:
    held = [text.replace("\n", "").removesuffix("\r") for text in held]
    path = tmp_path / "a.txt"
    for end in (b"\n", b"\r\n"):
        path.write_bytes(b"first" + end + end.join(map(encoded, held)) + end + b"last")
        items = list(read(path, format="lines").items())
        assert len(items) == len(held) + 2
        for item, text in zip(items[1:-1], held, strict=True):
            same(item, text)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=whatever)
def test_every_file_comes_back(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_bytes(b"first\n" + encoded(text))
    (item,) = read(tmp_path / "a.txt").items()
    same(item, "first\n" + text)


def escaped(text: str) -> str:
    """RFC 6350, 3.4."""
    return text.replace("\\", "\\\\").replace(",", "\\,").replace(";", "\\;").replace("\n", "\\n")


def folded(line: str) -> bytes:
    """RFC 6350, 3.2: cut after 75 bytes, wherever that falls, also inside a character."""
    data = encoded(line)
    return b"\r\n ".join(data[at : at + 75] for at in range(0, len(data), 75))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=whatever, note=whatever, many=st.integers(1, 30))
def test_every_card_comes_back(tmp_path: Path, name: str, note: str, many: int) -> None:
    # A property is one line, and white space around it means nothing.
    name, note = (text.replace("\r", "").strip() for text in (name, note * many))
    path = tmp_path / "a.vcf"
    lines = [
        b"BEGIN:VCARD",
        b"VERSION:4.0",
        b"TITLE:x",
        folded(f"N:{escaped(name)};;"),
        folded(f"NOTE:{escaped(note)}"),
        b"END:VCARD",
    ]
    path.write_bytes(b"\r\n".join(lines) + b"\r\n")
    expected = "TITLE: x\n" + f"N: {name}\n" * bool(name) + f"NOTE: {note}\n" * bool(note)
    (item,) = read(path).items()
    same(item, expected)
