"""What a file may say before anything is computed from it: the least and the most of every number that is.

Far beyond any run there can be, and within what the accountant answers without overflow. Files of strangers are read under
these (verify.py), and so is every certificate's own input, so that none is issued that nobody could verify.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from taciturn.errors import UsageError

STEPS = 10**9  # of one event; also the number of a step
GROUP = 10**6  # records, units or users that change together
COUNT = 2**53  # records, labels, spans: whole numbers that a double still counts
RATE = (1e-9, 1.0)
NOISE = (1e-3, 1e9)
EPSILON = 1e12  # of a target
DELTA = 1e-100
KINDS = 1000  # different (phase, event) in a ledger or a history
GROUPS = 500  # named groups of secrets
PHASES = 100
MANY = 1000  # of anything else
TEXT = 4096  # characters of a name or a reason


def number(name: str, value: Any, least: float, most: float) -> float:
    """``value`` if it is a number in [least, most]; UsageError names the field, the limits and what was found."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise UsageError(f"{name}: expected a number from {least:g} to {most:g}, found {short(value)}")
    return float(value)


def whole(name: str, value: Any, most: int, least: int = 0) -> int:
    """``value`` if it is a whole number in [least, most]."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(f"{name}: expected a whole number from {least} to {most}, found {short(value)}")
    return value


def text(name: str, value: Any, most: int = TEXT) -> str:
    """``value`` if it is a string of at most ``most`` characters."""
    if not isinstance(value, str) or len(value) > most:
        raise UsageError(f"{name}: expected a text of at most {most} characters, found {short(value)}")
    return value


def check_plain(name: str, value: Any, depth: int = 4) -> None:
    """UsageError unless ``value`` is plain: numbers, texts and nothing of more than MANY entries or ``depth`` levels."""
    if isinstance(value, Mapping | tuple | list):
        few(name, value, MANY if depth else 0)
        for key in value if isinstance(value, Mapping) else ():
            text(f"{name}: name", key, 64)
        for each in value.values() if isinstance(value, Mapping) else value:
            check_plain(name, each, depth - 1)
    elif isinstance(value, str):
        text(name, value)
    elif value is not None and not isinstance(value, bool):
        number(name, value, -COUNT, COUNT)


def delta(name: str, value: Any) -> float:
    """``value`` if it is a probability that the accountant can resolve, below one."""
    return number(name, value, DELTA, math.nextafter(1.0, 0.0))


def few(name: str, values: Any, most: int) -> None:
    """UsageError if there are more than ``most``."""
    if len(values) > most:
        raise UsageError(f"{name}: expected at most {most}, found {len(values)}")


def short(value: Any) -> str:
    """What was found, in a few characters (a huge whole number is not spelt out)."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > COUNT:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, str | list | tuple | dict) and len(value) > 40:
        return f"a {type(value).__name__} of length {len(value)}"
    said = repr(value)
    return said if len(said) <= 60 else f"{said[:57]}..."
