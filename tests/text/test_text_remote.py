"""Files by URL are read as the same files on disk are: names, ids, items, pieces and digests."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import sys
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import DataError, MissingExtra, TaciturnError, Unreachable, UsageError
from taciturn.text.readers import Corpus, corpus, read, remote
from taciturn.text.readers.tally import Tally

ROWS = [{"text": f"line {i} é\nand more", "user": f"u{i % 3}"} for i in range(300)]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)


def parquet() -> bytes:
    held = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), held, row_group_size=20)
    return held.getvalue()


def zipped() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("in/one.txt", "inside")
        archive.writestr(".hidden", "no")
    return held.getvalue()


FILES = {
    "a.jsonl": LINES,
    "b.parquet": parquet(),
    "deep/a.jsonl": LINES[: 1 + LINES.find(b"\n")],
    "deep/down/c.txt": b"hello\r\nthere",
    "deep/utf16.txt": "wide".encode("utf-16"),
    "deep/.hidden.txt": b"no",
    ".git/d.txt": b"no",
    "e.jsonl.gz": gzip.compress(LINES),
    "f.zip": zipped(),
    "g.csv": b'text,user\n"a\nb",u1\n',
}


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The same files in a folder and in memory."""
    store, folder = fsspec.filesystem("memory"), tmp_path / "mail"
    top = f"/{uuid.uuid4().hex}/mail"
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        store.pipe_file(f"{top}/{name}", data)
    yield str(folder), f"memory:/{top}"
    store.rm(top.rpartition("/")[0], recursive=True)


def pieced(whole: Corpus) -> list[object]:
    return [item for piece in whole.pieces()[0] for item in whole.read(piece, Tally())]


@pytest.mark.parametrize(
    "what",
    ["", "/*", "/*.jsonl", "/**/*.jsonl", "/**/*.txt", "/deep", "/deep/down/c.txt", "/[ab].*", "/e.jsonl.gz", "/f.zip"],
)
def test_by_url_as_from_disk(both: tuple[str, str], what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "piece_size", lambda _: 1000)
    here, there = (read(where + what) for where in both)
    assert [(s.name, s.prefix, s.folder, s.left_out, s.size) for s in here.sources] == [
        (s.name, s.prefix, s.folder, s.left_out, s.size) for s in there.sources
    ]
    assert list(here.items()) == list(there.items())
    assert here.pieces() == there.pieces()
    assert pieced(here) == pieced(pickle.loads(pickle.dumps(there)))
    assert here.digests() == there.digests() == there.pieces()[1]
    if what in ("", "/*.jsonl"):
        assert len(here.pieces()[0]) > 10


def test_url_of_this_machine_and_mixtures(both: tuple[str, str]) -> None:
    here, there = both
    assert read(f"file://{here}/a.jsonl") == read(f"{here}/a.jsonl")
    twice = read(f"{there}/a.jsonl", f"{there}/*.jsonl", f"{here}/a.jsonl")
    assert len(twice.sources) == len(twice.digests()) == 2
    names = read(f"{there}/a.jsonl", f"{there}/deep/a.jsonl")
    assert [source.name for source in names.sources] == ["a.jsonl", "deep/a.jsonl"]


@given(data=st.binary(max_size=3000), cuts=st.lists(st.tuples(st.integers(0, 3100), st.integers(0, 900)), max_size=8))
def test_ranges_are_the_file(data: bytes, cuts: list[tuple[int, int]]) -> None:
    fsspec.filesystem("memory").pipe_file("/ranges", data)
    file = remote.named("memory:///ranges")[0]
    for buffering in (-1, 0):
        with file.open("rb", buffering) as stream, io.BytesIO(data) as oracle:
            for at, size in cuts:
                assert stream.seek(at) == oracle.seek(at)
                assert stream.read(size) == oracle.read(size)
                assert stream.tell() == oracle.tell()
            assert stream.read() == oracle.read()


