"""Whether a text has the same skeleton whatever words of its marks are masked (guarantees.md §3.1).

What a skeleton masks is masked by the *token* (what stands between blanks): the brackets of "(555) 010-7700", the rest of an
address of which one word is masked, the "'s" behind a name go with it. So what matters of a masking is which tokens a policy
still marks of those that it leaves alone.

Where every detector is *apart* (it finds in L<MASK>R what it finds in L<MASK> and in <MASK>R, and nothing else), what is
found in any masking is found in its stretches between two masks. A stretch begins after a marked word, or at the start, and
ends before one, or at the end: if in each of them, between masks, the tokens are marked that are marked in the whole text,
the skeleton is the same for every choice of marked words, any number of them, and all of these maskings pass the same test.
Other detectors (models) say nothing of the kind: every run of words of a mark is masked by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import eq
from typing import TypeVar

from taciturn.screening.policies.base import Finder
from taciturn.screening.policies.view import WORD
from taciturn.screening.redact import REACH, WHOLE, Interval, Masked, maximal, neighbours, pieces, redact, substitute
from taciturn.text.document import MASK
from taciturn.text.spans import Span

MOST = 32
"""Words of a mark beyond which its runs are not tested one by one."""

_AT_ONCE = 1 << 12  # stretches that are looked at together

_TOKEN = re.compile(r"[^\s\x1e\x1f]+")
_MASKED = re.compile(rf"[^\s\x1e\x1f]*{MASK}[^\s\x1e\x1f]*")
_WORD = re.compile(rf"{MASK}|{WORD.pattern}")


def by_token(text: str, joint: re.Pattern[str]) -> str:
    """``text`` with all that is attached to a mask masked, and the masks joined.

    >>> by_token("call (<MASK>, or write to <MASK>@<MASK>.", re.compile(r"\\s*"))
    'call <MASK> or write to <MASK>'
    """
    return substitute(_MASKED.sub(MASK, text), (), joint) if MASK in text else text


def has_one_skeleton(
    texts: Sequence[str], masked: Sequence[Masked], policy: Finder, joint: re.Pattern[str]
) -> list[bool]:
    """For each text and what it was redacted to: is its skeleton that of every masking of marked words? False also where
    that cannot be tested. True where a detector failed: there is nothing to compare."""
    answers = [m.failed or m.settled for m in masked]
    asked = [i for i, m in enumerate(masked) if m.settled and not m.failed and m.marks]
    asked = [i for i, sure in zip(asked, policy.local([texts[i] for i in asked]), strict=True) if not sure]
    apart = policy.apart([texts[i] for i in asked])
    free = [i for i, each in zip(asked, apart, strict=True) if each]
    cases = [Case(texts[i], masked[i].marks, tokens(texts[i]), masked[i].marks) for i in free]
    for i, holds in zip(free, in_stretches(cases, policy, joint), strict=True):
        answers[i] = holds
    rest = [i for i, each in zip(asked, apart, strict=True) if not each]

    def look(sides: Sequence[str]) -> list[tuple[str, bool]]:
        return [(by_token(m.text, joint), m.failed) for m in redact(sides, policy, joint)]

    tested = run_by_run([texts[i] for i in rest], [masked[i].marks for i in rest], look, eq)
    for i, holds in zip(rest, tested, strict=True):
        answers[i] = holds
    return answers


Marks = Sequence[Interval]
Look = TypeVar("Look")


@dataclass(frozen=True, slots=True)
class Case:
    """cuts: intervals any words of which may be masked. units: those of which it is asked whether they are marked where no
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
            cuts, units, marked = (
                [(max(a, low) - low, min(b, high) - low) for a, b in its if a < high and b > low]
                for its in (self.cuts, self.units, self.marked)
            )
            middle = (REACH if low else 0, WHOLE - REACH if high < len(text) else WHOLE)
            yield Case(text[low:high], cuts, units, marked), middle


