"""A Python call shows how far it is: a bar on a terminal and in a notebook; nothing in a pipe, or where it is declined."""

from __future__ import annotations

import inspect
import io
import re
from typing import Any

import pytest

import taciturn as tt
from taciturn.cli import show
from taciturn.errors import UsageError
from taciturn.screening import pipeline

TEXTS = ["Call me at (555) 010-7788 today.", "Thank you for the parcel.", "Good morning."] * 4


def screened(**options: Any) -> Any:
    return tt.screen(tt.read(TEXTS), tt.policy("pii"), tt.policy("conservative"), **options)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal of 100 columns is sent."""
    sent = io.StringIO()
    monkeypatch.setattr(show, "talk", show.Lines(file=sent, force_terminal=True, force_jupyter=False, width=100))
    return sent


def test_a_terminal_has_a_bar_that_ends_full(told: io.StringIO) -> None:
    screened(out=None)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", told.getvalue())
    assert "screening" in plain
    assert "100 %" in plain
    assert "━" in plain
    assert not [text for text in TEXTS if text in plain]


def test_a_folder_is_what_the_bar_is_called(told: io.StringIO, tmp_path: Any) -> None:
    screened(out=tmp_path / "letters")
    assert "letters" in told.getvalue()


def test_nothing_where_it_is_declined(told: io.StringIO) -> None:
    screened(progress=False)
    assert told.getvalue() == ""


def test_nothing_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = io.StringIO()
    monkeypatch.setattr(show, "talk", show.Lines(file=sent, force_terminal=False, force_jupyter=False))
    screened()
    assert sent.getvalue() == ""


def test_a_notebook_has_one_picture_that_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = pytest.importorskip("IPython.display", reason="IPython is not installed")
    drawn: list[str] = []

    class Handle:
        def update(self, shown: Any) -> None:
            drawn.append(shown.data)

    monkeypatch.setattr(show, "talk", show.Lines(file=io.StringIO(), force_jupyter=True))
    monkeypatch.setattr(notebook, "display", lambda *_, **__: Handle())
    screened()
    assert re.search(r"<progress max='(\d+)' value='\1'>", drawn[-1]), "it ends full"
    assert f"{len(TEXTS)} records" in drawn[-1]


def test_at_the_end_every_record_is_told() -> None:
    seen: list[pipeline.Progress] = []
    texts = [f"Good morning {i}." for i in range(5000)]  # more than a batch
    made = tt.screen(tt.read(texts), tt.policy("phone"), tt.policy("phone"), progress=False, notify=seen.append)
    assert seen[-1].records == made.counts.read


def test_the_door_does_what_the_pipeline_does_and_tells_who_asks() -> None:
    seen: list[pipeline.Progress] = []
    mine = screened(unit="document", dedup="none", notify=seen.append)
    there = pipeline.screen(tt.read(TEXTS), tt.policy("pii"), tt.policy("conservative"), unit="document", dedup="none")
    assert mine.counts == there.counts
    assert mine.texts("redacted") == there.texts("redacted")
    assert seen[-1].bytes == seen[-1].of_bytes > 0
    with pytest.raises(UsageError, match="several workers"):
        screened(workers=2)


def test_what_is_named_by_hand_is_named_and_defaulted_as_in_the_pipeline() -> None:
    """Its keywords are those of the pipeline: tests/test_typed.py."""
    here, there = (inspect.signature(each).parameters for each in (tt.screen, pipeline.screen))
    assert list(here) == ["corpus", "pi", "conservative", "progress", "notify", "options"]
    for name in ("corpus", "pi", "conservative"):
        assert here[name].annotation == there[name].annotation
        assert here[name].kind == there[name].kind


def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attack that says what it does, and no more."""

    def attacked(_folder: Any, attacks: Any, *, notify: Any) -> list[Any]:
        for attack in attacks:
            notify(f"{attack} [1 of 1]")
        return []

    monkeypatch.setattr("taciturn.api.attack_all", attacked)


def test_an_audit_says_which_attack_is_made(told: io.StringIO, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    asked(monkeypatch)
    tt.audit(tmp_path / "mail", ["exposure"])
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", told.getvalue())
    assert "attacking mail: exposure [1 of 1]" in plain
    told.truncate(0)
    told.seek(0)
    tt.audit(tmp_path / "mail", ["exposure"], progress=False)
    assert told.getvalue() == ""


def test_a_notebook_shows_the_attack(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    notebook = pytest.importorskip("IPython.display", reason="IPython is not installed")
    drawn: list[str] = []

    class Handle:
        def update(self, made: Any) -> None:
            drawn.append(made.data)

    monkeypatch.setattr(notebook, "display", lambda made, **_: drawn.append(made.data) or Handle())
    monkeypatch.setattr(show, "talk", show.Lines(file=io.StringIO(), force_terminal=False, force_jupyter=True))
    asked(monkeypatch)
    tt.audit(tmp_path / "mail", ["exposure"])
    assert any("<progress></progress> exposure [1 of 1]" in each for each in drawn)
    assert "value='1'" in drawn[-1]
