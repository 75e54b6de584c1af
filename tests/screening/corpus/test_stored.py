"""Screened corpora by URL: the bytes of a folder, the manifest last, and on this machine a copy, a folder as any other."""

from __future__ import annotations

import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import orjson
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import taciturn as tt
from taciturn.errors import DataError, MismatchError, TaciturnError, Unreachable, UsageError
from taciturn.screening import ScreenedCorpus, policy, screen
from taciturn.screening.corpus import stored
from taciturn.screening.corpus.manifest import MANIFEST, RUNS, file_digest
from taciturn.text.readers import Corpus, corpus

TEXTS = [f"hello there\nmy number is 980.322.{i:04d}, ask for Zed Quill {i}" for i in range(40)]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(corpus, "piece_size", lambda _: 200)
    return tmp_path / "data" / "taciturn" / "screened"


@pytest.fixture
def url() -> Iterator[str]:
    top = f"/{uuid.uuid4().hex}"
    yield f"memory:/{top}/mail"
    store = fsspec.filesystem("memory")
    if store.exists(top):
        store.rm(top, recursive=True)


def written(tmp_path: Path, texts: list[str]) -> Corpus:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"".join(orjson.dumps({"text": text}) + b"\n" for text in texts))
    return tt.read(path)


def run(tmp_path: Path, out: object, texts: list[str] = TEXTS, **options: Any) -> ScreenedCorpus:
    return screen(written(tmp_path, texts), policy("phone"), policy("conservative"), out=out, **options)  # type: ignore[arg-type]


def there(url: str) -> dict[str, bytes]:
    store, path = fsspec.filesystem("memory"), url.removeprefix("memory:/").rstrip("/")
    return {name.removeprefix(f"{path}/"): store.cat(name) for name in store.find(path)}


def folder(path: Path) -> dict[str, bytes]:
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def gone(path: Path | None) -> None:
    assert path is not None
    for each in sorted(path.rglob("*"), reverse=True):
        each.rmdir() if each.is_dir() else each.unlink()
    path.rmdir()


@pytest.mark.parametrize("originals", [True, False])
def test_at_a_url_lie_the_bytes_of_a_folder(tmp_path: Path, url: str, home: Path, originals: bool) -> None:
    here = run(tmp_path, tmp_path / "out", keep_originals=originals)
    made = run(tmp_path, f"{url}/", keep_originals=originals)
    assert len(there(url)) > 3 * 5 if originals else not any(name.startswith("originals") for name in there(url))
    assert there(url) == folder(tmp_path / "out") == folder(made.path or Path())
    again = tt.load_screened(url)
    assert again.path == made.path == home / here.key
    assert again.table.equals(here.table)
    gone(again.path)
    fetched = tt.load_screened(url)
    assert folder(home / here.key) == there(url)
    assert fetched.texts("private") == here.texts("private")
    for each in home.rglob("*"):
        assert stat.S_IMODE(each.stat().st_mode) & 0o077 == 0 or each.suffix == ".lock", each
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_a_url_of_this_machine_is_a_folder(tmp_path: Path, home: Path) -> None:
    """A store's file would have the modes that everybody may read."""
    run(tmp_path, f"file://{tmp_path / 'out'}")
    assert stat.S_IMODE((tmp_path / "out" / "originals").stat().st_mode) == 0o700
    assert tt.load_screened(f"file://{tmp_path / 'out'}").path == tmp_path / "out"
    assert not home.exists()


def failing(monkeypatch: pytest.MonkeyPatch, name: str, after: int, error: BaseException) -> list[str]:
    """The store ends after so many calls of ``name``, whose paths come back."""
    plain, seen = getattr(MemoryFileSystem, name), list[str]()

    def call(self: MemoryFileSystem, first: str, *rest: Any, **options: Any) -> object:
        if len(seen) >= after:
            raise error
        seen.append(rest[0] if name == "put_file" else first)
        return plain(self, first, *rest, **options)

    monkeypatch.setattr(MemoryFileSystem, name, call)
    return seen


@pytest.mark.parametrize("error", [KeyboardInterrupt(), PermissionError("hunter2"), TimeoutError("hunter2")])
def test_killed_while_it_was_put_the_same_command_ends_it(
    tmp_path: Path, url: str, home: Path, error: BaseException
) -> None:
    whole = run(tmp_path, tmp_path / "out")
    with pytest.MonkeyPatch.context() as patch:
        failing(patch, "put_file", 7, error)
        with pytest.raises((KeyboardInterrupt, Unreachable)) as caught:
            run(tmp_path, url)
    assert "hunter2" not in str(caught.value)
    assert len(there(url)) == 8
    assert MANIFEST not in there(url)
    with pytest.raises(DataError, match="no screened corpus, or one that is still being written"):
        tt.load_screened(url)
    with pytest.raises(MismatchError, match="unfinished screening of other input or options"):
        run(tmp_path, url, TEXTS[1:])
    with pytest.MonkeyPatch.context() as patch:
        put = failing(patch, "put_file", 10**6, error)
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr("taciturn.screening.corpus.piece.Job.screen", None)  # nothing is screened anew
            run(tmp_path, url)
    assert len(put) == len(whole.manifest.shards) - 7
    assert there(url) == folder(tmp_path / "out")
    assert sorted(p.name for p in home.iterdir()) == [whole.key]


