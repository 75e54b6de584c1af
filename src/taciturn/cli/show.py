"""What commands print: talk on standard error, results on standard output, one live display for training."""

from __future__ import annotations

import json
import math
import re
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column
from rich.text import Text

from taciturn.cli.options import rank
from taciturn.cli.tables import table as table


class Lines(Console):
    """A console that takes no word for markup, and breaks lines between words on a terminal, nowhere else.

    A path longer than a line is not broken: whoever copies it gets it whole. The one place where text becomes output.
    """

    def __init__(self, **how: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **how)

    def print(self, *objects: Any, **how: Any) -> None:
        if not all(isinstance(each, str | Text) for each in objects):
            super().print(*objects, **how)
            return
        width = self.width if self.is_terminal else None
        lines = [between_words(Text(each) if isinstance(each, str) else each, width) for each in objects]
        super().print(*lines, **{**how, "crop": False, "overflow": "ignore", "no_wrap": True})


def between_words(text: Text, width: int | None) -> Text:
    """A text broken into lines of at most ``width`` cells where words end; a longer word has a line of its own."""
    if width is None:
        return text
    broken: list[Text] = []
    for line in text.split("\n", allow_blank=True):
        begin, breaks = 0, list[int]()
        for word in re.finditer(r"\S+(?: %\S*)?", line.plain):  # a number keeps its per cent sign
            if word.start() > begin and cell_len(line.plain[begin : word.end()]) > width:
                begin = word.start()
                breaks.append(begin)
        pieces = line.divide(breaks)
        for piece in pieces[:-1]:
            piece.rstrip()
        broken += pieces
    return Text("\n").join(broken)


talk = Lines(stderr=True)
out = Lines()


LATE = 2.0
"""Seconds after which a step says what it is."""


@contextmanager
def step(doing: str) -> Iterator[None]:
    """Say what goes on, once it has gone on for ``LATE`` seconds; process 0 alone says it."""
    timer = threading.Timer(LATE, lambda: talk.print(f"{doing} …"))
    timer.daemon = True
    if not rank():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def claims(words: Sequence[str], verbose: bool) -> None:
    """What a certificate says, every claim: on a terminal in three lines each, whole with ``verbose`` or where nobody looks.
    A claim that is cut shows it, and a line says where its conditions stand."""
    cut = False
    for said in words:
        lines = between_words(Text(f"• {said}"), out.width).plain.split("\n")
        if verbose or not out.is_terminal or len(lines) <= CLAIMS:
            out.print(f"• {said}")
            continue
        cut = True
        head = "\n".join(lines[: CLAIMS - 1])
        out.print(f"{head}\n{textwrap.shorten(' '.join(lines[CLAIMS - 1 :]), out.width, placeholder=' …')}")
    if cut:
        talk.print("the conditions of each claim: --verbose, or certificate.json")


CLAIMS = 3
"""Lines of a claim on a terminal."""


def as_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(_strict(value), indent=1, sort_keys=True, default=str, allow_nan=False) + "\n")


