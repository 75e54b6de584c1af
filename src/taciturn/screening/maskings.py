"""Whether what policies mark of a text stays as it is whatever words of some intervals are masked (guarantees.md §3.1).

Where every detector is *apart* (it finds in L<MASK>R what it finds in L<MASK> and in <MASK>R, and nothing else), what is
found in any masking is found in its stretches between two masks. A stretch begins after a word that may be masked, or at the
start, and ends before one, or at the end: if in each of them, between masks, the units are covered that are covered in the
whole text, they are in every masking, of any number of words, and all of these maskings pass the same test. Other detectors
(models) say nothing of the kind: every run of words of a mark is masked by itself, and every run of marks of a place.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any

from taciturn.screening.policies.finder import Finder
from taciturn.screening.policies.view import WORD
from taciturn.screening.redact import REACH, WHOLE, Interval, Masked, neighbours, pieces, redact
from taciturn.text.document import MASK
from taciturn.text.spans import Detection, Span

MOST = 32
"""Words of a mark beyond which its runs are not tested one by one."""

_AT_ONCE = 1 << 12  # stretches that are looked at together
_WORD = re.compile(rf"{MASK}|{WORD.pattern}")

Marks = Sequence[Interval]
Covered = Callable[[str, Sequence[Span]], Marks]


@dataclass(frozen=True)
class Question:
    """What must stay as it is. policy: whose marks. covered: what a text's marks cover of it. cases: of each text what is
    asked in stretches, None for a text of which nothing is asked. look, same: what to see of texts and of what they are
    redacted to, and when the sights of a text and of one of its maskings are the same."""

    policy: Finder
    covered: Covered
    cases: Sequence[Case | None]
    look: Callable[[Sequence[str], Sequence[Masked]], Sequence[Any]]
    same: Callable[[Any, Any], bool]


def stays(
    texts: Sequence[str],
    masked: Sequence[Masked],
    places: Sequence[Marks],
    policy: Finder,
    joint: re.Pattern[str],
    questions: Sequence[Question],
) -> list[list[bool]]:
    """For each question, of each text, whether it stays as it is; True where nothing is asked. masked: the texts redacted by
    ``policy``, which holds the policies of all questions; where it is not apart words of its marks are masked, and runs of
    marks that are in one place."""
    answers = [[True] * len(texts) for _ in questions]
    asked = [i for i in range(len(texts)) if any(question.cases[i] is not None for question in questions)]
    asked = [i for i, sure in zip(asked, policy.local([texts[i] for i in asked]), strict=True) if not sure]
    apart = policy.apart([texts[i] for i in asked])
    for question, its in zip(questions, answers, strict=True):
        cases = [(i, c) for i, each in zip(asked, apart, strict=True) if each and (c := question.cases[i]) is not None]
        if question.policy is not policy:
            sure = question.policy.local([case.text for _, case in cases])
            cases = [each for each, word_by_word in zip(cases, sure, strict=True) if not word_by_word]
        tested = _in_stretches([case for _, case in cases], question.policy, question.covered)
        for (i, _), holds in zip(cases, tested, strict=True):
            its[i] = holds
    rest = {i: masked[i].marks for i, each in zip(asked, apart, strict=True) if not each}
    failures = _run_by_run(texts, rest, places, policy, joint, questions)
    for its, failing in zip(answers, failures, strict=True):
        for i in failing:
            its[i] = False
    return answers


@dataclass(frozen=True, slots=True)
class Case:
    """cuts: intervals any words of which may be masked. units: those of which it is asked whether they are covered where no
    mask is in or beside them; touching one of ``marked``: those that are, in the whole text."""

    text: str
    cuts: Marks
    units: Marks
    marked: Marks

    def windows(self) -> Iterator[tuple[Case, Interval]]:
        """Of a long text overlapping parts, and where the units begin that are looked at, in the middle of each, as what is
        further away than detectors are taken to reach (redact.py) does not matter to them."""
        text = self.text
        if len(text) <= WHOLE:
            yield self, (0, len(text))
            return
        for low in range(0, len(text) - REACH, WHOLE - 2 * REACH):
            high = low + WHOLE
            parts = (part(its, low, high) for its in (self.cuts, self.units, self.marked))
            middle = (REACH if low else 0, WHOLE - REACH if high < len(text) else WHOLE)
            yield Case(text[low:high], *parts), middle


@dataclass(frozen=True, slots=True)
class _Asked:
    """plain: units that are not covered. leaning: those that are, but not by what is marked word by word.
    all: ask for every stretch, not only those between words less than ``REACH`` apart and those cut on one side."""

    text: str
    cuts: Marks
    marked: Marks
    plain: tuple[Interval, ...]
    leaning: tuple[Interval, ...]
    all: bool

    @classmethod
    def of(cls, case: Case, middle: Interval, words: Marks) -> _Asked:
        low, high = middle
        units = [unit for unit in case.units if low <= unit[0] < high]
        plain = tuple(unit for unit in units if not touched(unit, case.marked))
        leaning = tuple(unit for unit in units if touched(unit, case.marked) > touched(unit, words))
        return cls(case.text, case.cuts, case.marked, plain, leaning, (low, high) == (0, len(case.text)))

    def stretches(self) -> Iterator[Interval]:
        """From the start of the text or the end of a word of a cut (or of a cut) to where one begins, or the end; those in
        which a unit could be marked otherwise."""
        words = [word.span() for cut in self.cuts for word in _WORD.finditer(self.text, *cut)]
        after = sorted({0, *(end for _, end in words), *(end for _, end in self.cuts)})
        before = sorted({len(self.text), *(start for start, _ in words), *(start for start, _ in self.cuts)})
        asked = sorted(self.plain + self.leaning)
        at = 0
        for a in after:
            while at < len(asked) and asked[at][0] < a:
                at += 1
            for b in before if at < len(asked) else ():
                near = self.all or b - a <= REACH or a == 0 or b == len(self.text)
                if near and asked[at][1] <= b:
                    yield a, b

    def between(self, a: int, b: int) -> str:
        """The stretch, and masks where it was cut."""
        return MASK * (a > 0) + self.text[a:b] + MASK * (b < len(self.text))

    def sure(self, a: int, b: int, moved: Detection) -> bool:
        """Whether ``same`` is True whatever is found, by what patterns find in ``between(a, b)``: where every mark lies in
        what the marks of the whole text cover, no more is covered, and less does not matter where no unit leans on it."""
        if moved.status != "ok" or any(a <= start and end <= b for start, end in self.leaning):
            return False
        move = a - len(MASK) * (a > 0)
        return all(_inside((s.start + move, s.end + move), self.marked) for s in moved.spans)

    def same(self, a: int, b: int, spans: Sequence[Span], covered: Covered) -> bool:
        """Whether these spans of ``between(a, b)`` cover the units that are covered in the whole text."""
        cut = (int(a > 0), int(b < len(self.text)))
        move = a - len(MASK) * cut[0]
        size = b - move + len(MASK) * cut[1]
        ends = [Span(0, len(MASK) * cut[0]), Span(size - len(MASK) * cut[1], size)]
        marks = [(x + move, y + move) for x, y in covered(self.between(a, b), [*spans, *ends])]

        def whole(units: Sequence[Interval]) -> list[bool]:
            """Of each that no mask touches."""
            return [touched(t, marks) for t in units if t[0] >= a + cut[0] and t[1] <= b - cut[1]]

        return not any(whole(self.plain)) and all(whole(self.leaning))


def _in_stretches(cases: Sequence[Case], policy: Finder, covered: Covered) -> list[bool]:
    """For each case whether in every stretch of its text between two words of its cuts, masks beside it, the marks of
    ``policy`` cover the units that are covered."""
    windows = [(i, window) for i, case in enumerate(cases) for window in case.windows()]
    found = policy.words([case.text for _, (case, _) in windows])
    words = [covered(case.text, of.spans) for (_, (case, _)), of in zip(windows, found, strict=True)]
    held = [_Asked.of(*window, its) for (_, window), its in zip(windows, words, strict=True)]
    whose = [i for i, _ in windows]
    answers = [True] * len(cases)
    every = ((i, a, b) for i, of in enumerate(held) for a, b in of.stretches() if answers[whose[i]])
    while some := list(islice(every, _AT_ONCE)):
        texts = [held[i].between(a, b) for i, a, b in some]
        moved = policy.patterns(texts)
        at = [n for n, (i, a, b) in enumerate(some) if not held[i].sure(a, b, moved[n])]
        for n, one in zip(at, policy.find([texts[n] for n in at]), strict=True):
            i, a, b = some[n]
            answers[whose[i]] &= one.status == "ok" and held[i].same(a, b, one.spans, covered)
    return answers


def touched(unit: Interval, intervals: Marks) -> bool:
    """Whether one of them (in order, apart) overlaps it."""
    at = bisect_right(intervals, unit[0], key=itemgetter(1))
    return at < len(intervals) and intervals[at][0] < unit[1]


def _inside(mark: Interval, intervals: Marks) -> bool:
    """Whether one of them (in order, apart) holds it."""
    at = bisect_right(intervals, mark[0], key=itemgetter(0)) - 1
    return at >= 0 and mark[1] <= intervals[at][1]


def part(intervals: Marks, low: int, high: int) -> list[Interval]:
    """What overlaps ``low:high`` of intervals in order, as it lies there.

    >>> part([(0, 3), (5, 9), (9, 12)], 2, 9)
    [(0, 1), (3, 7)]
    """
    first, last = bisect_right(intervals, low, key=itemgetter(1)), bisect_left(intervals, high, key=itemgetter(0))
    return [(max(a, low) - low, min(b, high) - low) for a, b in intervals[first:last]]


def _run_by_run(
    texts: Sequence[str],
    marks: Mapping[int, Marks],
    places: Sequence[Marks],
    policy: Finder,
    joint: re.Pattern[str],
    questions: Sequence[Question],
) -> list[set[int]]:
    """For each question the texts, by their numbers in ``marks``, that do not look the same once some run of words of a
    mark, or of marks of a place, is masked; also those with a long mark or place."""
    long = {i for i in marks if any(_long(texts[i], its) for its in (*marks[i], *places[i]))}
    failing = [{i for i in long if question.cases[i] is not None} for question in questions]
    tests = [(i, x) for i in marks if i not in long for x in every_run(texts[i], marks[i], places[i])]
    at = iter(tests)
    for pairs in pieces(neighbours(texts[i], x) for i, x in tests):
        numbered = [(i, pair) for pair, (i, _) in zip(pairs, at, strict=False)]
        every = list(dict.fromkeys(side for pair in pairs for side in pair))
        redacted = dict(zip(every, redact(every, policy, joint), strict=True))
        for question, its in zip(questions, failing, strict=True):
            some = [(i, pair) for i, pair in numbered if question.cases[i] is not None]
            sides = list(dict.fromkeys(side for _, pair in some for side in pair))
            seen = dict(zip(sides, question.look(sides, [redacted[side] for side in sides]), strict=True))
            its.update(i for i, (left, right) in some if not question.same(seen[left], seen[right]))
    return failing


def every_run(text: str, marks: Marks, places: Marks) -> list[Interval]:
    """``runs`` of each mark, and from the start of a mark, or of a place, to the end of a later mark of the place, or of it.

    >>> every_run("14 de mayo", [(0, 2), (6, 10)], [(0, 10)])
    [(0, 2), (0, 10), (6, 10)]
    """
    found = {x for mark in marks for x in runs(text, mark)}
    for place in places:
        inside = [mark for mark in marks if place[0] <= mark[0] and mark[1] <= place[1]]
        found |= {(a, b) for i, (a, _) in enumerate(inside) for _, b in inside[i:]} | {place}
    return sorted(found)


def runs(text: str, mark: Interval) -> list[Interval]:
    """The mark, and every run of its words: from the start of one to the end of the same or a later one.

    >>> runs("at 77 the st.", (3, 13))
    [(3, 5), (3, 9), (3, 12), (3, 13), (6, 9), (6, 12), (10, 12)]
    """
    words = [word.span() for word in _WORD.finditer(text, *mark)]
    return sorted({mark, *((start, end) for i, (start, _) in enumerate(words) for _, end in words[i:])})


def _long(text: str, mark: Interval) -> bool:
    return mark[1] - mark[0] > 2 * MOST and sum(1 for _ in _WORD.finditer(text, *mark)) > MOST
