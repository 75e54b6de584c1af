"""δ₂ with skeletons and without, by label: against two screenings; and the file that says which secrets were missed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from taciturn.cli.main import run
from taciturn.screening import policy, screen
from taciturn.screening.corpus.gold import Gold, together
from taciturn.screening.corpus.manifest import Manifest
from taciturn.screening.measuring.evaluate import evaluate
from taciturn.screening.measuring.misses import misses_of
from taciturn.screening.measuring.preview import of_corpus
from taciturn.text.readers import Corpus, read

PHONE, NAME, WORD = "(555) 010-7788", "Rodger formerly Earlsferry", "sesame"
TEXTS = [
    (f"call me at {PHONE} please", PHONE, "phone"),
    (f"then ask {NAME} about it, says Dana", NAME, "name"),
    (f"my password is {WORD}", WORD, "password"),
    ("hello how are you", "", ""),
]


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """40 records. A detector of one's own marks capitals and digits, and so leaves "formerly" in the middle of one."""
    rows = [
        {"text": text, "spans": [{"start": text.index(s), "end": text.index(s) + len(s), "label": label}] if s else []}
        for text, s, label in TEXTS * 10
    ]
    (tmp_path / "chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "own.toml").write_text(
        '[[detector]]\nname = "capital"\npattern = "[A-Z][a-z]+|[0-9]+"\nmust_find = ["Dana"]\n'
    )
    return tmp_path


def corpus(folder: Path) -> Corpus:
    return read(str(folder / "chat.jsonl"), spans="spans")


def both(folder: Path) -> tuple[Any, Any]:
    return policy("phone"), policy("phone", file=folder / "own.toml")


def test_one_screening_says_what_two_would(chat: Path) -> None:
    """The share with skeletons is what a screening with them counts, and without them what one without them counts."""
    pi, wide = both(chat)
    made = {kept: screen(corpus(chat), pi, wide, skeletons=kept) for kept in (True, False)}
    for screened in made.values():
        gold = {each.label: each for each in screened.manifest.gold}
        assert gold["phone"] == Gold(label="phone", spans=10, missed_by_pi=0, with_skeletons=0, without_skeletons=0)
        assert (gold["name"].with_skeletons, gold["name"].without_skeletons) == (
            10,
            0,
        )  # "formerly" stays in the skeleton
        assert (gold["password"].with_skeletons, gold["password"].without_skeletons) == (10, 10)
        whole = together(screened.manifest.gold)
        assert whole.spans == screened.counts.gold_spans == 30
        assert whole.missed_by_pi == screened.counts.gold_missed_by_pi
        assert whole.with_skeletons == made[True].counts.gold_missed_by_both == 20
        assert whole.without_skeletons == made[False].counts.gold_missed_by_both == 10


def test_evaluation_agrees_with_screening(chat: Path) -> None:
    pi, wide = both(chat)
    [score] = evaluate(of_corpus(corpus(chat)), [pi], wide)
    assert score.gold_by_label == screen(corpus(chat), pi, wide).manifest.gold
    assert evaluate(of_corpus(corpus(chat)), [pi])[0].gold_by_label == ()


def test_misses_are_those_of_the_bridge_that_was_chosen(tmp_path: Path) -> None:
    text = "then ask Rodger of Earlsferry about it"
    span = {"start": 9, "end": 29, "label": "name"}
    (tmp_path / "chat.jsonl").write_text(json.dumps({"text": text, "spans": [span]}) + "\n")
    pi, wide = policy("phone"), policy("conservative")
    for bridge, missed in (("signs", 1), ("particles", 0)):
        screened = screen(corpus(tmp_path), pi, wide, bridge=bridge)  # type: ignore[arg-type]
        assert screened.counts.gold_missed_by_both == missed
        assert len(list(misses_of(screened, corpus(tmp_path), pi, wide))) == missed


@pytest.mark.parametrize("workers", [1, 2])
def test_counts_survive_pieces_workers_and_the_folder(chat: Path, workers: int) -> None:
    pi, wide = both(chat)
    for number in range(3):
        (chat / f"more-{number}.jsonl").write_bytes((chat / "chat.jsonl").read_bytes())
    several = read(str(chat / "more-*.jsonl"), spans="spans")
    screened = screen(several, pi, wide, out=chat / "s", workers=workers)
    assert Manifest.read(chat / "s" / "manifest.json").gold == screened.manifest.gold
    assert together(screened.manifest.gold).spans == screened.counts.gold_spans == 90


def test_what_was_missed_is_what_was_counted(chat: Path) -> None:
    pi, wide = both(chat)
    screened = screen(corpus(chat), pi, wide)
    lines = list(misses_of(screened, corpus(chat), pi, wide))
    assert len(lines) == screened.counts.gold_missed_by_both
    assert {line["text"] for line in lines} == {NAME, WORD}
    texts = dict(zip(screened.table["id"].to_pylist(), screened.texts("original"), strict=True))
    assert all(texts[line["id"]][line["start"] : line["end"]] == line["text"] for line in lines)
    assert {line["text"] for line in lines if line["without_skeletons"]} == {WORD}


@pytest.mark.parametrize("command", ["screen", "evaluate"])
def test_the_commands_print_numbers_and_write_the_misses(
    chat: Path, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """No text of a secret on the screen, in JSON, or anywhere but in the file, which only its owner reads."""
    file = chat / "misses.jsonl"
    argv = [
        command,
        str(chat / "chat.jsonl"),
        "--spans",
        "spans",
        "-p",
        "phone",
        "-c",
        "conservative",
        "--misses",
        str(file),
    ]
    argv += ["-o", str(chat / "s")] * (command == "screen")
    assert run(argv) == 0
    heard = capfd.readouterr()
    assert "--no-skeletons" in heard.out
    assert "password" in heard.out
    assert "10 (100.0 %)" in heard.out
    for said in (heard.out, heard.err):
        assert NAME not in said
        assert WORD not in said
    assert file.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert WORD in {line["text"] for line in lines}
    assert not list(chat.glob("*.partial"))
    if command == "screen":
        assert WORD.encode() not in (chat / "s" / "manifest.json").read_bytes()
    assert run(argv) == 2  # what is there stays
    assert "exists" in capfd.readouterr().err
    assert [json.loads(line) for line in file.read_text().splitlines()] == lines

    file.unlink()
    assert run([*argv, "--json"]) == 0
    heard = capfd.readouterr()
    found = json.loads(heard.out)
    by_label = found["gold"] if command == "screen" else found["policies"][0]["gold_by_label"]
    [password] = [each for each in by_label if each["label"] == "password"]
    assert (password["spans"], password["with_skeletons"], password["without_skeletons"]) == (10, 10, 10)
    assert WORD not in heard.out


def test_misses_need_both_policies_and_a_folder(chat: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["evaluate", str(chat / "chat.jsonl"), "--spans", "spans", "-p", "phone"]
    assert run([*argv, "--misses", str(chat / "m.jsonl")]) == 2
    assert "name π_c with -c" in capsys.readouterr().err
    assert run([*argv, "-c", "conservative", "--misses", str(chat / "nowhere" / "m.jsonl")]) == 2
    assert "no folder" in capsys.readouterr().err
