"""Errors in the words of a command line: --encoding-errors replace where Python says encoding_errors='replace'.

The library raises one message for both, in Python's words; what is an option of the command that was given is spelled here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from taciturn.errors import nearest

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError

_ALIASES = {
    "out": "output",
    "keep_originals": "originals",
    "noise_multiplier": "sigma",
    "k": "group",
    "share": "reference",
}
"""Python's name → the command line's, where they differ and the command has that option."""
_GREEK = {"epsilon", "delta", "gamma", "delta2", "sigma", "noise_multiplier"}
"""Names that no prose uses: they are options even where they stand alone."""
_VALUE = r"""(?:'[^']*'|"[^"]*"|\[[^\]]*\]|\w+\([^()]*\)|\.\.\.|…|[\w.+-]*\w)?"""
_KEYWORD = re.compile(rf"(?<![\w.-])(\w+)=(?!=)({_VALUE})")
_WORD = re.compile(r"(?<![\w.'\"-])([a-z]\w*)(?![\w='\"]|\.\w|-\w)")
_LAYERS = (
    (re.compile(r"\(requires_grad_\(False\)\)"), "(model.frozen in run.toml)"),
    (re.compile(r"\(requires_grad_\(True\)\)"), "(model.frozen in run.toml)"),
    (re.compile(r"^(?:PoissonGaussian|SelectiveGaussian) (\w+): (.*); a step without noise is .*$"), r"\1: \2"),
    (re.compile(r"^PoissonGaussian (\w+): "), r"\1: "),
)


def options(app: App, argv: Sequence[str]) -> dict[str, str]:
    """The options of the command that ``argv`` names, by their name in Python."""
    command = _command(app, argv)
    if command is None:
        return {}
    found: dict[str, str] = {}
    for argument in command.assemble_argument_collection():
        if argument.parse and (long := [name for name in argument.names if name.startswith("--")]):
            found[argument.field_info.name.rstrip("_")] = _positional(argument) or long[0]
    return found | {name: found[other] for name, other in _ALIASES.items() if other in found}


def on_the_command_line(message: str, spelled: dict[str, str]) -> str:
    """A message of the library with the options of a command as they are written there.

    >>> on_the_command_line("max_bad must be 0; give encoding='cp1252'", {"max_bad": "--max-bad", "encoding": "--encoding"})
    '--max-bad must be 0; give --encoding cp1252'
    """

    def keyword(found: re.Match[str]) -> str:
        name, given = found.groups()
        if name not in spelled:
            return found[0]
        listed = re.findall(r"'([^']*)'", given) if given.startswith("[") else [given.strip("'\"")]
        shown = "" if given.endswith((")", "...", "…")) or not given else f" {','.join(listed)}"
        return f"{spelled[name]}{shown}"

    def word(found: re.Match[str]) -> str:
        name = found[1]
        first = found.start() == 0 and message[found.end() :].startswith((": ", " '"))
        told = "_" in name or name in _GREEK or first
        return spelled[name] if told and name in spelled else name

    for pattern, instead in _LAYERS:
        message = pattern.sub(instead, message)
    return _WORD.sub(word, _KEYWORD.sub(keyword, message))


def refusal(error: CycloptsError, app: App, argv: Sequence[str]) -> str:
    """What is wrong with a command line that cannot be read, with the next step."""
    from cyclopts import MissingArgumentError, UnknownCommandError

    command = _command(app, argv)
    name = " ".join(error.command_chain or ())
    if isinstance(error, MissingArgumentError) and error.argument is not None and not error.argument.tokens and command:
        argument = error.argument
        short = [each for each in argument.names if not each.startswith("--")]
        what = _positional(argument) or " ".join((*short, argument.name))
        said = str(argument.parameter.help or "").strip()
        example = re.search(r"Example: `([^`]+)`", inspect.getdoc(command.default_command) or "")
        for_instance = f". Example: {example[1]}" if example else ""
        return f"{name} needs {what}{f': {said}' if said else ''}{for_instance}"
    if isinstance(error, UnknownCommandError):
        chain, apps, _ = app.parse_commands(list(argv))
        word = next(each for each in argv if each not in chain)
        known = [each for each in apps[-1] if not each.startswith("-")]
        return f"unknown command '{word}'; {nearest(word, known)}; see: {' '.join(('taciturn', *chain))} --help"
    said = " ".join(str(error).split()).rstrip(".")
    return f"{said}; see: taciturn {f'{name} ' if name else ''}--help"


def _positional(argument: Any) -> str | None:
    """The word that help has for an argument that needs no name, None for an option."""
    kind = argument.field_info.kind
    return None if kind is kind.KEYWORD_ONLY else str(argument.name).removeprefix("--").upper()


def _command(app: App, argv: Sequence[str]) -> App | None:
    found = app.parse_commands(list(argv))[1][-1]
    return found if found.default_command is not None and found is not app else None
