"""Numbers as people write and say them: digits, letters that stand for digits and number words, in groups with any joints.

A run is a longest row of groups that joints hold together. It is one secret or none: ``grown`` takes a match of any pattern
to the ends of the runs it touches, and ``is_secret`` says which runs a policy marks for themselves. Everything here is a
function of the run and of what stands right beside it, and no run reaches over a mask.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from taciturn.screening.policies import number_words

Kind = Literal["number", "word", "code"]

ALIKE = "OolISBZ"
"""Letters read as digits where digits stand in the same run."""

_ALIKE, _ROUND = re.compile(rf"[0-9{ALIKE}]+"), re.compile(r"[0-9Ool]+")
_DIGIT = re.compile(r"[0-9]")

# Joints of numbers. A tab or three blanks part the columns of a table; ". " ends a sentence; ", " is a list's unless the
# groups are of one length.
_LOOSE = re.compile(
    r" {1,2}| ?[-/_]{1,3} ?|[.,]{1,2}| ?[-./]?\)?[-./]?(?<!\.) ?\(?[-./]?(?<!\.) ?| ?\*[* -]{0,15}| ?-?\r?\n {0,4}"
)
_TIGHT = re.compile(r"[-./_]{1,2}|\*{1,16}|[-_][A-Fa-f]{4}[-_]")  # of codes, which never hold a blank
_MIXED = re.compile(r" {1,2}|-|, ")  # between a word and a number
_SAID = re.compile(r"[ ,.-]{1,3}|,? ?\r?\n {0,4}")  # of words
_AND = re.compile(r"[ -](?:et|y|e)[ -]")  # vingt et un, treinta y cinco, vinte e um
_LISTED = ", "

_AMOUNT = (
    r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+(?:,\d+)?|[1-9]\d{0,2}(?: \d{3}){1,2}(?:[.,]\d{1,2})?"
    r"|(?:0|[1-9]\d{0,5})[.,]\d+)"
)
_BETWEEN = r"(?:[ \n]?[-/*()_][ \n]?|, | {1,2}|\n)"
_AMOUNTS = re.compile(rf"(?=.*[.,]\d)(?:{_AMOUNT}|\d{{1,3}})(?:{_BETWEEN}(?:{_AMOUNT}|\d{{1,3}}))*", re.DOTALL)
# Scores (6-4, 3-6, 7-5; 47-38-7) and ranges of pages; blanks around dashes and brackets taken out.
_PAIRS = re.compile(
    r"\d{1,2}(?:[-/]\d{1,2}){1,2}(?:,? \d{1,2}(?:[-/]\d{1,2}){1,2})+|\d{1,5}[-/]\d{1,5}(?:, \d{1,5}[-/]\d{1,5})+"
)
_UNTIDY = re.compile(r" ?([-/]) ?| ?[()]")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
_DATE = re.compile(
    r"(?<!\d)(?:1[5-9]|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?!\d)"
    r"|(?<!\d)(?<!\d[-./])(?:(?:1[5-9]|20)\d\d([-./])(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01])"
    r"|(?:0?[1-9]|[12]\d|3[01])([-./])(?:0?[1-9]|[12]\d|3[01])\2(?:(?:1[5-9]|20)\d\d|\d\d))(?!\d|[-./]\d)"
)
VERSION = 2


class Group(NamedTuple):
    """digits: how many it says. said: the word, in lower case, "" for figures. year: a number that may be one."""

    start: int
    end: int
    kind: Kind
    digits: int
    said: str = ""
    year: bool = False


class Run(NamedTuple):
    groups: tuple[Group, ...]

    @property
    def start(self) -> int:
        return self.groups[0].start

    @property
    def end(self) -> int:
        return self.groups[-1].end

    @property
    def words(self) -> int:
        return sum(group.kind == "word" for group in self.groups)

    @property
    def digits(self) -> int:
        rows = groupby(self.groups, key=lambda group: group.kind == "word")
        return sum(
            number_words.said([group.said for group in row]) if words else sum(group.digits for group in row)
            for words, row in rows
        )

    @property
    def codes(self) -> bool:
        """Whether letters that are no digits are in it: an identifier of which no piece is a number."""
        return any(group.kind == "code" for group in self.groups)


@cache
def _group() -> re.Pattern[str]:
    # Part of a clock time is no group, and no search begins inside a word: a scan takes linear time.
    return re.compile(
        rf"(?<![^\W_])(?:(?P<word>(?i:{number_words.pattern()}))(?![^\W_])"
        r"|(?<!\d:)(?:[A-Za-z]{0,12}+[0-9][0-9A-Za-z]*+|[Oo]{1,4}+(?![^\W_])|l{2,4}+(?![^\W_]))(?!:\d))"
    )


def _groups(text: str) -> Iterator[Group]:
    for match in _group().finditer(text):
        word = match["word"]
        if word is not None:
            said = word.lower()
            yield Group(match.start(), match.end(), "word", number_words.sizes().get(said, 1), said)
            continue
        found = match[0]
        digits = len(_DIGIT.findall(found))
        number = digits == len(found) or (
            _ALIKE.fullmatch(found) is not None and (not digits or 2 * digits >= len(found))
        )
        number = number or _ROUND.fullmatch(found) is not None
        kind: Kind = "number" if number else "code"
        year = _YEAR.fullmatch(found) is not None
        yield Group(match.start(), match.end(), kind, len(found) if number else digits, year=year)


def _joined(left: Group, gap: str, right: Group) -> bool:
    if "code" in (left.kind, right.kind):
        return _TIGHT.fullmatch(gap) is not None
    if left.kind == right.kind == "word":
        return _SAID.fullmatch(gap) is not None or (
            left.said in number_words.tens() and _AND.fullmatch(gap) is not None
        )
    if "word" in (left.kind, right.kind):
        return _MIXED.fullmatch(gap) is not None
    if gap == _LISTED:
        return left.digits == right.digits != 2
    if _TIGHT.fullmatch(gap):
        return True
    if _LOOSE.fullmatch(gap) is None:
        return False
    if ("(" in gap and right.year) or (")" in gap and left.year):
        return False
    return "\n" not in gap or min(left.digits, right.digits) > 1 or left.digits == right.digits


def runs(text: str) -> tuple[Run, ...]:
    """The runs of a folded text, left to right; a single group is one. Rows with more than one line break are cut there."""
    return _short(text) if len(text) <= _SHORT else _long(text)


def _runs(text: str) -> tuple[Run, ...]:
    found: list[Run] = []
    row: list[Group] = []
    breaks: list[int] = []  # places in the row before which a line ends

    def close() -> None:
        borders = [0, *breaks, len(row)] if len(breaks) > 1 else [0, len(row)]
        found.extend(Run(tuple(row[a:b])) for a, b in pairwise(borders) if a < b)

    for group in _groups(text):
        if row:
            gap = text[row[-1].end : group.start] if group.start - row[-1].end <= 20 else ""
            if gap and _joined(row[-1], gap, group):
                if "\n" in gap and not row[-1].kind == group.kind == "word":
                    breaks.append(len(row))
                row.append(group)
                continue
            close()
        row, breaks = [group], []
    if row:
        close()
    return tuple(found)


# One pattern after the other looks at the texts of a batch.
_SHORT = 512
_short, _long = lru_cache(maxsize=1 << 12)(_runs), lru_cache(maxsize=16)(_runs)


@lru_cache(maxsize=16)
def _starts(text: str) -> tuple[int, ...]:
    return tuple(run.start for run in runs(text))


_REACH = 40  # characters that the longest joint and the number word before it may take


@cache
def _beside() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Whether a group may stand before (in what ends there) or after a place: a cheap look before ``runs``."""
    gap, word = r"[-./,*()_ \r\n]{0,20}", f"(?i:{number_words.pattern()})"
    before = re.compile(rf"(?:[0-9][0-9A-Za-z]*+|[OolI]|(?<![^\W_]){word}){gap}\Z")
    return before, re.compile(rf"{gap}(?:[A-Za-z]{{0,12}}[0-9]|[OolI]|{word}(?![^\W_]))")


