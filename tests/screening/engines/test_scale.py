"""Pieces, workers, interruption: whatever screens a corpus, and however often it is stopped, the bytes are the same."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processes import ended, until
from taciturn.errors import DataError, LostProcess, MismatchError, UsageError
from taciturn.screening import ScreenedCorpus, policy, screen
from taciturn.screening.pipeline import Progress
from taciturn.text.readers import Corpus, corpus, files, pieces, read
from taciturn.text.readers.tally import Tally

PI, WIDE = policy("phone", "email"), policy("conservative")


def rows(count: int) -> list[dict[str, object]]:
    """Copies within and between pieces, secrets, blanks, users, labels."""
    return [
        {
            "id": f"r{i}",
            "text": f"hello there.\nmy name is Rhonda Young {i % 7}, call 980.322.{i % 50:04d} or ask again. Fine!",
            "user": f"u{i % 5}",
            "label": str(i % 2),
        }
        for i in range(count)
    ]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(600)))
    return path


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "piece_size", lambda _: 4000)


def run(source: Path, out: Path | None = None, **options: object) -> ScreenedCorpus:
    return screen(read(source, user="user", label="label", id="id"), PI, WIDE, out=out, **options)  # type: ignore[arg-type]


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("order", ["redact-first", "as-published"])
def test_pieces_make_no_difference(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    cut = run(source, tmp_path / "cut", order=order)
    held = run(source, order=order)
    monkeypatch.setattr(corpus, "piece_size", lambda _: 1 << 20)
    whole = run(source, tmp_path / "whole", order=order)
    assert len(list((tmp_path / "cut" / "records").iterdir())) > 10
    assert len(list((tmp_path / "whole" / "records").iterdir())) == 1
    assert cut.table == whole.table == held.table
    assert cut.originals == whole.originals == held.originals
    assert cut.counts == whole.counts == held.counts
    assert cut.counts.duplicates > 0
    assert ScreenedCorpus.load(tmp_path / "cut").table == cut.table


@pytest.mark.usefixtures("_small")
def test_the_same_bytes_for_any_number_of_workers(source: Path, tmp_path: Path) -> None:
    seen: list[Progress] = []
    for workers in (1, 2, 3):
        run(source, tmp_path / str(workers), workers=workers, notify=seen.append)
        last = seen[-1]
        assert (last.records, last.bytes) == (1800, last.of_bytes)
    assert content(tmp_path / "1") == content(tmp_path / "2") == content(tmp_path / "3")


SLOW = """
import sys, time
from dataclasses import dataclass
from pathlib import Path
from taciturn.screening import Regex, policy, screen
from taciturn.text.readers import corpus, read
corpus.piece_size = lambda _: 4000
out = Path(sys.argv[2])
work, go = out.parent / f".{out.name}.unfinished" / "work", out.parent / "go"

@dataclass(frozen=True)
class Slow:
    name: str = "slow"
    def definition(self):
        return {"kind": "slow"}
    def find(self, views):
        while not go.exists() and len(list(work.glob("*.json"))) > 3:  # some pieces are done, others are not
            time.sleep(0.05)
        return [__import__("taciturn").text.spans.Detection()] * len(views)
    def local(self, view):
        return False

if __name__ == "__main__":
    import taciturn.text.spans
    wide = policy("conservative", Slow())
    done = screen(
        read(sys.argv[1], user="user", label="label", id="id"), policy("phone", "email"), wide,
        out=out, workers=int(sys.argv[3]), engine=sys.argv[4],
    )
    print(done.counts.read)
