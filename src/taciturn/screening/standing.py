"""What stands behind each mask of a skeleton, where masking some of it leaves the rest as it is (guarantees.md §3.7).

A mask of a skeleton stands for a *place*: marks of π and π_c and literal masks, grown to whole tokens and joined. A place has
a value if π masks nothing of it, on no pass, and it holds no mask and no border of messages. Noiseless steps may have values
back, so masking words of one place must change no value of another: not its text, which follows from the skeleton, nor whether
π touches it. For that π has to be looked at by itself, as π_c may mark what π stops marking.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from taciturn.screening.policies.base import Finder
from taciturn.screening.policies.public import LONGEST_VALUE
from taciturn.screening.redact import ADJACENT, BRIDGED, Interval, Masked, maximal, redact, substitute
from taciturn.screening.skeletons import Case, Marks, by_token, in_stretches, run_by_run, tokens, touched
from taciturn.text.chat import CLOSE, OPEN
from taciturn.text.document import MASK
from taciturn.text.spans import Span

NOTHING: Interval = (0, 0)
_NOT_INSIDE = (MASK, OPEN, CLOSE)


def places(text: str, marks: Marks) -> tuple[Interval, ...]:
    """Marks and literal masks, out to the blanks around them, those with no letter and no digit between joined.

    >>> places("call (<MASK>, or Dana's - Ely.", [(17, 21), (26, 29)])
    ((5, 13), (17, 30))
    """
    held = tokens(text)
    starts, ends = [start for start, _ in held], [end for _, end in held]
    at, literal = text.find(MASK), []
    while at >= 0:
        literal.append((at, at + len(MASK)))
        at = text.find(MASK, at + len(MASK))
    grown = []
    for start, end in (*marks, *literal):
        first, last = bisect_left(ends, start), bisect_right(starts, end) - 1
        if first <= last:
            start, end = min(start, starts[first]), max(end, ends[last])
        grown.append(Span(start, end))
    return maximal(text, grown, BRIDGED)


@dataclass(frozen=True, slots=True)
class Places:
    """What the masks of a skeleton stand for in a text. touched: of each, whether π masks something of it."""

    text: str
    places: tuple[Interval, ...]
    touched: tuple[bool, ...]

    @property
    def pairs(self) -> tuple[Interval, ...]:
        """Of each place its start and its end, ``NOTHING`` where it has no value."""
        marked = zip(self.places, self.touched, strict=True)
        return tuple(NOTHING if hit or not self._may(place) else place for place, hit in marked)

    def case(self) -> Case:
        """The question whether π touches the same places in every masking, of those that may have a value at all."""
        may = [(place, hit) for place, hit in zip(self.places, self.touched, strict=True) if self._may(place)]
        return Case(self.text, self.places, [place for place, _ in may], [place for place, hit in may if hit])

    def _may(self, place: Interval) -> bool:
        found = self.text[slice(*place)]
        return len(found) <= LONGEST_VALUE and not any(x in found for x in _NOT_INSIDE)


def standing(
    texts: Sequence[str], masked: Sequence[Masked], redacted: Sequence[Masked], pi: Finder, both: Finder
) -> list[tuple[Interval, ...] | None]:
    """For each text and what it was masked to for its skeleton and redacted to by π: of each mask of the skeleton the start
    and the end of its value, ``NOTHING`` for none. None where masking words of one place may change another's, or where
    that cannot be tested. Texts without one skeleton (skeletons.py) are not to be asked for."""
    found = _found(texts, masked, redacted, both)
    answers = [None if each is None else each.pairs for each in found]
    asked = [(i, each) for i, each in enumerate(found) if each is not None and len(each.places) > 1]
    apart = both.apart([each.text for _, each in asked])
    free = [each for each, parted in zip(asked, apart, strict=True) if parted]
    free = [each for each, sure in zip(free, pi.local([of.text for _, of in free]), strict=True) if not sure]
    for (i, _), holds in zip(free, in_stretches([of.case() for _, of in free], pi, ADJACENT), strict=True):
        answers[i] = answers[i] if holds else None
    rest = [i for (i, _), parted in zip(asked, apart, strict=True) if not parted]
    rest = [i for i, sure in zip(rest, both.local([texts[i] for i in rest]), strict=True) if not sure]

    def look(sides: Sequence[str]) -> list[Places | None]:
        return _found(sides, redact(sides, both, BRIDGED), redact(sides, pi), both)

    tested = run_by_run([texts[i] for i in rest], [masked[i].marks for i in rest], look, _same)
    for i, holds in zip(rest, tested, strict=True):
        answers[i] = answers[i] if holds else None
    return answers


def _same(text: Places | None, neighbour: Places | None) -> bool:
    """Whether a text and one with more masks have the same values, but where the latter's mask is."""
    if text is None or neighbour is None or len(text.places) != len(neighbour.places):
        return False

    def value(of: Places, pair: Interval) -> str | None:
        return None if pair == NOTHING else of.text[slice(*pair)]

    return all(
        MASK in neighbour.text[slice(*place)] or value(text, ours) == value(neighbour, theirs)
        for ours, theirs, place in zip(text.pairs, neighbour.pairs, neighbour.places, strict=True)
    )


def _found(
    texts: Sequence[str], masked: Sequence[Masked], redacted: Sequence[Masked], both: Finder
) -> list[Places | None]:
    """The places of each text; None where they are not those of its skeleton, or a detector failed."""
    all_ = [_of_skeleton(text, to, by_token(to.text, BRIDGED)) for text, to in zip(texts, masked, strict=True)]
    found: list[Places | None] = []
    again: list[int] = []
    for i, (text, its, pi) in enumerate(zip(texts, all_, redacted, strict=True)):
        if its is None or pi.failed or not pi.settled:
            found.append(None)
            continue
        found.append(Places(text, its, tuple(touched(place, pi.marks) for place in its)))
        if pi.text != substitute(text, pi.marks):
            again.append(i)
    last = [redacted[i].text for i in again]
    for i, text, to in zip(again, last, redact(last, both, BRIDGED), strict=True):
        its = _of_skeleton(text, to, by_token(masked[i].text, BRIDGED))
        hit = None if its is None else tuple(MASK in text[slice(*place)] for place in its)
        found[i] = None if hit is None else Places(texts[i], all_[i] or (), hit)
    return found


def _of_skeleton(text: str, masked: Masked, skeleton: str) -> tuple[Interval, ...] | None:
    """The places of a text, if masks there make it this skeleton."""
    if masked.failed or not masked.settled:
        return None
    its = places(text, masked.marks)
    return its if substitute(text, its, BRIDGED) == skeleton and skeleton.count(MASK) == len(its) else None
