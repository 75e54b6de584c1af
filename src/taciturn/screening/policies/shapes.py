"""Pieces that the patterns share. Every repeat is bounded or possessive, so that a scan takes linear time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from taciturn.screening.policies.regex import Regex

Maker = Callable[[], Regex]
Table = dict[str, Maker]

LEFT = r"(?<![\w])(?<!\d[-.])"
RIGHT = r"(?!\w|[-.]\d)"
"""Not inside a word or a longer number."""

# What may stand between a cue and its value: "number is", "no.:", "#", "= '".
GAP = (
    r"(?:[ _-]{0,2}(?:numbers?|num|no|nr|n°|no\.|nummer|ids?|codes?|is|was|it's|its|are|reads|of mine|for me"
    r"|end(?:s|ing)? (?:in|with)|last (?:4|four)(?: digits?)?|digits?)(?![^\W_])\.?){0,4}[\s:=#\"'(\[-]{1,4}"
)
# The same for words that few others part from their number: a shorter pattern is scanned for at less cost.
BRIEF = r"(?:[ _-](?:numbers?|no|codes?|is|was|addr(?:ess)?)(?![^\W_])\.?){0,2}[\s:=#\"'(-]{1,3}"
# A code with a digit near its start, perhaps in groups: AB-123456, 12 345 678, lky 456, a 4 g 4 f 3. Digits stand in the
# pattern itself, not in a lookahead, which the prefilter (relax.py) cannot see.
NOT_WORD = (
    r"(?!(?:on|in|at|of|to|by|is|no|or|as|an|if|up|we|my|me|it|and|for|the|from|with|than|only|just|over|under|below"
    r"|above|about"
    r"|after|until|since|fee|tax) )"
)
CODE = (
    rf"{NOT_WORD}(?:[A-Z]{{1,5}} (?=\d\d)|[A-Z]{{1,2}} |[A-Z]{{0,6}}-?)\d[A-Z0-9]{{0,31}}"
    rf"(?:[./-][A-Z0-9]{{1,24}}|[ ./-]{NOT_WORD}(?:[A-Z]{{0,3}}|[A-Z]{{1,2}} )\d[A-Z0-9]{{0,23}}){{0,6}}"
)


def define(name: str, pattern: str, *finds: str, **options: Any) -> tuple[str, Maker]:
    """An entry of a table: the detector is compiled, and its examples tried, when it is asked for."""
    return name, partial(Regex, name, pattern, must_find=finds, **{"whole": True, **options})


def cued(cue: str, value: str = CODE, gap: str = GAP) -> str:
    """``value`` (group 1) right after a cue. A mask in its place ends the match: what follows it is not taken instead."""
    return rf"(?<![^\W_])(?:{cue}){gap}({value})(?!\w)"


def after(
    name: str, cue: str, *finds: str, value: str = CODE, gap: str = GAP, digits: int = 1, **options: Any
) -> tuple[str, Maker]:
    """A detector of the value behind a cue, whatever the case."""
    return define(name, cued(cue, value, gap), *finds, group=1, digits=digits, ignore_case=True, **options)