def _strict(value: Any) -> Any:
    """Infinities and NaN as strings: JSON has no such numbers."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _strict(item) for key, item in value.items()}
    return [_strict(item) for item in value] if isinstance(value, list | tuple) else value


def number(value: float | None, digits: int = 3) -> str:
    """Short, never a rounded-away zero; ∞ for infinity, – for nothing."""
    if value is None:
        return "–"
    if value == float("inf"):
        return "∞"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.{digits}g}"


@contextmanager
def training(label: str, target: float | None = None) -> Iterator[Callable[[Any], None]]:
    """A display for one run: phase, loss, tokens a second, ε spent of ``target``, time left; plain lines when not a
    terminal. The function it yields takes a :class:`taciturn.training.state.metrics.Progress`."""
    if not talk.is_terminal:
        yield _lines(label, target)
        return
    with display(talk, "{task.fields[done]}") as progress:
        task = progress.add_task(label, total=None, done="", note="", left="")
        valid = ""

        def notify(p: Any) -> None:
            nonlocal valid
            if p.utility is not None:
                valid = f"valid {measured(p.utility)}"
            progress.update(
                task,
                total=p.total,
                completed=p.step.number + 1,
                done=f"{p.step.number + 1}/{p.total}",
                description=f"{label} · {p.step.phase.name}",
                note="  ".join(part for part in (*facts(p, target), valid) if part),
                left="" if p.left is None else f"{duration(p.left)} left",
            )

        yield notify


def display(console: Console, done: str) -> Progress:
    """One line that fits: bar, what is done of the total, and time left keep their width; name and notes share what
    remains, and are shortened. done: the format of what is done."""
    name, note = (Column(ratio=ratio, no_wrap=True, overflow="ellipsis") for ratio in (2, 3))
    whole = [Column(no_wrap=True) for _ in range(2)]
    return Progress(
        TextColumn("{task.description}", markup=False, table_column=name),
        BarColumn(bar_width=12, table_column=Column(width=12)),
        TextColumn(done, markup=False, table_column=whole[0]),
        TextColumn("{task.fields[left]}", markup=False, table_column=whole[1]),
        TextColumn("{task.fields[note]}", markup=False, table_column=note),
        console=console,
        expand=True,
    )


@contextmanager
def screening(label: str) -> Iterator[Callable[[Any], None]]:
    """A display for one screening: bytes of input, records a second, time left; plain lines when not a terminal. The
    function it yields takes a :class:`taciturn.screening.pipeline.Progress`."""
    if not talk.is_terminal:
        yield _screened_lines(label)
        return
    with display(talk, "{task.percentage:>3.0f} %") as progress:
        task = progress.add_task(label, total=None, note="", left="")

        def notify(p: Any) -> None:
            *said, left = pace(p) if p.bytes > p.resumed else (*pace(p), "")
            progress.update(task, total=p.of_bytes, completed=p.bytes, note=", ".join(said), left=left)

        yield notify


def pace(p: Any) -> list[str]:
    """Of a screening: records, records a second, share of the input, time left."""
    said = [f"{p.records:,} records"]
    if p.seconds > 0 and p.records > p.resumed_records:
        said.append(f"{(p.records - p.resumed_records) / p.seconds:,.0f} records/s")
    if p.of_bytes >= 1e6:
        said.append(f"{p.bytes / 1e6:,.1f} of {p.of_bytes / 1e6:,.1f} MB")
    if p.bytes > p.resumed:
        left = p.seconds * (p.of_bytes - p.bytes) / (p.bytes - p.resumed)
        said.append(f"{duration(left)} left")
    return said


def _screened_lines(label: str) -> Callable[[Any], None]:
    last = 0.0

    def notify(p: Any) -> None:
        nonlocal last
        if p.seconds - last >= LINE_EVERY:
            last = p.seconds
            talk.print(f"{label}: {', '.join(pace(p))}")

    return notify


_DRAWN = {"record": "records", "residual": "records", "user": "users", "user-entity": "units"}


def facts(p: Any, target: float | None) -> list[str]:
    """ε spent of the target first, as the end is what a narrow terminal cuts; then loss and speed where they may be known. A
    private phase says how many records a second are *expected*: how many were drawn is secret."""
    said = [] if p.epsilon is None else [f"ε {p.epsilon:.2f}" + ("" if target is None else f" of {target:g}")]
    if p.loss is not None:
        said.append(f"loss {p.loss:.3f}")
    if p.speed is not None:
        said.append(
            f"{number(p.speed) if p.speed < 1000 else f'{p.speed:,.0f}'} "
            + (f"{_DRAWN[p.step.phase.unit]}/s expected" if p.step.phase.private else "tokens/s")
        )
    return said


def measured(utility: Any, of: str = "") -> str:
    """Of held-out records: a classifier's accuracy, another model's perplexity, with ``of`` before it."""
    if utility.accuracy is not None:
        return f"accuracy {utility.accuracy:.3f}"
    return f"{of}{utility.perplexity_outside:.2f}"


def duration(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> duration(3725.4), duration(59)
    ('1:02:05', '0:59')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


LINE_EVERY = 30.0
"""Seconds between plain lines at most, so that a log shows that a long run goes on."""


def _lines(label: str, target: float | None) -> Callable[[Any], None]:
    last = 0.0

    def notify(p: Any) -> None:
        nonlocal last
        if p.utility is None and p.step.number + 1 < p.total and p.seconds - last < LINE_EVERY:
            return
        last = p.seconds
        said = facts(p, target)
        if p.utility is not None:
            said.append(measured(p.utility, "perplexity outside secrets "))
        said.append(duration(p.seconds) + ("" if not p.left else f", {duration(p.left)} left"))
        talk.print(f"{label}: step {p.step.number + 1}/{p.total} ({p.step.phase.name}), {', '.join(said)}")

    return notify
