"""What is printed stands there whole, at 80 columns: no markup eaten, no word cut, no bar without its total."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from taciturn.cli import show
from taciturn.cli.tables import table

CLI = Path(show.__file__).parent
WORDS = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=1, max_size=30)
LINES = st.lists(WORDS | st.sampled_from(["[red]", "[/]", "[bold]x", ":smile:", "mail[1].jsonl", "[link=x]y[/link]"]),
                 min_size=1, max_size=20).map(" ".join)  # fmt: skip


def console(width: int = 80, terminal: bool = True) -> show.Lines:
    return show.Lines(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None, legacy_windows=False)


def said(by: show.Lines) -> str:
    assert isinstance(by.file, io.StringIO)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", by.file.getvalue())


@given(LINES)
def test_a_line_is_printed_whole_and_broken_between_words_alone(line: str) -> None:
    shown, piped = console(), console(terminal=False)
    shown.print(line)
    piped.print(line)
    assert said(shown).split() == line.split()
    assert all(len(each.rstrip()) <= 80 for each in said(shown).splitlines())
    assert said(piped) == f"{line}\n"


def test_a_path_longer_than_a_line_is_not_broken() -> None:
    path = "/".join(["folder[1]"] * 20)
    by = console()
    by.print(f"wrote {path}; next: taciturn verify {path}")
    assert said(by).split() == ["wrote", f"{path};", "next:", "taciturn", "verify", path]


@given(st.integers(1, 9).flatmap(lambda n: st.lists(st.lists(LINES, min_size=n, max_size=n), min_size=1, max_size=4)))
def test_a_table_cuts_no_word_and_eats_no_markup(cells: list[list[str]]) -> None:
    by = console()
    columns = [f"column{i}" for i in range(len(cells[0]))]
    cells = [["  " + row[0], *row[1:]] for row in cells]  # a label under another is indented
    by.print(table("a [title]", columns, cells))
    lines = said(by).splitlines()
    assert all(len(line) <= 80 for line in lines)
    shown = sorted(said(by).split())
    for word in {word for row in cells for cell in row for word in cell.split()}:
        assert any(word in each for each in shown), word
    assert "[title]" in shown


def test_a_figure_with_its_share_stays_on_one_line_and_an_indented_label_whole() -> None:
    by = console(80)
    columns = ("annotated", "secrets", "missed by π", "by both (δ₂), with skeletons", "by both (δ₂), --no-skeletons")
    rows = [("all", "20", "10 (50.0 %)", "0 (0.0 %)", "0 (0.0 %)"), ("  password", "10", "10 (100.0 %)", "–", "–")]
    by.print(table("", columns, rows))
    lines = [line.split("  ") for line in said(by).splitlines()]
    assert "10 (50.0 %)" in [part.strip() for part in lines[2]]
    assert "10 (100.0 %)" in [part.strip() for part in lines[3]]
    assert lines[3][1] == "password"


def test_numbers_stand_in_columns_where_they_fit_and_in_blocks_where_not() -> None:
    wide, narrow = console(100), console(40)
    made = table("t", ("attack", "score of the attack", "verdict"), [("exposure", "3.21 bits", "inconclusive")])
    wide.print(made)
    narrow.print(made)
    assert said(wide).splitlines()[2].split() == ["exposure", "3.21", "bits", "inconclusive"]
    by = console(20)
    by.print(made)
    assert [line.strip() for line in said(by).splitlines()[1:]] == [
        "attack: exposure", "score of the", "attack: 3.21 bits", "verdict:", "inconclusive"
    ]  # fmt: skip


@pytest.mark.parametrize("width", [60, 80, 120])
def test_progress_keeps_bar_total_and_time_left(width: int) -> None:
    """At a long name, long notes and a million steps."""
    by = console(width)
    with show.display(by, "{task.fields[done]}") as progress:
        task = progress.add_task("a very long name of a run [1] · private", total=1_000_000, done="", note="", left="")
        note = "ε 2.91 of 3  loss 3.214  5,123 tokens/s  valid 123.45"
        progress.update(task, completed=999_999, done="999999/1000000", note=note, left="1:02:05 left")
        progress.refresh()
    line = said(by).splitlines()[-1]
    assert len(line) <= width
    assert "999999/1000000" in line
    assert "1:02:05 left" in line
    assert line.count("━") >= 10
    assert width < 80 or "ε 2.91 of 3" in line
    assert width < 120 or note[:20] in line


def test_a_number_keeps_its_per_cent_sign() -> None:
    text = Text("apart from a chance of 0.001 %; at 1 % false alarms")
    for width in range(9, 52):
        lines = show.between_words(text, width).plain.split("\n")
        assert not [line for line in lines if line.startswith("%")]
        assert " ".join(lines) == text.plain


def test_before_the_first_step_no_total_is_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    by = console(80)
    monkeypatch.setattr(show, "talk", by)
    with show.training("mail"):
        pass
    assert "mail" in said(by)
    assert "None" not in said(by)


def test_a_step_says_what_it_is_when_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    by = console()
    monkeypatch.setattr(show, "talk", by)
    monkeypatch.setattr(show, "LATE", 1e9)
    with show.step("reading [all]"):
        pass
    assert said(by) == ""
    monkeypatch.setattr(show, "LATE", 0.0)
    with show.step("reading [all]"):
        while not said(by):
            time.sleep(0.001)
    assert said(by) == "reading [all] …\n"


@pytest.mark.parametrize("verbose", [False, True])
def test_every_claim_stands_there_in_three_lines_with_where_its_rest_is(
    verbose: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    by, beside = console(), console()
    monkeypatch.setattr(show, "out", by)
    monkeypatch.setattr(show, "talk", beside)
    words = [f"ε ≤ {i} at δ = 1e-5 " + "under what is assumed " * 20 for i in range(5)] + ["ε = 0"]
    show.claims(words, verbose)
    lines = said(by).splitlines()
    assert all(len(line) <= 80 for line in lines)
    if verbose:
        assert said(by).split() == [part for each in words for part in ("•", *each.split())]
        assert said(beside) == ""
    else:
        assert [line.startswith("• ε") for line in lines] == [True, False, False] * 5 + [True]
        assert [line.endswith(" …") for line in lines] == [False, False, True] * 5 + [False]
        assert "--verbose" in said(beside)


def test_text_becomes_output_in_one_place() -> None:
    """No command makes a console or switches markup: what each prints goes through show.Lines."""
    for path in CLI.glob("*.py"):
        text = path.read_text("utf-8")
        if path.name not in ("show.py", "help.py"):
            assert not re.search(r"\bConsole\((?!\))|\bLines\(|markup=|escape\(|\[/\w*\]", text), path.name
