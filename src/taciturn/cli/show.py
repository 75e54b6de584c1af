"""What commands print: talk on standard error, results on standard output, one live display for training."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
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
    """A display for one run: phase, loss, ε spent of target, time left; plain lines when not a terminal."""
    if not talk.is_terminal:
        yield _lines(label)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed}/{task.total}"),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=talk) as progress:
        task = progress.add_task(label, total=None, note="")
        shown: dict[str, str] = {}

        def notify(p: Any) -> None:
            if p.loss is not None:
                shown["loss"] = f"loss {p.loss:.3f}"
            elif p.step.phase.private:
                shown.pop("loss", None)
            if p.utility is not None:
                shown["valid"] = f"valid {p.utility.perplexity_outside:.2f}"
            if p.epsilon is not None:
                shown["ε"] = f"ε {p.epsilon:.2f}" + (f" of {target:g}" if target else "")
            progress.update(
                task,
                total=p.total,
                completed=p.step.number + 1,
                description=f"{label} · {p.step.phase.name}",
                note="  ".join(shown.values()),
            )

        yield notify


def _lines(label: str) -> Callable[[Any], None]:
    def notify(p: Any) -> None:
        if p.utility is not None or p.step.number + 1 == p.total:
            valid = "" if p.utility is None else f", perplexity outside secrets {p.utility.perplexity_outside:.2f}"
            spent = "" if p.epsilon is None else f", ε {p.epsilon:.2f}"
            talk.print(
                f"{label}: step {p.step.number + 1}/{p.total} ({p.step.phase.name}){valid}{spent}, {p.seconds:.0f} s",
            )

    return notify
