"""Whether masking any run of a mark's words leaves a text's skeleton as it is (guarantees.md §3.1).

A mark of n words has n(n+1)/2 runs. Where every detector is *apart* (it finds in L<MASK>R what it finds in L<MASK> and in
<MASK>R, and nothing else), one look at the text up to each word and one at the text from each word on answer for all of
them: if both halves are masked as in the whole text, so is what they make together. Runs that this does not settle, and
those of texts in which a detector is not apart, are masked one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from taciturn.screening.policies.base import Finder
from taciturn.screening.policies.view import WORD
from taciturn.screening.redact import Interval, Masked, context, maximal, pieces, substitute, survives
from taciturn.text.document import MASK

MOST = 32
"""Words of a mark beyond which its runs are not tested."""

_WORD = re.compile(rf"{MASK}|{WORD.pattern}")

Case = tuple[str, Interval]


def steady(texts: Sequence[str], masked: Sequence[Masked], policy: Finder, joint: re.Pattern[str]) -> list[bool]:
    """For each text and what it was redacted to: is s(<MASK>) redacted to the same, whatever run of whole words of one of
    its marks is masked (or the mark)? False also where that cannot be tested: redaction did not settle, a mark has more than
    ``MOST`` words. True where a detector failed: there is nothing to compare."""
    sure = [m.failed or local for m, local in zip(masked, policy.local(texts), strict=True)]
    answers = [
        certain or (m.settled and not any(_long(text, mark) for mark in m.marks))
        for text, m, certain in zip(texts, masked, sure, strict=True)
    ]
    tested = [i for i, answer in enumerate(answers) if answer and not sure[i]]
    places = [(i, context(texts[i], mark)) for i in tested for mark in masked[i].marks]
    left = _unsettled([case for _, case in places], policy, joint)
    for part in (slice(0, 1), slice(1, None)):  # one fails mostly where all do
        cases = [(text, some[part] if answers[i] else []) for (i, (text, _)), some in zip(places, left, strict=True)]
        for (i, _), holds in zip(places, survives(cases, policy, joint), strict=True):
            answers[i] &= all(holds)
    return answers


def runs(text: str, mark: Interval) -> list[Interval]:
    """The mark, and every run of its words: from the start of one to the end of the same or a later one.

    >>> runs("at 77 the st.", (3, 13))
    [(3, 5), (3, 9), (3, 12), (3, 13), (6, 9), (6, 12), (10, 12)]
    """
    words = [word.span() for word in _WORD.finditer(text, *mark)]
    return sorted({mark, *((start, end) for i, (start, _) in enumerate(words) for _, end in words[i:])})


def _long(text: str, mark: Interval) -> bool:
    return mark[1] - mark[0] > 2 * MOST and sum(1 for _ in _WORD.finditer(text, *mark)) > MOST


def _unsettled(cases: Sequence[Case], policy: Finder, joint: re.Pattern[str]) -> list[list[Interval]]:
    """The runs of each (text, mark) that a look at halves does not show to be harmless."""
    apart = policy.apart([text for text, _ in cases])
    found = policy.find([text for text, _ in cases])
    some = [runs(text, mark) for text, mark in cases]
    halves: list[tuple[str, str]] = []
    wanted: list[str] = []
    for (text, mark), sure, detection, its in zip(cases, apart, found, some, strict=True):
        if sure:
            marks = maximal(text, detection.spans, joint)
            wanted += _halves_wanted(text, mark, marks, its, joint)
            halves += [(half, text) for half in _halves(text, its)]
    same: list[bool] = []
    for piece in pieces(halves):
        detections = policy.find([half for half, _ in piece], [text for _, text in piece])
        for (half, _), detection in zip(piece, detections, strict=True):
            masked = substitute(half, maximal(half, detection.spans, joint), joint)
            same.append(detection.status == "ok" and masked == wanted[len(same)])
    answers = iter(same)
    return [
        [x for x, good in zip(its, _both(its, answers), strict=True) if not good] if sure else its
        for its, sure in zip(some, apart, strict=True)
    ]


def _ends(its: Sequence[Interval]) -> tuple[list[int], list[int]]:
    return sorted({start for start, _ in its}), sorted({end for _, end in its})


def _halves(text: str, its: Sequence[Interval]) -> Iterator[str]:
    """The text before each start, and after each end, beside a mask."""
    starts, ends = _ends(its)
    yield from (text[:start] + MASK for start in starts)
    yield from (MASK + text[end:] for end in ends)


def _halves_wanted(
    text: str, mark: Interval, marks: Sequence[Interval], its: Sequence[Interval], joint: re.Pattern[str]
) -> list[str]:
    """What they are masked to if masking the run changes nothing."""
    starts, ends = _ends(its)
    left = substitute(text[: mark[0]] + MASK, [x for x in marks if x[1] <= mark[0]], joint)
    shift = len(MASK) - mark[1]
    right = [(a + shift, b + shift) for a, b in marks if a >= mark[1]]
    return [left] * len(starts) + [substitute(MASK + text[mark[1] :], right, joint)] * len(ends)


def _both(its: Sequence[Interval], answers: Iterator[bool]) -> list[bool]:
    starts, ends = _ends(its)
    before = {start: next(answers) for start in starts}
    after = {end: next(answers) for end in ends}
    return [before[start] and after[end] for start, end in its]
