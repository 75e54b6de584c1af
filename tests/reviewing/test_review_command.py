"""The command as a user runs it: Ctrl-C, kill -9 and going on, two people, corrections, and what it never says."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed (extra 'review')")
sys.path.insert(0, str(Path(__file__).parent))
from served import served

from taciturn.cli.main import run

SECRETS = ("(555) 010-7788", "010-7788", "Rhonda", "Quillfeather", "sesame")


@pytest.fixture
def folder(corpus: Path, tmp_path: Path) -> Path:
    shutil.copytree(corpus, tmp_path / "screened")
    return tmp_path / "screened"


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def said(argv: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert run(argv) == code, capsys.readouterr().err
    heard = capsys.readouterr()
    return heard.out, heard.err


def test_it_draws_what_sample_draws_ends_with_ctrl_c_and_says_the_bound(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(["sample", str(folder), "-n", "12", "--seed", "5", "-o", f"{folder}/s.jsonl"], capsys)
    with served(folder, "-n", "12", "--seed", "5") as page:
        file = folder / "labels.jsonl"
        assert file.read_bytes() == (folder / "s.jsonl").read_bytes()
        assert file.stat().st_mode & 0o777 == 0o600
        at = next(i for i, line in enumerate(lines(file)) if "magic word" in line["text"])
        page.change(at, op="add", start=18, end=24, kind="password")
        for number in range(at + 1):  # those above, too: whatever is passed over may be a secret that is missed
            page.change(number, op="status", status="done")
        page.end()
        assert page.code == 0
        found = page.json()
        wanted = json.loads(said(["recall", str(folder), str(file), "--json"], capsys)[0])
        assert (found["done"], found["unsure"], found["todo"]) == (at + 1, 0, 11 - at)
        assert found["bound"]["delta2"] == wanted["bounds"]["delta2"]
        assert found["bound"]["missed_by_both"] == 1
        heard = page.out + page.err
        assert not [s for s in SECRETS if s in heard]
        token = page.url.partition("token=")[2]
        assert heard.count(token) == 1  # in the address the user needs, and nowhere else
        assert not [f for f in folder.iterdir() if f.is_file() and token.encode() in f.read_bytes()]
        assert "next: taciturn recall" in page.err


def test_killed_at_any_moment_it_goes_on_from_the_last_answer(folder: Path) -> None:
    file = folder / "labels.jsonl"
    answered = 0
    with served(folder, "-n", "40", "--seed", "5", "--no-bound") as page:
        at = next(i for i, line in enumerate(lines(file)) if "magic word" in line["text"])
        page.ask("/state")
        killer = threading.Timer(0.4, lambda: page.process.send_signal(signal.SIGKILL))
        killer.start()
        asked, last = "todo", "todo"
        try:
            while True:  # statuses go round, so that there is always something to write
                asked = ("done", "skip", "todo")[answered % 3]
                page.change(at, op="status", status=asked)
                last, answered = asked, answered + 1
        except (OSError, http.client.HTTPException):  # the connection breaks, or is refused
            pass
        killer.join()
        page.process.wait()
        page.code = -signal.SIGKILL
    kept = lines(file)  # whole: every line is JSON
    assert len(kept) == 40
    assert kept[at]["label_status"] in {last, asked}
    with served(folder, "--no-bound") as page:
        assert page.ask(f"/records/{at}")["record"]["status"] == kept[at]["label_status"]
        assert page.ask("/state")["state"]["counts"]["todo"] == sum(line["label_status"] == "todo" for line in kept)
        page.end(signal.SIGTERM)
        assert page.code == 0
        assert page.json()["bound"] is None


def test_two_people_and_their_merge(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "two people" in said(["review", str(folder), "--merge"], capsys, 2)[1]
    with served(folder, "-n", "10", "--seed", "5", "--reviewer", "ana", "--no-bound") as ana:
        with served(folder, "--reviewer", "bo", "--no-bound") as bo:
            files = [folder / "labels-ana.jsonl", folder / "labels-bo.jsonl"]
            assert files[0].read_bytes() == files[1].read_bytes()
            assert ana.ask("/state")["state"]["reviewer"] == "ana"
            text = [line["text"] for line in lines(files[0])]
            at = next(i for i, each in enumerate(text) if "magic word" in each)
            for page in (ana, bo):
                for record in range(9):
                    page.change(record, op="status", status="done")
            ana.change(at, op="add", start=18, end=24, kind="password")
            bo.change((at + 1) % 9, op="status", status="skip")
        assert "another taciturn review holds labels-ana.jsonl" in said(
            ["review", str(folder), "--reviewer", "ana", "--no-bound"], capsys, 2
        )[1]  # fmt: skip
    found = json.loads(said(["review", str(folder), "--merge", "--json"], capsys)[0])
    ids = [line["id"] for line in lines(files[0])]
    wanted = {(ids[(at + 1) % 9], "unsure")} | ({(ids[at], "secret or not")} if at < 9 else set())
    assert {(d["id"], d["why"]) for d in found["disagreements"]} == wanted
    assert (found["done"], found["unsure"], found["todo"]) == (9 - len(wanted), len(wanted), 1)
    [pair] = found["agreement"]
    assert (pair["people"], pair["records"], pair["unsure"]) == (["ana", "bo"], 9, 1)
    assert (folder / "labels.jsonl").stat().st_mode & 0o777 == 0o600
    assert "may hold labels or decisions" in said(["review", str(folder), "--merge"], capsys, 2)[1]
    out, err = said(["review", str(folder), "--merge", "--force"], capsys)
    assert "κ of tokens" in out
    assert "to be decided" in err
    assert not [s for s in SECRETS if s in out + err]
    with served(folder) as judge:  # whoever decides sees the marks of both
        spans = judge.ask(f"/records/{at}")["record"]["spans"]
        assert [(s["start"], s["end"]) for s in spans] == ([(18, 24)] if at < 9 else [])
        judge.change(at, op="status", status="done")
    assert run(["recall", str(folder), f"{folder}/labels.jsonl"]) == 0


def test_corrections_are_what_corrections_import_reads(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(folder, "--corrections", "-n", "40", "--seed", "5", "--reviewer", "ana") as page:
        file = folder / "corrected-ana.jsonl"
        at = next(i for i, line in enumerate(lines(file)) if "call me at" in line["text"])
        record = page.ask(f"/records/{at}")["record"]
        assert len(record["spans"]) == 1
        assert "<MASK>" in "".join(run for run, _ in record["redacted"])
        word = next(i for i, line in enumerate(lines(file)) if "magic word" in line["text"])
        page.change(word, op="add", start=18, end=24, kind="password")
        page.change(word, op="status", status="done")
        page.change(at, op="remove", start=0, end=record["units"])
        page.change(at, op="status", status="done")
        assert page.ask("/state")["state"]["bound"] is False
        with served(folder, "--corrections", "--reviewer", "bo") as other:  # begins with what π found
            assert len(other.ask(f"/records/{at}")["record"]["spans"]) == 1
            other.change(word, op="status", status="done")
    salts = {line["salt"] for name in ("ana", "bo") for line in lines(folder / f"corrected-{name}.jsonl")}
    assert len(salts) == 1
    said(["review", str(folder), "--corrections", "--merge"], capsys)
    changes = json.loads(said(["corrections", "import", str(folder), f"{folder}/corrected.jsonl", "--json"], capsys)[0])
    assert (changes["records"], changes["added"], changes["kept"]) == (2, 1, 1)
    assert "made with --corrections" in said(
        ["review", str(folder), "--labels", f"{folder}/corrected.jsonl", "--no-browser"], capsys, 3
    )[1]  # fmt: skip


def test_mistakes(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    said(["sample", str(folder), "-n", "5", "--seed", "5", "-o", f"{folder}/labels.jsonl"], capsys)
    for argv, code, says in (
        ([f"{tmp_path}/nowhere"], 3, "no such folder"),
        ([f"{tmp_path}/nowhere", "--merge"], 3, "no such folder"),
        ([str(folder), "--reviewer", "../ana"], 2, "letters, digits and underscores"),
        ([str(folder), "-n", "7"], 2, "holds a sample with -n 5"),
        ([str(folder), "--seed", "6"], 2, "holds a sample with --seed 5"),
        ([str(folder), "--corrections", "--labels", f"{folder}/labels.jsonl"], 3, "a sample to label"),
        ([str(folder), "--confidence", "2"], 2, "must lie in (0, 1)"),
        ([str(folder), "--kinds", ","], 2, "--kinds takes names"),
    ):
        assert says in said(["review", *argv], capsys, code)[1], argv
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        argv = ["review", str(folder), "--port", str(taken.getsockname()[1]), "--no-browser"]
        assert "cannot be had" in said(argv, capsys, 2)[1]
    assert "cannot be had" in said(["review", str(folder), "--port", "99999"], capsys, 2)[1]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "starlette" else name)
    assert "taciturn[review]" in said(["review", str(folder)], capsys, 2)[1]
