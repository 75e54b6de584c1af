"""Offsets of a browser (UTF-16 code units) and of labels (code points) into the same text."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate

from taciturn.errors import DataError


@dataclass(frozen=True, slots=True)
class Offsets:
    """units[i]: UTF-16 units before code point i; as long as the text and one more."""

    units: tuple[int, ...] = field(repr=False)

    @classmethod
    def of(cls, text: str) -> Offsets:
        """
        >>> Offsets.of("a😀b").units
        (0, 1, 3, 4)
        """
        return cls(tuple(accumulate((2 if c > "\uffff" else 1 for c in text), initial=0)))

    def to_units(self, point: int) -> int:
        """UTF-16 offset of a code point."""
        return self.units[point]

    def to_point(self, unit: int) -> int:
        """Code point at a UTF-16 offset. Raises DataError outside the text and within a surrogate pair."""
        point = bisect_left(self.units, unit)
        if point == len(self.units) or self.units[point] != unit:
            raise DataError(f"offset {unit} is not at the border of a character in a text of {self.units[-1]} units")
        return point