"""


def start(tmp_path: Path, source: Path, out: Path, workers: int, engine: str = "local") -> subprocess.Popen[str]:
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    command = [sys.executable, str(script), str(source), str(out), str(workers), engine]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def heard(process: subprocess.Popen[str]) -> str:
    """What it printed, once it has ended well."""
    [(said, complaints)] = ended(process)
    assert process.returncode == 0, complaints
    return str(said)


def children(pid: int, word: str) -> list[int]:
    """Processes below ``pid`` whose command line has ``word`` in it."""
    parents: dict[int, int] = {}
    lines: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                lines[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue

    def below(child: int) -> bool:
        while child in parents:
            child = parents[child]
            if child == pid:
                return True
        return False

    return [child for child, line in lines.items() if word in line and below(child)]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds workers through /proc")
@pytest.mark.parametrize("whom", ["worker", "parent"])
def test_killed_in_the_middle(source: Path, tmp_path: Path, whom: str) -> None:
    """A killed worker is replaced. A killed parent takes its workers along; the next run does only what is left."""
    whole = start(tmp_path, source, tmp_path / "whole", 1)
    process = start(tmp_path, source, tmp_path / "out", 2)
    work = tmp_path / ".out.unfinished" / "work"
    until(lambda: len(list(work.glob("*.json"))) > 3, process)
    until(lambda: len(children(process.pid, "spawn_main")) == 2, process)
    workers = children(process.pid, "spawn_main")
    os.kill(workers[0] if whom == "worker" else process.pid, signal.SIGKILL)
    if whom == "parent":
        ended(process)
        until(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in workers), whole)
        kept = {p.name: p.stat().st_mtime_ns for p in work.glob("*.json")}
        assert 3 < len(kept) < 25
        assert not (tmp_path / "out").exists()
        process = start(tmp_path, source, tmp_path / "out", 2)
        until(lambda: children(process.pid, "spawn_main"), process)  # so it has looked for what is left
        assert all((work / name).stat().st_mtime_ns == then for name, then in kept.items())
    (tmp_path / "go").touch()
    assert heard(process) == heard(whole) == "1800\n"
    assert content(tmp_path / "out") == content(tmp_path / "whole")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds workers through /proc")
def test_ray_with_a_worker_killed_gives_the_same_bytes(source: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the ray extra")
    whole = start(tmp_path, source, tmp_path / "whole", 1)
    process = start(tmp_path, source, tmp_path / "out", 2, "ray")
    work = tmp_path / ".out.unfinished" / "work"
    until(lambda: len(list(work.glob("*.json"))) > 3, process)
    until(lambda: len(children(os.getpid(), "ray::MapWorker")) == 2, process)
    os.kill(children(os.getpid(), "ray::MapWorker")[0], signal.SIGKILL)
    (tmp_path / "go").touch()
    assert heard(process) == heard(whole) == "1800\n"
    assert content(tmp_path / "out") == content(tmp_path / "whole")


@pytest.mark.usefixtures("_small")
def test_a_damaged_finished_piece_is_done_again(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(source, tmp_path / "whole")
    monkeypatch.setattr(
        "taciturn.screening.corpus.store.Store.finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "out")
    monkeypatch.undo()
    monkeypatch.setattr(corpus, "piece_size", lambda _: 4000)
    left = tmp_path / ".out.unfinished"
    for damaged in ("records/part-00003.parquet", "originals/part-00005.parquet"):
        (left / damaged).write_bytes(b"damaged")
    (left / "work" / "part-00007.entries").unlink()
    (left / "work" / "part-00009.json").write_text("{")
    seen: list[Progress] = []
    run(source, tmp_path / "out", notify=seen.append)
    assert 0 < seen[-1].resumed < seen[-1].of_bytes
    assert content(tmp_path / "out") == content(tmp_path / "whole")


@pytest.mark.usefixtures("_small")
def test_faults_are_named_as_without_pieces(source: Path, tmp_path: Path) -> None:
    lines = source.read_text().splitlines()
    lines[350], lines[500] = "not json", '{"text": 7, "id": "x"}'
    source.write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"2 items cannot be read, 1 allowed: in.jsonl, line 351: .*line 501"):
        run(source, tmp_path / "out", max_bad=1)
    assert [p.name for p in tmp_path.iterdir()] == ["in.jsonl"]
    assert run(source, tmp_path / "out", max_bad=2).counts.quarantined == 2
    lines[350], lines[500] = lines[20], lines[30]
    source.write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"in.jsonl, line 351: its id was used"):
        run(source, tmp_path / "other")
    screened = screen(read(source, id="id", duplicate_ids="suffix"), PI, WIDE, out=tmp_path / "suffixed")
    names = list(dict.fromkeys(screened.table["document_id"].to_pylist()))
    assert (names[350], names[500], len(names)) == ("r20~2", "r30~2", 600)


def test_what_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name one"):
        run(source, workers=2)
    with pytest.raises(UsageError, match="did you mean 'ray'"):
        run(source, tmp_path / "out", engine="rya")
    with pytest.raises(UsageError, match="at least 1"):
        run(source, tmp_path / "out", workers=0)
    run(source, tmp_path / "out")
    with pytest.raises(MismatchError, match="another screened corpus"):
        run(source, tmp_path / "out", dedup="all")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n\n")
    with pytest.raises(DataError, match="empty"):
        screen(read(empty), PI, WIDE, out=tmp_path / "none")
    assert not any("unfinished" in p.name or p.name == "none" for p in tmp_path.iterdir())


def test_two_at_once_are_kept_apart(source: Path, tmp_path: Path) -> None:
    process = start(tmp_path, source, tmp_path / "out", 1)
    until(lambda: (tmp_path / ".out.unfinished" / "work" / "started").exists(), process)
    with pytest.raises((DataError, MismatchError), match="another process"):
        run(source, tmp_path / "out")
    (tmp_path / "go").touch()
    assert heard(process) == "1800\n"


def test_workers_that_always_die_end_with_a_word(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "piece_size", lambda _: 40_000)
    stop = threading.Event()

    def kill() -> None:
        while not stop.wait(0.05):
            for pid in children(os.getpid(), "spawn_main"):
                os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(LostProcess, match="died 3 times"):
            run(source, tmp_path / "out", workers=2)
    finally:
        stop.set()
        killer.join()
    assert (tmp_path / ".out.unfinished").exists()
    assert run(source, tmp_path / "out").counts.read == 1800


LINES = st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"")), max_size=30)


@given(LINES, st.integers(1, 40), st.booleans())
@settings(max_examples=150, deadline=None)
def test_stretches_cover_a_file_line_by_line(lines: list[bytes], size: int, ended: bool) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.txt"
        path.write_bytes(b"\n".join(lines) + b"\n" * ended)
        if files.packed(path) or files.recoded(path, None):
            return
        stretches, _ = pieces.line_stretches(path, "a.txt", size)
        data = path.read_bytes()
        assert b"".join(data[s.start : s.end] for s in stretches) == data
        for stretch in stretches:
            assert stretch.first == data[: stretch.start].count(b"\n")
            assert stretch.start == 0 or data[stretch.start - 1] == 10
        assert all(s.end - s.start >= size for s in stretches[:-1])


def test_every_format_in_pieces_is_what_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"text {i} \u00e9" * (i % 9 + 1) for i in range(300)]
    table = pa.table({"text": texts})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=20)
    (tmp_path / "b.jsonl").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(json.dumps({"text": t}).encode() for t in texts))
    (tmp_path / "c.csv").write_text("text\n" + "".join(f'"{t}\nmore"\n' for t in texts))
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress((tmp_path / "b.jsonl").read_bytes()))
    monkeypatch.setattr(corpus, "piece_size", lambda _: 2000)
    both = read(*sorted(tmp_path.iterdir()))
    cut, digests = both.pieces()
    assert [sum(p.file == i for p in cut) > 1 for i in range(4)] == [True, True, False, False]
    assert digests == both.digests()

    def documents(of: list[pieces.Piece]) -> list[object]:
        return [item for piece in of for item in both.read(piece, Tally())]

    assert documents(cut) == documents(both.whole())
    assert len(documents(cut)) == 4 * 300


def test_one_file_is_one_piece_in_memory_too() -> None:
    held = Corpus.from_texts([f"t{i}" for i in range(40_000)])
    cut, _ = held.pieces()
    assert len(cut) == 3
    assert [item for piece in cut for item in held.read(piece, Tally())] == list(held.read(held.whole()[0], Tally()))