def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the requests from now on."""
    sizes: list[int] = []
    plain = MemoryFileSystem.cat_file

    def cat_file(self: MemoryFileSystem, path: str, start: int, end: int) -> bytes:
        sizes.append(end - start)
        return plain(self, path, start, end)

    monkeypatch.setattr(MemoryFileSystem, "cat_file", cat_file)
    return sizes


def test_a_large_file_is_asked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    store, line = fsspec.filesystem("memory"), json.dumps({"text": "x" * 1000}).encode() + b"\n"
    store.pipe_file("/large.jsonl", line * 30_000)
    whole = read("memory:///large.jsonl")
    sizes = asked(monkeypatch)
    pieces, _ = whole.pieces()
    size = len(line) * 30_000
    assert max(sizes) <= 1 << 21
    assert sum(sizes) < 1.1 * size
    sizes.clear()
    assert sum(1 for piece in pieces for _ in whole.read(piece, Tally())) == 30_000
    assert max(sizes) <= 1 << 21
    assert sum(sizes) < 1.5 * size  # a stretch may end within what was asked for last
    store.rm("/large.jsonl")


def test_parquet_asks_for_the_columns_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    store, held = fsspec.filesystem("memory"), io.BytesIO()
    table = pa.table({"text": ["hello"] * 1000, "other": [uuid.uuid4().hex * 50 for _ in range(1000)]})
    pq.write_table(table, held, compression="none", use_dictionary=False)
    store.pipe_file("/wide.parquet", held.getvalue())
    whole = read("memory:///wide.parquet")
    sizes = asked(monkeypatch)
    assert len(whole.documents()) == 1000
    assert sum(sizes) < len(held.getvalue()) / 5
    store.rm("/wide.parquet")


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("memory://nothing/here.jsonl", DataError, "no such file"),
        ("memory://nothing/*.jsonl", DataError, "no file matches"),
        ("sftp://ann:hunter2@host/a.jsonl", UsageError, "environment"),
        ("https://host/a.jsonl?X-Signature=hunter2", UsageError, "environment"),
        ("zip://a::memory://b.zip", UsageError, "chained"),
        ("nosuch://a/b", UsageError, "no such file system"),
    ],
)
def test_what_is_refused(url: str, error: type[TaciturnError], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        read(url)
    assert "hunter2" not in str(caught.value)


def test_a_store_that_fails_is_no_bad_input(both: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be reached is neither quarantined nor quoted; what vanished is missing; what changed is told."""
    there = read(both[1], max_record_bytes=1 << 20)

    def fails(error: Exception) -> None:
        def cat_file(*_: object, **__: object) -> bytes:
            raise error

        monkeypatch.setattr(MemoryFileSystem, "cat_file", cat_file)

    fails(RuntimeError("header Authorization: hunter2"))
    with pytest.raises(Unreachable, match=r"a\.jsonl cannot be read from its store \(RuntimeError\)") as caught:
        list(there.items())
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    fails(PermissionError("hunter2"))
    with pytest.raises(Unreachable):
        there.digests()
    fails(FileNotFoundError("hunter2"))
    with pytest.raises(DataError, match=r"cannot read a\.jsonl: No such file"):
        list(read(f"{both[1]}/a.jsonl").items())
    monkeypatch.setattr(MemoryFileSystem, "cat_file", lambda *_, **__: b"short")
    with pytest.raises(DataError, match="changed while it was read"):
        list(read(f"{both[1]}/a.jsonl").items())


@pytest.mark.parametrize("format", ["slack", "datasets"])
def test_folders_of_one_format_are_files_of_this_machine(both: tuple[str, str], format: str) -> None:
    with pytest.raises(DataError, match="download mail"):
        read(both[1], format=format)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingExtra, match=r"taciturn\[cloud\]"):
        read("memory://a.jsonl")
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(UsageError, match="s3:// needs a package that is not installed: Install s3fs"):
        read("s3://bucket/a.jsonl")
