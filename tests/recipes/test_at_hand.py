"""Texts that were measured on and are not here: a page needs how many they were, and nothing else of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import DataError
from taciturn.recipes.at_hand import Absent, Texts, at_hand, there
from taciturn.recipes.cells import Work
from taciturn.recipes.recipe import Inputs
from taciturn.text.document import Document

SOME = tuple(Document(str(n), f"text {n}") for n in range(5))


@given(st.integers(0, 30), st.slices(30))
def test_as_many_texts_are_cut_to_as_many(size: int, at: slice) -> None:
    assert len(Absent(size, "a set")[at]) == len(list(range(size))[at])


def test_a_text_that_is_not_here_is_not_read() -> None:
    for read in (list, tuple, lambda texts: texts[0], lambda texts: SOME[0] in texts):
        with pytest.raises(DataError, match="a set: its texts are not here"):
            read(Absent(3, "a set"))


def test_what_is_kept_serves_where_the_folder_is_not_and_never_where_it_is(tmp_path: Path) -> None:
    folder, work = tmp_path / "data", Work(tmp_path / "work")
    inputs = Inputs("medium", data=folder)

    def load() -> Texts:
        if not folder.exists():
            raise DataError("no such folder")
        return Texts(SOME[: len(list(folder.iterdir()))], (), note="five", facts={"users": 2})

    with pytest.raises(DataError, match="no such folder"):
        at_hand("a set", inputs, work, load)
    folder.mkdir()
    for files in (1, 2):  # a folder that changed is read anew
        (folder / str(files)).touch()
        assert at_hand("a set", inputs, work, load).train == SOME[:files]
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    there = Work(tmp_path / "elsewhere")
    there.restore(work.lines())
    found = at_hand("a set", inputs, there, load)
    assert (len(found.train), found.note, found.facts) == (2, "five", {"users": 2})
    assert len(found.test) == len(found.held) == 0
    assert "text 0" not in work.lines()


def test_a_set_is_there_if_the_folder_has_it_or_if_it_is_gone_and_was_read(tmp_path: Path) -> None:
    folder, work = tmp_path / "data", Work(tmp_path / "work")
    inputs = Inputs("medium", data=folder)
    assert not there("agnews", "AG", Inputs("medium"), work)
    assert not there("agnews", "AG", inputs, work)
    (folder / "agnews").mkdir(parents=True)
    assert not there("agnews", "AG", inputs, work)
    (folder / "agnews" / "train.csv").write_text('"1","Title","It rains."\n')
    assert there("agnews", "AG", inputs, work)
    at_hand("AG", inputs, work, lambda: Texts(SOME, ()))
    (folder / "agnews" / "train.csv").unlink()
    assert not there("agnews", "AG", inputs, work)  # a folder that lost it says so
    (folder / "agnews").rmdir()
    folder.rmdir()
    assert there("agnews", "AG", inputs, work)
    assert not there("agnews", "AG", Inputs("medium", data=folder, seed=1), work)
