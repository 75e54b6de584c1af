"""taciturn init: what it leaves out and why, on the screen and in the file; what it counts and holds out."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looked_at import SAID, seen
from taciturn.cli.main import run
from taciturn.project.inspect_files import Look, inspect
from taciturn.project.left_out import SIDE, left_out
from taciturn.project.settings import load
from taciturn.project.suggest import suggest
from taciturn.project.write import render
from taciturn.text.readers import read


def told(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["init", *argv]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_what_is_left_out_is_said_on_the_screen_and_in_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "tickets.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("subject", "body", "intent", "nick"))
        writer.writerows((f"about the parcel {i}", SAID["en"], "ab"[i % 2], f"n{i % 9}") for i in range(120))
    screen = told(["tickets.csv", "-o", "tickets.toml"], capsys)
    written = " ".join((tmp_path / "tickets.toml").read_text("utf-8").replace("#", "").split())
    for said in (
        "Left out: the text of subject", 'text = "body,subject" joins two', "Left out: the labels in intent",
        "Left out: users.", "These may say: nick (user = …)", "30 of 120 documents are kept out: at least 20",
        "Left out: canaries. There are about 120 documents; below 1,000", "Left out: labels.", "taciturn sample",
    ):  # fmt: skip
        assert said in screen
        assert said in written
    assert load(tmp_path / "tickets.toml").name == "tickets"
    (tmp_path / "note.toml").write_text(
        render(suggest(seen(tmp_path, [{"text": SAID["en"]}]), ["a"], "w"), "note.toml")
    )
    assert load(tmp_path / "note.toml").name == "note"


def look(documents: int, users: int | None) -> Look:
    return Look(
        {"jsonl": 1}, ("text",), None if users is None else "user", None, None, None, False, False, "en", documents, True,
        users, 80.0, 5000, (),
    )  # fmt: skip


@given(st.integers(1, 5000), st.one_of(st.none(), st.integers(1, 5000)))
def test_held_out_takes_what_an_attack_needs_or_says_it_cannot(documents: int, users: int | None) -> None:
    found = look(documents, users)
    settings = suggest(found, ["a"], "w")
    number, share = documents if users is None else users, settings.split.held_out
    held = round(share * number)  # as the split draws it
    (said,) = left_out(found, settings)["split"]
    if "membership" in settings.audit.attacks:
        assert SIDE <= held <= number - SIDE
        assert said.startswith(f"{held:,} of {number:,} ")
    else:
        assert held < SIDE
        assert number < 3 * SIDE + 1
        assert "Left out: the membership attack" in said


def test_a_side_is_as_large_as_the_attack_asks() -> None:
    from taciturn.auditing.membership.statistics import LEAST

    assert SIDE == LEAST


def test_annotations_inside_turns_are_counted(tmp_path: Path) -> None:
    turn = {"speaker": "USR", "text": "my number is 555-0107", "spans": [{"start": 13, "end": 21, "label": "phone"}]}
    for name in ("turns", "messages"):
        row = {
            name: [
                {**turn, "role": "user", "content": turn["text"]},
                {**turn, "spans": [], "role": "user", "content": "a"},
            ]
        }
        found = seen(tmp_path, [row] * 30)
        assert (found.spans, found.annotated, found.spans_in_turns) == (True, 30, True)
        (said,) = left_out(found, suggest(found, ["a"], "w"))["certify"]
        assert "read in its turns (30 in 30 documents)" in said
    whole = seen(tmp_path, [{"text": turn["text"], "spans": turn["spans"]}] * 3)
    assert (whole.spans, whole.annotated, whole.spans_in_turns) == (True, 3, False)


def test_senders_of_mail_are_users_and_few_are_said(tmp_path: Path) -> None:
    folder = tmp_path / "mails"
    folder.mkdir()
    for i in range(12):
        head = f"From: Ann <ann{i % 4}@example.org>\nTo: b@example.org\nSubject: parcel\n\n"
        (folder / f"{i}.eml").write_text(head + SAID["en"] + "\n")
    found = inspect(read(folder))
    assert (found.user, found.users, dict(found.formats)) == (None, 4, {"eml": 12})
    said = left_out(found, suggest(found, ["mails"], "w"))
    assert [line.partition(".")[0] for line in said["read"]] == ["Few users: 4"]
    assert "It needs 20 users on each side" in said["split"][0]


def test_columns_that_come_again_may_be_users(tmp_path: Path) -> None:
    rows = [{"text": SAID["en"], "nr": i, "nick": f"n{i % 9}", "done": "yn"[i % 2], "day": f"d{i}"} for i in range(60)]
    assert seen(tmp_path, rows).maybe_users == ("nick",)
    assert seen(tmp_path, [{**row, "user": f"u{row['nr']}"} for row in rows]).maybe_users == ()


@pytest.mark.parametrize("name", ["sgd", "redacted"])
def test_a_project_without_noise_has_no_target_to_miss(tmp_path: Path, name: str) -> None:
    """The file cannot say "none": what is left out is no target of 3."""
    settings = suggest(look(300, None), ["a"], "w", mechanism=name)
    (tmp_path / "p.toml").write_text(render(settings, "p.toml"), "utf-8")
    back = load(tmp_path / "p.toml")
    assert back.settings.plan.config(tmp_path, tmp_path).epsilon is None
    (tmp_path / "q.toml").write_text(render(suggest(look(300, None), ["a"], "w"), "q.toml"), "utf-8")
    assert load(tmp_path / "q.toml").settings.plan.config(tmp_path, tmp_path).epsilon == 3.0