def grown(text: str, start: int, end: int) -> tuple[int, int]:
    """``text[start:end]`` and the whole of the runs that its first and its last group are part of.

    >>> grown("card 4111.1111.1111.1111 ok", 5, 19), grown("code AA1B2**9ABA7", 5, 10), grown("call 12", 0, 4)
    ((5, 24), (5, 17), (0, 4))
    """
    before, after = _beside()
    left = text[start].isalnum() and (
        text[start - 1 : start].isalnum() or before.search(text[max(0, start - _REACH) : start]) is not None
    )
    right = text[end - 1].isalnum() and (text[end : end + 1].isalnum() or after.match(text, end) is not None)
    if left or right:
        rows, starts = runs(text), _starts(text)
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
        if left and first >= 0 and rows[first].end > start:
            start = min(start, rows[first].start)
        if right and last >= 0 and rows[last].end >= end:
            end = max(end, rows[last].end)
    return start, end


def is_secret(text: str, run: Run, least: int) -> bool:
    """Whether a run of figures is a number of at least so many digits in several groups (or with letters for digits) that
    has no other reading: amounts, decimals, dates, years and their ranges, pairs such as scores, network addresses,
    counting up."""
    if run.digits < least:
        return False
    number = text[run.start : run.end]
    if len(run.groups) == 1:
        return not number.isdigit()
    parts = [text[group.start : group.end] for group in run.groups]
    if any(group.year for group in run.groups) and all(group.year or group.digits < 3 for group in run.groups):
        return False
    if _AMOUNTS.fullmatch(number) or _ADDRESS.fullmatch(number) or _PAIRS.fullmatch(_UNTIDY.sub(r"\1", number)):
        return False
    if number.isascii() and all(map(str.isdigit, parts)) and all(int(b) - int(a) == 1 for a, b in pairwise(parts)):
        return False
    return len(_DIGIT.findall(_DATE.sub("", number))) >= least if _DATE.search(number) else True
