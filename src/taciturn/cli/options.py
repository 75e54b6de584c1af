"""Options that several commands share."""

from __future__ import annotations

import logging
import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from taciturn.errors import DataError, UsageError, similar

if TYPE_CHECKING:
    from taciturn.screening.policies.public import Public

Allowed = Annotated[
    tuple[Literal["large-delta", "full-batch", "cannot-learn"], ...],  # privacy.evidence.Allow, which loads too much
    Parameter(name="--allow", help="a plan that is an error by default, by what is the matter with it"),
]


def _there(made_by: str) -> Callable[[Any, Any], None]:
    """A check that a folder is there, before anything slow is imported."""

    def check(_type: Any, given: Any) -> None:
        for each in given if isinstance(given, tuple) else (given,):
            if each is not None and "://" not in str(each) and not Path(each).expanduser().exists():
                raise DataError(f"no such folder: {each}{similar(Path(each))}; {made_by}")

    return check


RUN_THERE = _there("`taciturn train run.toml -o FOLDER` writes one")
SCREENED_THERE = _there("`taciturn screen FILES -p POLICY -o FOLDER` writes one")
Verbose = Annotated[
    bool, Parameter(name=["--verbose", "-v"], help="every claim whole, not three lines of each", negative="")
]
Json = Annotated[bool, Parameter(help="result as JSON on standard output", negative="")]


@Parameter(name="*", group="Public values")
@dataclass(frozen=True, slots=True)
class Spared:
    """What π_c leaves unmarked, because it is public anyway."""

    public_values: Annotated[
        tuple[Path, ...],
        Parameter(
            help="file of values that are public anyway, one a line, never made from the corpus: π_c leaves a span unmarked "
            "that is one of them as a whole; may be repeated",
            negative="",
            show_default=False,
        ),
    ] = ()
    public_kinds: Annotated[
        tuple[str, ...],
        Parameter(
            help="kinds of values that are no secrets here, comma-separated: time, day, date, small-number, money",
            negative="",
            show_default=False,
        ),
    ] = ()

    def read(self) -> Public | None:
        """None for nothing. Raises DataError or UsageError, see ``Public.read``."""
        if not self.public_values and not self.public_kinds:
            return None
        from taciturn.screening.policies.public import Public

        return Public.read(self.public_values, [kind for each in self.public_kinds for kind in comma(each)])


SPARED = Spared()


def assign(raw: dict[str, Any], settings: tuple[str, ...]) -> dict[str, Any]:
    """``raw`` with dotted KEY=VALUE settings applied; values are read as TOML, bare words as strings.

    >>> assign({"a": {"b": 1}}, ("a.c=2", "a.name=adamw"))
    {'a': {'b': 1, 'c': 2, 'name': 'adamw'}}
    """
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise UsageError(f"--set {setting!r}: expected KEY=VALUE, e.g. options.private.steps=300")
        *path, last = key.split(".")
        here = raw
        for part in path:
            here = here.setdefault(part, {})
            if not isinstance(here, dict):
                raise UsageError(f"--set {key}: {part!r} is a value, not a table")
        here[last] = value(text)
    return raw


def value(text: str) -> Any:
    """A TOML value, or the text itself when it is none."""
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def comma(names: str) -> list[str]:
    """A comma-separated list, blanks ignored."""
    return [name.strip() for name in names.split(",") if name.strip()]


def joined(lists: tuple[str, ...]) -> str | None:
    """What -p or -c said, perhaps several times, as the one name that `measured.build` reads; None for nothing."""
    return " + ".join(lists) or None


def rank() -> int:
    """Which process of a run that torchrun started this is; 0 without it."""
    return int(os.environ.get("RANK", "0"))


def silent() -> None:
    """Warnings are process 0's to give."""
    for name in ("taciturn", "transformers"):
        logging.getLogger(name).setLevel(logging.ERROR)
