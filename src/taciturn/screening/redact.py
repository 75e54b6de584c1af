"""Redact: everything a policy marks becomes ``<MASK>``, until nothing changes (guarantees.md §2.1).

Record-local: the result for a text depends on that text and the policy alone. Two masks with nothing but blanks between them
are one mask, so that a secret found word by word looks like the same secret found whole. Skeletons use a wider joint
(``BRIDGED``): masks with no letter and no digit between them are one, because π_c marks words and leaves the commas and
hyphens of an address or an order number standing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from taciturn.screening.policies.base import worst
from taciturn.screening.policies.finder import Finder
from taciturn.text.document import MASK
from taciturn.text.spans import Span, Status, merge

ADJACENT = re.compile(r"[ \t]*")
"""The joint of Redact: blanks (a line end keeps two masks apart)."""

BRIDGED = re.compile(r"[^\w\x1e\x1f]*(?:_[^\w\x1e\x1f]*)*")
"""The joint of skeletons: anything without a letter, a digit or the border of a message."""

BOUND = 8
"""Passes after which a text that still changes is masked whole."""

# A check looks at this much text around a span of a long record (code points); detectors are taken to reach no further.
WHOLE, REACH = 1024, 256
# Checks of many spans go through in pieces of about this many code points, at most so many pairs: what a check finds in one
# is still remembered for the next (derived.Cached).
_PIECE, _PAIRS = 1 << 20, 1 << 12

Interval = tuple[int, int]


@dataclass(slots=True, unsafe_hash=True)
class Masked:
    """text: the fixed point. marks: maximal marked intervals of the text that was given (its literal masks not counted).
    status: the worst of the passes. settled: False when the bound was reached and the text is one ``<MASK>``."""

    text: str
    marks: tuple[Interval, ...]
    status: Status = "ok"
    settled: bool = True

    @property
    def failed(self) -> bool:
        """A detector did not finish."""
        return self.status != "ok"

    @property
    def doubtful(self) -> tuple[Interval, ...]:
        """The marks ``survives`` has to look at: masking the only mark is what redaction itself did."""
        return self.marks if len(self.marks) > 1 or self.failed or not self.settled else ()


def redact(texts: Sequence[str], policy: Finder, joint: re.Pattern[str] = ADJACENT, bound: int = BOUND) -> list[Masked]:
    """Mask what ``policy`` marks in each text and again in the result, until nothing changes.

    >>> from taciturn.screening.policies import policy
    >>> redact(["mail a@b.org or call 980.322.8737 now"], policy("email", "phone"))[0].text
    'mail <MASK> or call <MASK> now'
    """
    distinct = list(dict.fromkeys(texts))
    if len(distinct) < len(texts):
        outcome = dict(zip(distinct, redact(distinct, policy, joint, bound), strict=True))
        return [outcome[text] for text in texts]
    current = list(texts)
    marks: list[tuple[Interval, ...]] = [()] * len(texts)
    statuses: list[Status] = ["ok"] * len(texts)
    active = list(range(len(texts)))
    for turn in range(bound):
        found = policy.find([current[i] for i in active])
        changed = []
        for i, detection in zip(active, found, strict=True):
            intervals = maximal(current[i], detection.spans, joint)
            statuses[i] = worst(statuses[i], detection.status)
            if turn == 0:
                marks[i] = intervals
            masked = substitute(current[i], intervals, joint)
            if masked != current[i]:
                current[i] = masked
                changed.append(i)
        active = changed
        if not active:
            break
    for i in active:
        current[i] = MASK
    unsettled = set(active)
    return [Masked(current[i], marks[i], statuses[i], i not in unsettled) for i in range(len(texts))]


def maximal(text: str, spans: Iterable[Span], joint: re.Pattern[str]) -> tuple[Interval, ...]:
    """Unions of spans that overlap, touch, share a ``<MASK>`` or have only a joint between them."""
    intervals = merge(spans)
    if MASK in text:
        intervals = [_whole_masks(text, start, end) for start, end in intervals]
    return joined(text, intervals, joint)


def joined(text: str, intervals: Sequence[Interval], joint: re.Pattern[str]) -> tuple[Interval, ...]:
    """Unions of intervals, by their starts, that overlap, touch or have only a joint between them."""
    if not intervals:
        return ()
    one = [intervals[0]]
    for start, end in intervals[1:]:
        last_start, last_end = one[-1]
        if start <= last_end or joint.fullmatch(text, last_end, start):
            one[-1] = (last_start, max(end, last_end))
        else:
            one.append((start, end))
    return tuple(one)


def _whole_masks(text: str, start: int, end: int) -> Interval:
    """The interval grown so that no ``<MASK>`` is cut."""
    left = text.find(MASK, max(0, start - len(MASK) + 1), start + len(MASK) - 1)
    if 0 <= left < start:
        start = left
    right = text.rfind(MASK, max(0, end - len(MASK) + 1), end + len(MASK) - 1)
    if 0 <= right < end < right + len(MASK):
        end = right + len(MASK)
    return start, end


def substitute(text: str, intervals: Iterable[Interval], joint: re.Pattern[str] = ADJACENT) -> str:
    """``text`` with each interval a ``<MASK>`` and neighbouring masks joined (literal ones included).

    >>> substitute("ab cd ef", [(0, 2), (3, 5)])
    '<MASK> ef'
    """
    pieces, at = [], 0
    for start, end in intervals:
        pieces += [text[at:start], MASK]
        at = end
    masked = "".join([*pieces, text[at:]])
    if masked.count(MASK) < 2:
        return masked
    return _joined(joint).sub(MASK, masked)


def _joined(joint: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(rf"{MASK}(?:{joint.pattern}{MASK})+")  # re keeps compiled patterns


def survives(
    cases: Sequence[tuple[str, Sequence[Interval]]],
    policy: Finder,
    joint: re.Pattern[str] = ADJACENT,
) -> list[list[bool]]:
    """For each text and each interval x of it: is the text with x replaced by ``<MASK>`` redacted to the same result?

    This is what "detected means ε = 0" needs: Redact(s(x)) = Redact(s(<MASK>)). See ``neighbours`` for long records.
    """
    answers: list[bool] = []
    for pairs in pieces(neighbours(text, interval) for text, intervals in cases for interval in intervals):
        sides = list(dict.fromkeys(side for pair in pairs for side in pair))
        outcome = dict(zip(sides, redact(sides, policy, joint), strict=True))
        answers += [_same(outcome[left], outcome[right]) for left, right in pairs]
    rest = iter(answers)
    return [[next(rest) for _ in intervals] for _, intervals in cases]


def _same(a: Masked, b: Masked) -> bool:
    return a.text == b.text and a.failed == b.failed


def neighbours(text: str, interval: Interval) -> tuple[str, str]:
    """s(x) and s(<MASK>). Of a record of more than 1,024 code points only x and the 256 on either side of it."""
    start, end = interval
    if len(text) > WHOLE:
        low = max(0, start - REACH)
        text, start, end = text[low : end + REACH], start - low, end - low
    return text, text[:start] + MASK + text[end:]


def pieces(pairs: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """The pairs in lists of about a million code points: memory stays flat however many spans a record has."""
    piece: list[tuple[str, str]] = []
    size = 0
    for pair in pairs:
        piece.append(pair)
        size += len(pair[0]) + len(pair[1])
        if size >= _PIECE or len(piece) == _PAIRS:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece
