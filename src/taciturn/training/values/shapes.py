"""The shape of a value: what is left of it without its digits and its rare words, and made-up values of a shape.

A shape is a function of the value and of public word lists; what is put into one is drawn from public lists and coins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from types import MappingProxyType

import numpy as np

from taciturn.screening.bridges import ARTICLES
from taciturn.screening.policies.rare_words import common_words, names

RARE = 4.0
"""Zipf frequency from which on a word stays in a shape as it is."""
_PIECE = re.compile(r"[^\W_]+|[\W_]")
_CLOCK = re.compile(r"dd?:dd")
NAME = "X"
CODE = 4
"""Letters of a word in capitals from which on it is a code, if it is no name."""


@lru_cache(maxsize=1 << 14)
def shape(value: str) -> str | None:
    """Digits become d, words with a capital that are not common X, letters beside digits and those of codes in capitals A
    or a; all else stays. None for values with another rare word, and for those that are their own shape.

    >>> shape("17:45"), shape("TR7075"), shape("Acorn Hotel"), shape("Anna Borg,"), shape("zyx"), shape("Monday")
    ('dd:dd', 'AAdddd', 'X Hotel', 'X X,', None, None)
    >>> shape("XKHYJQ"), shape("ANNA")
    ('AAAAAA', 'X')
    """
    found = []
    for piece in _PIECE.findall(value):
        if any(c.isdigit() for c in piece):
            found.append("".join("d" if c.isdigit() else "A" if c.isupper() else "a" for c in piece))
        elif not piece.isalpha() or (piece.lower() in common_words(RARE) and piece.lower() not in names()):
            found.append(piece)
        elif piece[0].isupper():
            code = piece.isupper() and len(piece) >= CODE and piece.lower() not in names()
            found.append("A" * len(piece) if code else NAME)
        else:
            return None
    made = "".join(found)
    return None if made == value else made


Known = Mapping[str, tuple[str, ...]]
"""Public values by their shape."""
NOTHING: Known = MappingProxyType({})


def by_shape(values: Iterable[str]) -> Known:
    """Public values that have a shape, each once.

    >>> by_shape(["Acorn Hotel", "Elm Hotel", "hotel", "Acorn Hotel"])
    {'X Hotel': ('Acorn Hotel', 'Elm Hotel')}
    """
    found: dict[str, dict[str, None]] = {}
    for value in values:
        if (form := shape(value)) is not None:
            found.setdefault(form, {})[value] = None
    return {form: tuple(each) for form, each in found.items()}


def made(form: str, random: np.random.Generator, known: Known = NOTHING) -> str:
    """A value of the shape ``form``: one of those ``known`` if there are any, else names from a public list, digits and
    letters by coins, times of a clock.

    >>> made("dd:dd", np.random.default_rng(0))[2], len(made("AAdddd", np.random.default_rng(0)))
    (':', 6)
    """
    article, core = ("", form) if form in known else _parted(form)
    if some := known.get(core):
        return article + some[random.integers(len(some))]
    clock = _CLOCK.fullmatch(form.strip(".,!?;"))
    if clock:
        hour, minute = random.integers(24), 5 * random.integers(12)
        return form.replace(clock[0], f"{hour:02d}:{minute:02d}" if clock[0][1] == "d" else f"{hour % 10}:{minute:02d}")
    return "".join(_made(piece, random) for piece in _PIECE.findall(form))


def _parted(form: str) -> tuple[str, str]:
    """The articles that a value begins with, as skeletons mask them with it, and the rest.

    >>> _parted("the X Hotel")
    ('the ', 'X Hotel')
    """
    at = 0
    while (word := form[at:].partition(" ")[0]).casefold() in ARTICLES and len(word) < len(form) - at:
        at += len(word) + 1
    return form[:at], form[at:]


def _made(piece: str, random: np.random.Generator) -> str:
    if piece == NAME:
        return str(_names()[random.integers(len(_names()))])
    if set(piece) - set("dAa") or ("d" not in piece and piece != "A" * max(len(piece), CODE)):
        return piece
    return "".join(
        str(random.integers(10)) if c == "d" else chr((ord("A") if c == "A" else ord("a")) + random.integers(26))
        for c in piece
    )


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(name.capitalize() for name in names()))
