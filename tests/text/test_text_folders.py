"""Folders, archives, pipes: every file in them is a document, or named, or counted; ids do not depend on neighbours."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
import threading
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import documents
from taciturn.errors import DataError, UsageError
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.document import Document
from taciturn.text.readers import Blank, Quarantined, archives, held, read

FILES = {
    "b.txt": b"second",
    "a/x.jsonl": b'{"text": "one"}\n{"text": "two"}\nbroken\n',
    "a/deep/er/mail.eml": b"From: a@b.example\nSubject: s\n\nbody\n",
    "letter.docx": documents.word("a letter"),
    "scan.png": b"\x89PNG\r\n",
    "old.doc": b"\xd0\xcf\x11\xe0",
    "odd.xyz": b"text",
    "wide.txt": "naïve".encode("utf-16"),
    ".hidden": b"no",
    ".git/config": b"no",
    "a/~$letter.docx": b"no",
    "__MACOSX/b.txt": b"no",
}
READ = {
    "a/deep/er/mail.eml:1": "s\n\nbody\n", "a/x.jsonl:1": "one", "a/x.jsonl:2": "two", "b.txt:1": "second",
    "letter.docx:1": "a letter", "wide.txt:1": "naïve",
}  # fmt: skip
NAMED = {"a/x.jsonl", "odd.xyz", "old.doc", "scan.png"}


def folder(root: Path, files: dict[str, bytes] = FILES) -> Path:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def packed(kind: str, files: dict[str, bytes] = FILES) -> bytes:
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(files):
                archive.writestr(name, files[name])
        return buffer.getvalue()
    with tarfile.open(fileobj=buffer, mode=f"w:{kind.partition('.')[2]}") as tar:  # type: ignore[call-overload]
        for name in sorted(files):
            info = tarfile.TarInfo(name)
            info.size = len(files[name])
            tar.addfile(info, io.BytesIO(files[name]))
    return buffer.getvalue()


def test_a_folder_is_every_file_in_it(tmp_path: Path) -> None:
    items = list(read(folder(tmp_path / "all")).items())
    found = {item.id: item.text for item in items if isinstance(item, Document)}
    assert found == READ
    assert list(found) == sorted(found)
    bad = [item for item in items if isinstance(item, Quarantined)]
    assert {item.source for item in bad} == NAMED
    assert all("format='text'" not in item.reason for item in bad if item.source != "odd.xyz")
    skipped = [item.what for item in items if isinstance(item, Blank)]
    assert sorted(skipped) == ["hidden file", "hidden file", "hidden folder", "hidden folder"]


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.bz2", "tar.xz", "tar."])
def test_an_archive_is_every_file_in_it(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"all.{kind.rstrip('.')}"
    path.write_bytes(packed(kind))
    items = list(read(path).items())
    found = {item.id: item.text for item in items if isinstance(item, Document)}
    assert found == {f"{path.name}/{name}": text for name, text in READ.items()}
    assert {item.source for item in items if isinstance(item, Quarantined)} == {f"{path.name}/{n}" for n in NAMED}
    assert [item.what for item in items if isinstance(item, Blank)] == ["hidden file"] * 4
    assert list(tmp_path.iterdir()) == [path], "nothing is unpacked to disk"
    folder(tmp_path / "around", {"in/all.tar.gz": packed("tar.gz"), "z.txt": b"z"})
    ids = [item.id for item in read(tmp_path / "around").items() if isinstance(item, Document)]
    assert ids == [*(f"in/all.tar.gz/{name}" for name in READ), "z.txt:1"]


def test_ids_do_not_depend_on_what_lies_beside(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", {"m/a.txt": b"x"})
    two = folder(tmp_path / "two", {"m/a.txt": b"x", "m/a.md": b"y", "a.txt": b"z"})
    assert [d.id for d in read(one).documents()] == ["m/a.txt:1"]
    assert {d.id for d in read(two).documents()} == {"m/a.txt:1", "m/a.md:1", "a.txt:1"}
    assert [d.id for d in read(one, two).documents()] == [
        "one/m/a.txt:1",
        "two/a.txt:1",
        "two/m/a.md:1",
        "two/m/a.txt:1",
    ]


@given(
    st.lists(st.binary(max_size=40), max_size=5), st.lists(st.sampled_from(["..", "a", "", "b.txt", "/"]), max_size=5)
)
@settings(max_examples=60, deadline=None)
def test_whatever_is_in_a_zip_nothing_leads_out_of_it(contents: list[bytes], parts: list[str]) -> None:
    import tempfile

    name = "/".join(parts) or "x"
    with tempfile.TemporaryDirectory() as root:
        path = Path(root) / "in.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for number, data in enumerate(contents):
                archive.writestr(f"{name}{number}.txt", data)
        try:
            items = list(read(path, encoding_errors="replace").items())
        except DataError:
            items = []
        assert os.listdir(root) == ["in.zip"]
        texts = [item for item in items if isinstance(item, Document)]
        assert not texts or not (".." in parts or name.startswith("/"))


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_name_that_leads_out_is_named(tmp_path: Path, kind: str) -> None:
    outside = {"../up.txt": b"no", "/etc/root.txt": b"no", "a/../../up.txt": b"no", "./in.txt": b"yes"}
    (tmp_path / f"a.{kind}").write_bytes(packed(kind, outside))
    items = list(read(tmp_path / f"a.{kind}").items())
    assert [item.id for item in items if isinstance(item, Document)] == [f"a.{kind}/in.txt:1"]
    reasons = [item.reason for item in items if isinstance(item, Quarantined)]
    assert reasons == ["its name leads out of the archive; pack it again"] * 3


def test_bombs_and_locks_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_ENOUGH", 1 << 20)
    monkeypatch.setattr(archives, "MOST", 1 << 20)
    bomb = {f"{n:03}.txt": bytes(1 << 19) for n in range(100)}
    for kind in ("zip", "tar.gz"):
        (tmp_path / f"bomb.{kind}").write_bytes(packed(kind, bomb))
        with pytest.raises(DataError, match="unpacks to more than 250 times its size"):
            list(read(tmp_path / f"bomb.{kind}").items())
    (tmp_path / "large.zip").write_bytes(packed("zip", {"large.txt": bytes((1 << 20) + 1), "small.txt": b"s"}))
    large, small = read(tmp_path / "large.zip").items()
    assert isinstance(large, Quarantined)
    assert "larger than 1 MiB; unpack the archive" in large.reason
    assert isinstance(small, Document)
    (tmp_path / "nested.zip").write_bytes(packed("zip", {"in.zip": packed("zip", {"a.txt": b"a"}), "b.txt": b"b"}))
    _, nested = read(tmp_path / "nested.zip").items()
    assert isinstance(nested, Quarantined)
    assert "an archive inside an archive" in nested.reason
    locked = bytearray(packed("zip", {"a.txt": b"a secret"}))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(mark) + at] |= 1  # the flag of encryption, which Python cannot write
    (tmp_path / "locked.zip").write_bytes(locked)
    (encrypted,) = read(tmp_path / "locked.zip").items()
    assert isinstance(encrypted, Quarantined)
    assert "password" in encrypted.reason


def test_a_damaged_archive_stops_alone_or_is_named_in_a_folder(tmp_path: Path) -> None:
    whole = packed("tar.gz", {f"{n}.txt": os.urandom(3000).hex().encode() for n in range(9)})
    for name, data in (("cut.tar.gz", whole[: len(whole) // 2]), ("none.zip", b"PK no"), ("rtf.zip", b"")):
        root = folder(tmp_path / name.partition(".")[0], {name: data, "z.txt": b"after"})
        with pytest.raises(DataError, match=r"archive|gzip"):
            list(read(root / name).items())
        *before, bad, after = read(root).items()
        assert isinstance(bad, Quarantined)
        assert bad.source == name
        assert all(isinstance(item, Document) for item in (*before, after))


def test_an_archive_costs_no_more_memory_the_more_is_in_it(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        with tarfile.open(tmp_path / "a.tar.gz", "w:gz", compresslevel=1) as tar:
            for number in range(count):
                data = f"{number} text ".encode() * (1 << 17)
                info = tarfile.TarInfo(f"{number:03}.txt")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        tracemalloc.start()
        found = sum(isinstance(item, Document) for item in read(tmp_path / "a.tar.gz").items())
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found == count
        return most

    assert peak(60) < 1.2 * peak(6)


def test_links_pipes_and_locked_files_of_a_folder(tmp_path: Path) -> None:
    root = folder(tmp_path / "all", {"a.txt": b"a", "in/b.txt": b"b"})
    (root / "again").symlink_to(root, target_is_directory=True)
    (root / "gone.txt").symlink_to(tmp_path / "nothing")
    os.mkfifo(root / "pipe.txt")
    items = list(read(root).items())
    assert [item.id for item in items if isinstance(item, Document)] == ["a.txt:1", "in/b.txt:1"]
    assert [item.what for item in items if isinstance(item, Blank)] == ["link to a folder"]
    said = {item.source: item.reason for item in items if isinstance(item, Quarantined)}
    assert "No such file" in said["gone.txt"]
    assert "a pipe or a device" in said["pipe.txt"]


def test_a_pipe_is_read_once_and_used_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "p")
    writer = threading.Thread(target=lambda: (tmp_path / "p").write_bytes(b'{"text": "one"}\n{"text": "two"}\n'))
    writer.start()
    corpus = read(tmp_path / "p", format="jsonl")
    writer.join()
    assert [d.id for d in corpus.documents()] == ["pipe:1", "pipe:2"]
    assert corpus.documents() == corpus.documents()
    monkeypatch.setattr(held, "_PATIENCE", 0.05)
    with pytest.raises(DataError, match="nobody writes into the pipe p"):
        read(tmp_path / "p")
    with pytest.raises(DataError, match="has no name that tells its format"):
        read("/dev/null").documents()


def test_standard_input(tmp_path: Path) -> None:
    def run(*words: str, data: bytes = b'{"text": "mail a@b.example now"}\n') -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([sys.executable, "-m", "taciturn", *words], input=data, cwd=tmp_path, capture_output=True)

    done = run("screen", "-", "--format", "jsonl", "-p", "pii", "-o", "out", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert b"read 1 = public 0 + private 1" in done.stdout
    nameless = run("preview", "-", "-p", "pii")
    assert (nameless.returncode, b"say it with --format jsonl or" in nameless.stderr) == (3, True)
    project = run("init", "-")
    assert (project.returncode, b"save it to a file first" in project.stderr) == (2, True)


@pytest.mark.parametrize("workers", [2, 3])
def test_a_folder_screened_by_many_is_what_one_screens(
    tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from taciturn.text.readers import corpus, pieces

    many = {f"{n % 7}/{n:04}.txt": f"Mail {n} to a{n}@b.example. Thanks.".encode() for n in range(300)}
    root = folder(tmp_path / "all", {**FILES, **many, "in.zip": packed("zip")})
    monkeypatch.setattr(corpus, "piece_size", lambda _: 2000)
    monkeypatch.setattr(pieces, "_FILES", 40)
    cut, _ = read(root).pieces()
    assert 5 < len(cut) < 100, "small files share pieces"
    chosen = (policy("pii"), policy("conservative"))
    made = [
        screen(read(root), *chosen, out=tmp_path / str(n), workers=n, max_bad=20, dedup="none") for n in (1, workers)
    ]
    names = [
        [path.relative_to(tmp_path / str(n)) for path in sorted((tmp_path / str(n)).rglob("*"))] for n in (1, workers)
    ]
    assert names[0] == names[1]
    for path in names[0]:
        one, other = tmp_path / "1" / path, tmp_path / str(workers) / path
        assert one.is_dir() or one.read_bytes() == other.read_bytes(), path
    counts = made[0].manifest.counts
    assert (counts.quarantined, counts.left_out, counts.documents) == (2 * len(NAMED), 8, 300 + 2 * len(READ))


def test_a_folder_is_one_source_of_cleaning(tmp_path: Path) -> None:
    root = folder(tmp_path / "all", {f"{n}.txt": b"the same text" for n in range(4)})
    chosen = (policy("pii"), policy("conservative"))
    with pytest.raises(DataError, match="would remove 3 of 4 documents of 'all'"):
        screen(read(root), *chosen, clean="minhash")
    made = screen(read(root), *chosen, clean="minhash", clean_most=1)
    assert [(s.name, s.read, s.kept) for s in made.manifest.cleaned] == [("all", 4, 1)]


@pytest.mark.parametrize(
    ("encoding", "ending"), [("cp1252", ""), ("utf-16", ""), ("shift_jis", ".gz"), ("utf-16-le", "")]
)
def test_every_text_format_in_an_encoding(tmp_path: Path, encoding: str, ending: str) -> None:
    word = "日本" if encoding == "shift_jis" else "naïve"
    for name, content in {
        "a.txt": word, "a.jsonl": f'{{"text": "{word}"}}\n', "a.json": f'[{{"text": "{word}"}}]', "a.csv": f"text\n{word}\n",
        "a.html": f"<meta charset=ascii><p>{word}", "a.xml": word, "a.srt": word,
    }.items():  # fmt: skip
        data = content.encode(encoding)
        path = tmp_path / (name + ending)
        path.write_bytes(gzip.compress(data) if ending else data)
        (found,) = read(path, encoding=encoding).documents()
        assert found.text == word, name
    with pytest.raises(UsageError, match="none that Python knows"):
        read(path, encoding="rot13")


def test_what_is_not_of_the_encoding_is_quarantined_or_private(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\nc\xc3\xa9\ntwo")  # valid UTF-8, and not ASCII
    good, bad, other = read(tmp_path / "a.txt", format="lines", encoding="ascii").items()
    assert isinstance(bad, Quarantined)
    assert "'ascii' does not have" in bad.reason
    assert isinstance(good, Document)
    assert isinstance(other, Document)
    _, kept, _ = read(tmp_path / "a.txt", format="lines", encoding="ascii", encoding_errors="replace").items()
    assert isinstance(kept, Document)
    assert (kept.text, bool(kept.private_because)) == ("c\ufffd\ufffd", True)
