"""Zstandard: frames, seeking, and files that are cut off, which the library itself reads as if they were whole."""

from __future__ import annotations

import io
import json
import sys
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import DataError, MissingExtra
from taciturn.text.document import Document
from taciturn.text.readers import Quarantined, read
from taciturn.text.readers.zst import ZstdFile

zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
TEXT = b"".join(json.dumps({"text": f"line {n}"}).encode() + b"\n" for n in range(5000))


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_zstd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = zstandard.compress(TEXT)
    frames = zstandard.compress(TEXT[:20]) + b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstandard.compress(TEXT[20:])
    for name, content in (("a.jsonl.zst", packed), ("b.jsonl", packed), ("c.jsonl.zst", frames)):
        assert len(read(write(tmp_path / name, content)).documents()) == 5000
    pq.write_table(pa.table({"text": ["x"]}), tmp_path / "p.parquet")
    write(tmp_path / "p.parquet.zst", zstandard.compress((tmp_path / "p.parquet").read_bytes()))
    assert read(tmp_path / "p.parquet.zst").documents() == [Document("p:1", "x")]
    write(tmp_path / "list.json.zst", zstandard.compress(b"\xef\xbb\xbf" + TEXT))
    assert len(read(tmp_path / "list.json.zst").documents()) == 5000
    for number, content in enumerate(
        (packed[:-9], packed[:40], packed + packed[:9], packed[:30] + b"\0" * 9 + packed[39:], b"x")
    ):
        with pytest.raises(DataError, match="truncated or damaged zstd") as caught:
            list(read(write(tmp_path / f"bad{number}.jsonl.zst", content)).items())
        assert caught.value.exit_code == 3
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtra, match=r"pip install 'taciturn\[zstd\]'"):
        read(tmp_path / "a.jsonl.zst").documents()


def test_a_bomb_costs_no_memory(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl.zst", zstandard.compress(b"x" * (1 << 28) + b'\n{"text": "after"}\n'))
    assert path.stat().st_size < 1 << 17
    tracemalloc.start()
    items = list(read(path, max_record_bytes=1 << 16).items())
    assert [type(item) for item in items] == [Quarantined, Document]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * 2**20


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 3000)), max_size=8))
def test_zstd_streams_seek(steps: list[tuple[int, int]]) -> None:
    plain = TEXT[:3000]
    stream, same = ZstdFile(io.BytesIO(zstandard.compress(plain))), io.BytesIO(plain)
    for place, count in steps:
        assert stream.seek(place) == same.seek(place)
        assert stream.read(count) == same.read(count)
        assert stream.tell() == same.tell()
