"""One value of an option, several, or a range of them."""

from __future__ import annotations

from typing import TypeVar

from taciturn.errors import UsageError

MOST = 200
"""Values an option takes at most: each costs a composition."""

Number = TypeVar("Number", int, float)


def values(option: str, text: str, kind: type[Number]) -> list[Number]:
    """``2``, ``0.5,1,2``, ``A:B:N`` (N values from A to B, evenly spaced) or ``A:B:N:log`` (by equal factors).

    Whole numbers are rounded in a range; a value that occurs twice counts once. UsageError names the option.

    >>> values("--steps", "100:1000:4", int), values("--sigma", "0.5:8:5:log", float)
    ([100, 400, 700, 1000], [0.5, 1.0, 2.0, 4.0, 8.0])
    """
    found: list[Number] = []
    for part in text.split(","):
        found += _range(option, part.strip(), kind)
    found = list(dict.fromkeys(found))
    if len(found) > MOST:
        raise UsageError(f"{option}: {len(found)} values are more than {MOST}")
    return found


def _range(option: str, part: str, kind: type[Number]) -> list[Number]:
    pieces = part.split(":")
    if len(pieces) == 1:
        return [_one(option, part, kind)]
    if len(pieces) not in (3, 4) or (len(pieces) == 4 and pieces[3] != "log"):
        raise UsageError(f"{option} {part}: a range is FROM:TO:COUNT or FROM:TO:COUNT:log, e.g. 100:1000:5")
    low, high, count = _one(option, pieces[0], float), _one(option, pieces[1], float), _one(option, pieces[2], int)
    if not 2 <= count <= MOST:
        raise UsageError(f"{option} {part}: expected a count between 2 and {MOST}, found {count}")
    if len(pieces) == 4:
        if low <= 0 or high <= 0:
            raise UsageError(f"{option} {part}: a range by equal factors has both ends above 0")
        made = [low * (high / low) ** (i / (count - 1)) for i in range(count)]
    else:
        made = [low + (high - low) * i / (count - 1) for i in range(count)]
    return [kind(round(value)) if kind is int else kind(float(f"{value:.12g}")) for value in made]


def _one(option: str, text: str, kind: type[Number]) -> Number:
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise UsageError(f"{option}: expected {what}, several with commas, or FROM:TO:COUNT; found {text!r}") from None
