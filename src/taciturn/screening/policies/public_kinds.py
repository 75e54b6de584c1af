"""Kinds of values that a user may declare to be no secrets: each a closed form of whole values, in English.

A form is matched against a whole value as ``public.key`` writes it: folded in case, blanks single, no punctuation around it.
Nothing here looks at a neighbour, and no form repeats without a bound, so two values in a row are none.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

Kind = Literal["time", "day", "date", "small-number", "money"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_NAMES_TOO = frozenset(("april", "may", "june", "august"))  # of people: alone they are no day
_NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
_UNITS = ("dollars?", "pounds?", "euros?", "cents?", "pence", "usd", "gbp", "eur")

_HOUR = rf"(?:[01]?[0-9]|2[0-4]|{'|'.join(_NUMBERS[1:])})"
_HALF = r"(?:am|pm|a\.m|p\.m|o['’]clock|hrs|hours)"
_DAY = r"(?:0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?"
_ORDINAL = r"(?:[23]?1st|2?2nd|2?3rd|(?:[4-9]|1[0-9]|2[04-9]|30)th)"
_MONTH = rf"(?:{'|'.join(_MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.?"
_AMOUNT = r"(?:[0-9]{1,4}|[0-9],[0-9]{3})(?:\.[0-9]{2})?"

FORMS: dict[Kind, re.Pattern[str]] = {
    "time": re.compile(
        rf"(?:[01]?[0-9]|2[0-4]):[0-5][0-9](?: ?{_HALF})?|{_HOUR}(?:\.[0-5][0-9])? ?{_HALF}|noon|midday|midnight"
        rf"|(?:half|quarter) (?:past|to) {_HOUR}"
    ),
    "day": re.compile(rf"(?:{'|'.join(_WEEKDAYS)})s?|{'|'.join(m for m in _MONTHS if m not in _NAMES_TOO)}"),
    "date": re.compile(rf"(?:(?:{'|'.join(_WEEKDAYS)}),? )?(?:{_MONTH} {_DAY}|{_DAY} (?:of )?{_MONTH})|{_ORDINAL}"),
    "small-number": re.compile(rf"[0-9]{{1,2}}|{'|'.join(_NUMBERS)}"),
    "money": re.compile(rf"[$£€] ?{_AMOUNT}|{_AMOUNT} ?(?:{'|'.join(_UNITS)}|[$£€])"),
}
"""time: 17:30, 5 pm, half past five, noon. day: a weekday, or a month that is no name of a person as well. date: a day of
the month, with or without its month, never with a year. small-number: at most two digits, or a word up to twelve. money:
an amount below 10,000 with its currency."""

SAID: dict[Kind, str] = {
    "time": "a time of day",
    "day": "a weekday or month",
    "date": "a date without its year",
    "small-number": "a number of at most two digits",
    "money": "an amount of money below 10,000",
}
"""Each in words."""

LONGEST = 5
"""Tokens in the longest value of a kind."""

_OTHERS = (
    "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "am", "pm", "a.m", "p.m", "o'clock",
    "o’clock", "hrs", "hours", "noon", "midday", "midnight", "half", "quarter", "past", "to", "of",
)  # fmt: skip
_MONEY = (word for unit in _UNITS for word in (unit.replace("?", ""), unit.replace("s?", "")))
_WORDS = frozenset((*_WEEKDAYS, *(f"{day}s" for day in _WEEKDAYS), *_MONTHS, *_NUMBERS, *_OTHERS, *_MONEY))
_PIECE = re.compile(r".*[0-9$£€].*")


def piece(token: str) -> bool:
    """Whether a token, as ``public.key`` writes it, may stand in a value of some kind; True of more tokens than that."""
    return token in _WORDS or _PIECE.fullmatch(token) is not None or any(token.startswith(n) for n in _NUMBERS)