@dataclass(frozen=True, slots=True)
class _Asked:
    """plain: units that no policy marks. leaning: those that none marks word by word, so that they lean on others.
    all: ask for every stretch, not only those between words less than ``REACH`` apart and those cut on one side."""

    text: str
    cuts: Marks
    plain: tuple[Interval, ...]
    leaning: tuple[Interval, ...]
    all: bool

    @classmethod
    def of(cls, case: Case, middle: Interval, words: Marks) -> _Asked:
        low, high = middle
        units = [unit for unit in case.units if low <= unit[0] < high]
        plain = tuple(unit for unit in units if not touched(unit, case.marked))
        leaning = tuple(unit for unit in units if touched(unit, case.marked) > touched(unit, words))
        return cls(case.text, case.cuts, plain, leaning, (low, high) == (0, len(case.text)))

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

    def same(self, a: int, b: int, spans: Sequence[Span], joint: re.Pattern[str]) -> bool:
        """Whether these spans of ``between(a, b)`` mark the units that are marked in the whole text."""
        cut = (int(a > 0), int(b < len(self.text)))
        move = a - len(MASK) * cut[0]
        size = b - move + len(MASK) * cut[1]
        ends = [Span(0, len(MASK) * cut[0]), Span(size - len(MASK) * cut[1], size)]
        marks = [(x + move, y + move) for x, y in maximal(self.between(a, b), [*spans, *ends], joint)]

        def whole(units: Sequence[Interval]) -> list[bool]:
            """Of each that no mask touches."""
            return [touched(t, marks) for t in units if t[0] >= a + cut[0] and t[1] <= b - cut[1]]

        return not any(whole(self.plain)) and all(whole(self.leaning))


def in_stretches(cases: Sequence[Case], policy: Finder, joint: re.Pattern[str]) -> list[bool]:
    """For each case whether in every stretch of its text between two words of its cuts, masks beside it, ``policy`` marks
    the units that are marked."""
    windows = [(i, window) for i, case in enumerate(cases) for window in case.windows()]
    found = policy.words([case.text for _, (case, _) in windows])
    words = [maximal(case.text, of.spans, joint) for (_, (case, _)), of in zip(windows, found, strict=True)]
    held = [_Asked.of(*window, its) for (_, window), its in zip(windows, words, strict=True)]
    whose = [i for i, _ in windows]
    answers = [True] * len(cases)
    every = ((i, a, b) for i, of in enumerate(held) for a, b in of.stretches() if answers[whose[i]])
    while some := list(islice(every, _AT_ONCE)):
        sure = policy.local([held[i].between(a, b) for i, a, b in some])
        some = [
            (i, a, b) for (i, a, b), word_by_word in zip(some, sure, strict=True) if not word_by_word or held[i].leaning
        ]
        for (i, a, b), one in zip(some, policy.find([held[i].between(a, b) for i, a, b in some]), strict=True):
            answers[whose[i]] &= one.status == "ok" and held[i].same(a, b, one.spans, joint)
    return answers


def tokens(text: str) -> list[Interval]:
    """What stands between blanks and borders of messages."""
    return [token.span() for token in _TOKEN.finditer(text)]


def touched(unit: Interval, intervals: Marks) -> bool:
    """Whether one of them overlaps it."""
    return any(start < unit[1] and unit[0] < end for start, end in intervals)


def run_by_run(
    texts: Sequence[str],
    marks: Sequence[Marks],
    look: Callable[[Sequence[str]], Sequence[Look]],
    same: Callable[[Look, Look], bool],
) -> list[bool]:
    """Whether masking any one run of words of a mark, or a mark, leaves what ``look`` sees the ``same``; False where one is
    long."""
    answers = [not any(_long(text, mark) for mark in its) for text, its in zip(texts, marks, strict=True)]
    tested = [(i, x) for i, good in enumerate(answers) if good for mark in marks[i] for x in runs(texts[i], mark)]
    at = iter(tested)
    for pairs in pieces(neighbours(texts[i], x) for i, x in tested):
        sides = list(dict.fromkeys(side for pair in pairs for side in pair))
        seen = dict(zip(sides, look(sides), strict=True))
        for (left, right), (i, _) in zip(pairs, at, strict=False):
            answers[i] &= same(seen[left], seen[right])
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
