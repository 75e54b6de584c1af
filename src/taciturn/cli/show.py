"""What commands print: talk on standard error, results on standard output, one live display for training."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

talk = Console(stderr=True, highlight=False, soft_wrap=True)
out = Console(highlight=False)


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


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A plain table; numbers are right-aligned by whoever formats them."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for i, name in enumerate(columns):
        made.add_column(name, justify="left" if i == 0 else "right")
    for row in rows:
        made.add_row(*row)
    return made


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
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed}/{task.total}"),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=talk) as progress:
        task = progress.add_task(label, total=None, note="", left="")
        valid = ""

        def notify(p: Any) -> None:
            nonlocal valid
            if p.utility is not None:
                valid = f"valid {measured(p.utility)}"
            progress.update(
                task,
                total=p.total,
                completed=p.step.number + 1,
                description=f"{label} · {p.step.phase.name}",
                note="  ".join(part for part in (*facts(p, target), valid) if part),
                left="" if p.left is None else f"{duration(p.left)} left",
            )

        yield notify


@contextmanager
def screening(label: str) -> Iterator[Callable[[Any], None]]:
    """A display for one screening: bytes of input, records a second, time left; plain lines when not a terminal. The
    function it yields takes a :class:`taciturn.screening.pipeline.Progress`."""
    if not talk.is_terminal:
        yield _screened_lines(label)
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[note]}"))
    with Progress(*columns, TimeElapsedColumn(), console=talk) as progress:
        task = progress.add_task(label, total=None, note="")

        def notify(p: Any) -> None:
            progress.update(task, total=p.of_bytes, completed=p.bytes, note=", ".join(pace(p)))

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
    """Loss and speed where they may be known, ε spent of the target. A private phase says how many records a second are
    *expected*: how many were drawn is secret."""
    said = [] if p.loss is None else [f"loss {p.loss:.3f}"]
    if p.speed is not None:
        said.append(
            f"{number(p.speed) if p.speed < 1000 else f'{p.speed:,.0f}'} "
            + (f"{_DRAWN[p.step.phase.unit]}/s expected" if p.step.phase.private else "tokens/s")
        )
    if p.epsilon is not None:
        said.append(f"ε {p.epsilon:.2f}" + ("" if target is None else f" of {target:g}"))
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