def test_the_manifest_is_written_last_and_the_mark_goes(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = failing(monkeypatch, "pipe_file", 1, TimeoutError())
    with pytest.raises(Unreachable, match="cannot be written to its store"):
        run(tmp_path, url)
    assert [Path(name).name for name in seen] == [stored.UNFINISHED]
    assert {name.split("/")[0] for name in there(url)} == {stored.UNFINISHED, "records", "originals", "duplicates"}


def test_what_else_is_there_is_left_alone(tmp_path: Path, url: str) -> None:
    store = fsspec.filesystem("memory")
    store.pipe_file(f"{url}/notes.txt", b"mine")
    with pytest.raises(DataError, match="holds something and is no screened corpus"):
        run(tmp_path, url)
    assert there(url) == {"notes.txt": b"mine"}
    store.rm_file(f"{url}/notes.txt")
    run(tmp_path, url)
    before = there(url)
    with pytest.raises(MismatchError, match="holds another screened corpus"):
        run(tmp_path, url, TEXTS[1:])
    run(tmp_path, url)
    assert there(url) == before


def test_an_input_that_cannot_be_read_leaves_no_mark(tmp_path: Path, url: str) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(b'{"text": "hello"}\n{"text": 7}\n')
    with pytest.raises(DataError, match="items cannot be read"):
        screen(tt.read(bad), policy("phone"), policy("conservative"), out=url)
    assert there(url) == {}


@pytest.mark.parametrize("damage", ["missing", "changed", "escaping"])
def test_what_is_not_as_the_manifest_says_is_not_taken(tmp_path: Path, url: str, home: Path, damage: str) -> None:
    made = run(tmp_path, url)
    gone(made.path)
    store, shard = fsspec.filesystem("memory"), made.manifest.shards[4].path
    content = orjson.loads(there(url)[MANIFEST])
    if damage == "missing":
        store.rm_file(f"{url}/{shard}")
    elif damage == "changed":
        store.pipe_file(f"{url}/{shard}", there(url)[shard][:-1] + b"x")
    else:
        content["shards"][4]["path"] = "../../../../evil.parquet"
        store.pipe_file(f"{url}/{MANIFEST}", orjson.dumps(content))
    with pytest.raises(DataError, match={"missing": "is missing", "changed": "is not what"}.get(damage, "names files")):
        tt.load_screened(url)
    assert not (home / made.key).exists()
    assert not list(tmp_path.rglob("evil*"))
    fixed = run(tmp_path, url)
    gone(fixed.path)
    assert tt.load_screened(url).texts("private") == fixed.texts("private")


def test_what_the_copy_has_is_not_fetched_again(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = run(tmp_path, url)
    assert made.path is not None
    first = made.manifest.shards[0]
    damaged = made.path / first.path
    damaged.write_bytes(damaged.read_bytes()[:-1])
    (made.path / RUNS).write_bytes(b"")
    fetched = failing(monkeypatch, "get_file", 10**6, TimeoutError())
    tt.load_screened(url)
    assert [Path(name).as_posix().endswith(first.path) for name in fetched] == [True]
    assert file_digest(damaged) == first.digest
    assert (made.path / RUNS).exists()


def test_an_interrupted_fetch_goes_on(tmp_path: Path, url: str, home: Path) -> None:
    made = run(tmp_path, url)
    gone(made.path)
    with pytest.MonkeyPatch.context() as patch:
        failing(patch, "get_file", 5, ConnectionError("hunter2"))
        with pytest.raises(Unreachable, match="cannot be read from its store") as caught:
            tt.load_screened(url)
    assert "hunter2" not in str(caught.value)
    assert not (home / made.key).exists()
    with pytest.MonkeyPatch.context() as patch:
        fetched = failing(patch, "get_file", 10**6, TimeoutError())
        tt.load_screened(url)
    assert len(fetched) == len(made.manifest.shards) - 5


def test_the_history_of_runs_is_that_of_the_copy(tmp_path: Path, url: str) -> None:
    """Screening again keeps it, the store gets none of it; that of a folder copied to a store by hand comes along."""
    made = run(tmp_path, url)
    assert made.path is not None
    (made.path / RUNS).write_bytes(b"{}\n")
    run(tmp_path, url)
    assert RUNS not in there(url)
    assert (made.path / RUNS).read_bytes() == b"{}\n"
    fsspec.filesystem("memory").pipe_file(f"{url}/{RUNS}", b"{}\n{}\n")
    tt.load_screened(url)
    assert (made.path / RUNS).read_bytes() == b"{}\n"
    gone(made.path)
    tt.load_screened(url)
    assert (made.path / RUNS).read_bytes() == b"{}\n{}\n"


@pytest.mark.parametrize(
    ("place", "error", "words"),
    [
        ("sftp://ann:hunter2@host/x", UsageError, "environment"),
        ("https://host/x?X-Signature=hunter2", UsageError, "environment"),
        ("nosuch://a/b", UsageError, "no such file system"),
    ],
)
def test_what_is_refused(tmp_path: Path, place: str, error: type[TaciturnError], words: str, home: Path) -> None:
    for call in (lambda: run(tmp_path, place), lambda: tt.load_screened(place)):
        with pytest.raises(error, match=words) as caught:
            call()
        assert "hunter2" not in str(caught.value)
    assert not home.exists()


def test_copies_lie_where_the_user_keeps_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for value in ("", "relative/ignored"):
        monkeypatch.setenv("XDG_DATA_HOME", value)
        monkeypatch.setenv("HOME", str(tmp_path))
        assert stored.copy_of("k") == tmp_path / ".local/share/taciturn/screened/k"
