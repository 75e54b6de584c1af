"""Where a Python call shows how far it is: on a terminal, as the commands do, or in a notebook; else nowhere."""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.markup import escape

from taciturn.cli import show
from taciturn.cli.options import rank

Notify = Callable[[Any], None]
PACE = 0.2
"""Seconds between two pictures in a notebook."""


@contextmanager
def training(label: str, target: float | None, wanted: bool) -> Iterator[Notify]:
    """A display of a run: what it yields takes a :class:`taciturn.training.state.metrics.Progress`."""
    with _display(wanted, lambda: show.training(label, target)) as (notify, draw):

        def in_notebook(p: Any) -> None:
            left = "" if p.left is None else f"{show.duration(p.left)} left"
            said = [f"{p.step.number + 1}/{p.total}", *show.facts(p, target), left]
            draw(f"{label} · {p.step.phase.name}", p.step.number + 1, p.total, ", ".join(filter(None, said)))

        yield notify or in_notebook


@contextmanager
def screening(label: str, wanted: bool) -> Iterator[Notify]:
    """A display of a screening: what it yields takes a :class:`taciturn.screening.pipeline.Progress`."""
    with _display(wanted, lambda: show.screening(label)) as (notify, draw):
        yield notify or (lambda p: draw(label, p.bytes, p.of_bytes, ", ".join(show.pace(p))))


@contextmanager
def telling(label: str, wanted: bool) -> Iterator[Callable[[str], None]]:
    """What goes on in work of unknown length, as one line that turns: what it yields takes the words."""

    @contextmanager
    def turning() -> Iterator[Notify]:
        with show.talk.status(escape(f"{label} …")) as status:
            yield lambda said: status.update(escape(f"{label}: {said}"))

    with _display(wanted, turning) as (notify, draw):
        draw(label, 0, 0, "")
        yield notify or (lambda said: draw(label, 0, 0, said))
        draw(label, 1, 1, "")


@contextmanager
def _display(wanted: bool, terminal: Callable[[], Any]) -> Iterator[tuple[Notify | None, Callable[..., None]]]:
    if not wanted or rank() or not (show.talk.is_terminal or show.talk.is_jupyter):
        yield (lambda _: None), _nothing
    elif show.talk.is_jupyter:
        yield None, _Picture().draw
    else:
        with terminal() as notify:
            yield notify, _nothing


def _nothing(*_: Any) -> None: ...


class _Picture:
    """One HTML output of a notebook's cell, drawn again and again; needs no widgets."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html, self._last = HTML, -PACE
        self._handle = display(HTML(""), display_id=True)

    def draw(self, label: str, done: int, total: int, said: str) -> None:
        now = time.monotonic()
        if done < total and now - self._last < PACE:
            return
        self._last = now
        bar = f"<progress max='{max(total, 1)}' value='{done}'></progress>" if total else "<progress></progress>"
        self._handle.update(self._html(f"<div>{html.escape(label)} {bar} {html.escape(said)}</div>"))
