"""Whether a text has the same skeleton whatever words of its places are masked (guarantees.md §3.1).

What a skeleton masks is masked by the *token* (what stands between blanks), with the words that belong to it (bridges.py).
So what matters of a masking is which tokens a policy still marks of those that it leaves alone (maskings.py).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import takewhile
from operator import eq, itemgetter

from taciturn.screening.bridges import Bridge, places, whole
from taciturn.screening.maskings import Case, Question, stays
from taciturn.screening.policies.finder import Finder
from taciturn.screening.policies.view import WORD
from taciturn.screening.redact import BRIDGED, Interval, Masked, maximal
from taciturn.text.spans import Span

_TOKEN = re.compile(r"[^\s\x1e\x1f]+")


def has_one_skeleton(texts: Sequence[str], masked: Sequence[Masked], policy: Finder, bridge: Bridge) -> list[bool]:
    """For each text and what it was redacted to, with ``BRIDGED``: is its skeleton that of every masking of words of its
    places? False also where that cannot be tested. True where a detector failed: there is nothing to compare."""
    return tested(texts, masked, policy, bridge)[0]


def tested(
    texts: Sequence[str], masked: Sequence[Masked], policy: Finder, bridge: Bridge, *others: Question
) -> list[list[bool]]:
    """``has_one_skeleton``, and the answers to other questions about the same maskings."""

    def look(_: Sequence[str], redacted: Sequence[Masked]) -> list[tuple[str, bool]]:
        return [(whole(m.text, bridge), m.failed) for m in redacted]

    every = [places(text, m.marks, bridge) for text, m in zip(texts, masked, strict=True)]
    cases = [
        _case(text, m.marks, its) if m.settled and not m.failed and m.marks else None
        for text, m, its in zip(texts, masked, every, strict=True)
    ]

    def covered(text: str, spans: Sequence[Span]) -> Sequence[Interval]:
        return places(text, maximal(text, spans, BRIDGED), bridge)

    questions = Question(policy, covered, cases, look, eq), *others
    one, *rest = stays(texts, masked, every, policy, BRIDGED, questions)
    return [[holds and (m.failed or m.settled) for holds, m in zip(one, masked, strict=True)], *rest]


def tokens(text: str) -> list[Interval]:
    """What stands between blanks and borders of messages."""
    return [token.span() for token in _TOKEN.finditer(text)]


def _case(text: str, marks: Sequence[Interval], its: Sequence[Interval]) -> Case:
    """May be masked: words of marks, the words beside them, and what marks leave of words, that are masked with them."""
    words = (word.span() for place in its for word in WORD.finditer(text, *place))
    cuts = sorted([*marks, *(part for word in words for part in _outside(word, marks))])
    return Case(text, cuts, tokens(text), its)


def _outside(word: Interval, marks: Sequence[Interval]) -> Iterator[Interval]:
    at, end = word
    first = bisect_right(marks, at, key=itemgetter(1))
    for a, b in takewhile(lambda mark: mark[0] < end, marks[first:]):
        if at < a:
            yield at, a
        at = b
    if at < end:
        yield at, end
