"""Tables that fit a terminal without cutting a word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], left: bool = False) -> Rows:
    """A plain table; numbers are right-aligned by whoever formats them. left: every column is text."""
    return Rows(title, [str(name) for name in columns], [[str(cell) for cell in row] for row in rows], left)


@dataclass(frozen=True, slots=True)
class Rows:
    """A table that cuts no word: columns shrink to their longest one, and where even that is too wide, each row is a
    block with a line for a column."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        cells = [[*each] for each in zip(self.columns, *self.rows, strict=True)]
        least = [max(map(_longest_word, each)) for each in cells]
        most = [max(cell_len(line) for cell in each for line in cell.splitlines() or [""]) for each in cells]
        room = options.max_width - 2 * (len(cells) - 1)
        if sum(least) > room:
            yield from self._blocks()
            return
        whole = [max(low, *map(_number, each)) for low, each in zip(least, cells, strict=True)]
        least = whole if sum(whole) <= room else least
        wanted = sum(most) - sum(least)
        spare = min(room - sum(least), wanted)
        widths = [low + (high - low) * spare // max(wanted, 1) for low, high in zip(least, most, strict=True)]
        made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for i, (name, width) in enumerate(zip(self.columns, widths, strict=True)):
            made.add_column(Text(name), justify="left" if self.left or i == 0 else "right", width=width)
        for row in self.rows:
            made.add_row(*map(Text, row))
        if self.title:
            yield Text(self.title, "italic")
        yield made

    def _blocks(self) -> Iterator[Text]:
        if self.title:
            yield Text(self.title, "italic")
        first, *names = (" ".join(name.split()) for name in self.columns)
        for row in self.rows:
            yield Text(row[0] if not first else f"{first}: {row[0]}", "bold")
            yield from (Text(f"  {name}: {cell}") for name, cell in zip(names, row[1:], strict=True) if cell)


def _longest_word(cell: str) -> int:
    """Columns that a cell takes at least; what it is indented by goes with its first word."""
    indent = len(cell) - len(cell.lstrip())
    words = [cell_len(word) for word in cell.split()] or [0]
    return max(indent + words[0], *words)


def _number(cell: str) -> int:
    """Columns of a cell that begins with a figure, such as "10 (50.0 %)", which is read as one; 0 for other cells."""
    return cell_len(cell) if cell[:1].isdigit() else 0
