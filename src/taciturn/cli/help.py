"""How help is laid out: a first page that fits 80 × 24, and all of it with --help-all.

An option without a group stands on the first page; one with `Parameter(group="Topic")` under its topic with --help-all.
"""

from __future__ import annotations

import textwrap
from ast import literal_eval
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

FLAG = "--help-all"
_FIRST = ("Arguments", "Parameters", "Commands")
_LABEL = 24
"""Columns of an option's name, at most; a longer one has a line to itself."""


class Page:
    """A help formatter of cyclopts. everything: the options under topics, too; else the last line says which there are."""

    def __init__(self, everything: bool = False) -> None:
        self.everything = everything
        self.left_out: list[str] = []
        self._first: _Entries = []

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:  # noqa: ARG002
        _print(console, f"Usage: {str(usage).strip().removeprefix('Usage: ')}")

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:  # noqa: ARG002
        """The first page has the first paragraph and the example."""
        said = "\n".join(line.rstrip() for line in _plain(console, description, min(console.width, 100)).splitlines())
        paragraphs = said.strip().split("\n\n")
        if not self.everything:
            paragraphs = [each for i, each in enumerate(paragraphs) if i == 0 or each.startswith("Example: ")]
        for paragraph in paragraphs:
            _print(console, f"{paragraph}\n" if self.everything else paragraph)

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:  # noqa: ARG002
        title = str(panel.title)
        entries = [entry for entry in panel.entries if not {"--help", "--version"} & set(entry.names)]
        if title in _FIRST:
            self._first += [(entry, panel.format, _plain(console, entry.description)) for entry in entries]
        elif entries and not self.everything:
            self.left_out.append(title)
        elif entries:
            self.end(console)
            _print(console, f"\n{title}:")
            _table(console, [(entry, panel.format, _plain(console, entry.description)) for entry in entries])

    def end(self, console: Console) -> None:
        """Print what has no topic, arguments first, and what was left out."""
        if self._first:
            _print(console, "Options:" if self._first[0][1] == "parameter" else "Commands:")
            _table(console, sorted(self._first, key=lambda each: _place(each[0])))
            self._first = []
        if self.left_out:
            for line in textwrap.wrap(f"More with {FLAG}: {', '.join(self.left_out)}.", min(console.width, 100)):
                _print(console, line)


_Entries = list[tuple["HelpEntry", str, str]]
"""An entry, the kind of its panel (command, parameter), what it says."""


def _place(entry: HelpEntry) -> int:
    """Arguments that stand alone, those there may be several of, options."""
    return 2 if not entry.positional_label else 0 if entry.names else 1


def _table(console: Console, entries: _Entries) -> None:
    rows = [(_label(entry, kind), _said(entry, words)) for entry, kind, words in entries]
    width = min(max(len(label) for label, _ in rows), _LABEL)
    for label, said in rows:
        for line in _row(label, said, width, min(console.width, 100)):
            _print(console, line)


def _plain(console: Console, said: Any, width: int = 10_000) -> str:
    """The characters that a console would show of something."""
    shown = console.render(said or "", console.options.update(width=width))
    return "".join(segment.text for segment in shown if not segment.control).rstrip()


def _print(console: Console, line: str) -> None:
    console.print(line, highlight=False, markup=False, emoji=False, soft_wrap=True)


def _row(label: str, said: str, width: int, columns: int) -> Iterator[str]:
    lines = textwrap.wrap(said, columns - width - 4, break_long_words=False, break_on_hyphens=False) or [""]
    if len(label) > width:
        yield f"  {label}"
    else:
        yield f"  {label:<{width}}  {lines.pop(0)}".rstrip()
    yield from (f"  {'':<{width}}  {line}" for line in lines)


def _label(entry: HelpEntry, kind: str) -> str:
    if kind == "command":
        return " ".join(entry.names)
    if entry.positional_label:
        return entry.positional_label
    shorts, longs = entry.positive_shorts, [name for name in entry.positive_names if not name.startswith("--empty-")]
    if entry.default == "True":
        longs = [f"--[no-]{longs[0].removeprefix('--')}"]
    what = "" if entry.metavar is None else _METAVARS.get(entry.metavar, entry.metavar)
    return " ".join(part for part in (*shorts, *longs, what) if part)


_METAVARS = {"STR": "TEXT", "STR...": "TEXT", "PATH...": "PATH", "CHOICE...": "CHOICE", "INT": "N", "FLOAT": "X"}


def _said(entry: HelpEntry, said: str) -> str:
    """What it is for, then choices and default in brackets; what is off or empty by default is not worth a word."""
    facts = [] if not entry.choices else [", ".join(entry.choices)]
    if entry.default not in (None, "False", "True", "", "()", "[]"):  # of a switch, the name says which way it goes
        listed = entry.default.startswith("(")
        facts.append(f"default {', '.join(map(str, literal_eval(entry.default))) if listed else entry.default}")
    if entry.required:
        facts.append("required")
    return " ".join(part for part in (said.strip(), f"[{'; '.join(facts)}]" if facts else "") if part)
