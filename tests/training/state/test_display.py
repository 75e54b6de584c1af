"""What a run shows: loss and speed where they are public, expectations where they are not, and never a text."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from tiny import VALID, plan, private, public, run

from taciturn.cli import show
from taciturn.models.held_out import Utility
from taciturn.training.engine import Options
from taciturn.training.plan import Step
from taciturn.training.state.metrics import Progress, rows


def on(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> io.StringIO:
    said = io.StringIO()
    console = Console(file=said, force_terminal=terminal, width=160, highlight=False, color_system=None)
    monkeypatch.setattr(show, "talk", console)
    return said


def test_a_terminal_shows_phase_loss_speed_epsilon_and_time_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = on(monkeypatch, terminal=True)
    options = Options(valid=VALID, evaluations=2)
    seen: list[str] = []
    with show.training("mail", 3.0) as notify:

        def keep(p: Progress) -> None:
            notify(p)
            seen.append(" ".join(show.facts(p, 3.0)))

        run(
            plan(public(3), private(steps=3), repeat=1),
            tmp_path,
            options=options,
            notify=keep,
            spent=lambda n, _: n / 10,
        )
    shown = said.getvalue()
    assert "mail · private" in shown
    assert "6/6" in shown
    assert "ε 0.60 of 3" in shown
    assert "left" in shown
    assert "valid" in shown
    assert all("loss" in each and "tokens/s" in each for each in seen[:3])
    assert all("loss" not in each and "tokens" not in each and "records/s expected" in each for each in seen[3:])


def test_plain_lines_say_the_same_when_it_is_not_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = on(monkeypatch, terminal=False)
    with show.training("mail", 3.0) as notify:
        run(
            plan(public(3), private(steps=3), repeat=1),
            tmp_path,
            options=Options(valid=VALID, evaluations=1),
            notify=notify,
            spent=lambda n, _: n / 10,
        )
    lines = said.getvalue().splitlines()
    assert [line.split(",")[0] for line in lines] == ["mail: step 3/6 (public)", "mail: step 6/6 (private)"]
    assert "loss" in lines[0]
    assert "loss" not in lines[1]
    assert "ε 0.60 of 3" in lines[1]
    assert "perplexity outside secrets" in lines[1]
    assert "\x1b" not in said.getvalue()


def progress(number: int, seconds: float, total: int = 1000, private_step: bool = True) -> Progress:
    phase = private() if private_step else public()
    loss = None if private_step else 1.234
    return Progress(Step(number, phase, number, 0), total, loss, None, seconds, None, 1.5, 3725.0, 12.5)


def test_a_long_run_without_evaluations_shows_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    said = on(monkeypatch, terminal=False)
    with show.training("mail") as notify:
        for i in range(100):
            notify(progress(i, float(i)))
    lines = said.getvalue().splitlines()
    assert len(lines) == 3  # every 30 of 100 seconds
    assert lines[0] == "mail: step 31/1000 (private), ε 1.50, 12.5 records/s expected, 0:30, 1:02:05 left"


def test_the_last_step_and_every_evaluation_get_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    said = on(monkeypatch, terminal=False)
    with show.training("mail", 2) as notify:
        at = progress(3, 1.0, private_step=False)
        notify(at)
        notify(Progress(at.step, 1000, 1.0, 5, 1.0, Utility(9.0, 1, 8.125, 1), None, 0.0, None))
        notify(progress(999, 2.0))
    assert said.getvalue().splitlines() == [
        "mail: step 4/1000 (public), loss 1.000, perplexity outside secrets 8.12, 0:01",
        "mail: step 1000/1000 (private), ε 1.50 of 2, 12.5 records/s expected, 0:02, 1:02:05 left",
    ]


def test_a_classifier_shows_its_accuracy(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Utility(1.5, 8, 1.5, 8, 0.875)
    at = progress(3, 1.0, private_step=False)
    for terminal, says in ((False, "loss 1.000, accuracy 0.875, 0:01"), (True, "valid accuracy 0.875")):
        said = on(monkeypatch, terminal)
        with show.training("mail", 2) as notify:
            notify(Progress(at.step, 1000, 1.0, 5, 1.0, found, None, 0.0, None))
        assert says in said.getvalue()
    (_, measured) = rows(Progress(at.step, 1000, 1.0, 5, 1.0, found), 1.0)
    assert measured["accuracy"] == 0.875
    (_, measured) = rows(Progress(at.step, 1000, 1.0, 5, 1.0, Utility(9.0, 1, 8.125, 1)), 1.0)
    assert "accuracy" not in measured
