"""What stands behind each mask of a skeleton, where masking some of it leaves the rest as it is (guarantees.md §3.7).

A mask of a skeleton stands for a *place*: marks of π and π_c and literal masks, grown to whole tokens and joined. A place
has a value if π masks nothing of it, on no pass, and it holds no mask and no border of messages. Noiseless steps may have
values back, so masking words of one place must change no value of another: not its text, which follows from the skeleton,
nor whether π touches it. Skeletons do not show that: π_c may mark what π stops marking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from taciturn.screening.bridges import Bridge, places, substituted, whole
from taciturn.screening.maskings import Case, Question, touched
from taciturn.screening.policies.finder import Finder
from taciturn.screening.policies.public import LONGEST_VALUE
from taciturn.screening.redact import ADJACENT, BRIDGED, Interval, Masked, maximal, redact, substitute
from taciturn.text.chat import CLOSE, OPEN
from taciturn.text.document import MASK

NOTHING: Interval = (0, 0)
_NOT_INSIDE = (MASK, OPEN, CLOSE)


@dataclass(frozen=True, slots=True)
class Places:
    """What the masks of its skeleton stand for in a text. touched: of each, whether π masks something of it."""

    text: str
    skeleton: str
    places: tuple[Interval, ...]
    touched: tuple[bool, ...] = ()

    @classmethod
    def of(cls, text: str, masked: Masked, bridge: Bridge) -> Places | None:
        """By what the text was masked to for its skeleton; None if masks at its places do not make it that."""
        if masked.failed or not masked.settled:
            return None
        its = places(text, masked.marks, bridge)
        skeleton = substituted(text, its)
        exact = skeleton == whole(masked.text, bridge) and skeleton.count(MASK) == len(its)
        return cls(text, skeleton, its) if exact else None

    @property
    def values(self) -> list[str | None]:
        """Of each place what stands there, None where that is no value, ``MASK`` where there is one in it."""
        found = [(self.text[start:end], hit) for (start, end), hit in zip(self.places, self.touched, strict=True)]
        return [MASK if MASK in each else None if hit or not _may_be(each) else each for each, hit in found]

    @property
    def pairs(self) -> tuple[Interval, ...]:
        """Of each place its start and its end, ``NOTHING`` where it has no value."""
        values = zip(self.places, self.values, strict=True)
        return tuple(NOTHING if value in (None, MASK) else place for place, value in values)

    def case(self) -> Case:
        """Of the places that may have a value: does π touch the same in every masking?"""
        may = [
            (place, hit)
            for place, hit in zip(self.places, self.touched, strict=True)
            if _may_be(self.text[slice(*place)])
        ]
        return Case(self.text, self.places, [place for place, _ in may], [place for place, hit in may if hit])


def _may_be(value: str) -> bool:
    return len(value) <= LONGEST_VALUE and not any(x in value for x in _NOT_INSIDE)


def places_of(
    texts: Sequence[str], masked: Sequence[Masked], redacted: Sequence[Masked], both: Finder, bridge: Bridge
) -> list[Places | None]:
    """The places of each text, by what it was masked to for its skeleton and redacted to by π. None where a detector failed,
    or masks there do not make it its skeleton, as more than one pass did. What π touches is read off its last pass."""
    found: list[Places | None] = [None] * len(texts)
    again: list[tuple[int, Places]] = []
    for i, (text, m, pi) in enumerate(zip(texts, masked, redacted, strict=True)):
        its = None if pi.failed or not pi.settled else Places.of(text, m, bridge)
        if its is None:
            continue
        if pi.text == substitute(text, pi.marks):
            hit = tuple(touched(place, pi.marks) for place in its.places)
            found[i] = replace(its, touched=hit)
        else:
            again.append((i, its))
    last = [redacted[i].text for i, _ in again]
    for (i, its), text, m in zip(again, last, redact(last, both, BRIDGED), strict=True):
        after = Places.of(text, m, bridge)
        if after is not None and after.skeleton == its.skeleton:
            found[i] = replace(its, touched=tuple(MASK in text[slice(*place)] for place in after.places))
    return found


def standing(of: Sequence[Places | None], pi: Finder, both: Finder, bridge: Bridge) -> Question:
    """Whether masking words of one place leaves the values of the others as they are. Of a single place nothing is asked."""

    def look(sides: Sequence[str], masked: Sequence[Masked]) -> list[tuple[str, list[str | None]] | None]:
        every = places_of(sides, masked, redact(sides, pi), both, bridge)
        return [None if its is None else (its.skeleton, its.values) for its in every]

    def same(ours: tuple[str, list[str | None]] | None, theirs: tuple[str, list[str | None]] | None) -> bool:
        """theirs: of a text with more masks."""
        if ours is None or theirs is None or ours[0] != theirs[0]:
            return False
        return all(value in (before, MASK) for before, value in zip(ours[1], theirs[1], strict=True))

    cases = [None if its is None or len(its.places) < 2 else its.case() for its in of]
    return Question(pi, partial(maximal, joint=ADJACENT), cases, look, same)
