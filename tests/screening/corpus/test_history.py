"""A corpus that is screened again into its folder keeps the history of the runs made on it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from taciturn.errors import DataError
from taciturn.privacy.certificates.history import RUNS, Line, append, read_history
from taciturn.screening import policy, screen
from taciturn.screening.corpus import store
from taciturn.text.readers import Corpus

TEXTS = ["hello there", "call (555) 010-7788 today"]


def screened(out: Path, texts: list[str] = TEXTS) -> None:
    screen(Corpus.from_texts(texts), policy("phone"), policy("conservative"), out=out)


def line(key: str) -> Line:
    fields = {"date": "2026-01-01T00:00:00+00:00", "path": f"/runs/{key}", "mechanism": "sgd", "seeded": False}
    return Line(key=key, state="begun", relation="substitution", **fields)


def keys(folder: Path) -> list[str]:
    return [run.last.key for run in read_history(folder)]


def test_the_name_of_the_history_is_one() -> None:
    assert store.RUNS == RUNS


def test_screening_again_keeps_the_runs(tmp_path: Path) -> None:
    out = tmp_path / "s"
    screened(out)
    screened(out)
    assert not (out / RUNS).exists()
    append(out, line("a"))
    for _ in range(2):
        screened(out)
        assert keys(out) == ["a"]
        assert (out / RUNS).stat().st_mode & 0o777 == 0o600
    append(out, line("b"))
    assert keys(out) == ["a", "b"]
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


def test_a_run_that_goes_on_while_the_corpus_is_screened_again_is_not_lost(tmp_path: Path) -> None:
    out = tmp_path / "s"
    screened(out)
    append(out, line("a"))
    with (out / RUNS).open("ab") as held:
        screened(out)
        held.write(line("b").model_dump_json().encode() + b"\n")
    assert keys(out) == ["a", "b"]


def test_without_links_the_runs_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    screened(tmp_path / "s")
    append(tmp_path / "s", line("a"))
    monkeypatch.setattr(os, "link", refuse)
    screened(tmp_path / "s")
    assert keys(tmp_path / "s") == ["a"]


def test_a_screening_killed_while_it_takes_its_place_loses_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the two renames, the next one begins where the old folder was; even if it then fails on its input."""
    out, rename = tmp_path / "s", os.rename

    def killed(old: Path, new: Path) -> None:
        if Path(old).name == ".s.unfinished":
            raise KeyboardInterrupt
        rename(old, new)

    screened(out)
    append(out, line("a"))
    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            screened(out)
    assert not out.exists()
    shutil.rmtree(tmp_path / ".s.unfinished")
    with pytest.raises(DataError):
        screened(out, ["another text"])
    assert keys(out) == ["a"]
    screened(out)
    assert keys(out) == ["a"]
