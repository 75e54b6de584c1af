"""The places of a text by a slow search, beside which ``taciturn.screening.bridges.places`` is tested."""

from __future__ import annotations

import re

from taciturn.screening.bridges import BEFORE, BEHIND, PARTICLES
from taciturn.screening.rows import Local
from taciturn.text.document import MASK

Interval = tuple[int, int]


def places(text: str, local: Local) -> list[Interval]:
    """The oracle: characters are coloured one by one, then words by the words beside them, until no more are."""
    assert local.both is not None
    coloured = [False] * len(text)
    spans = [(s.start, s.end) for s in local.both.find([text])[0].spans]
    for start, end in [*spans, *(m.span() for m in re.finditer(re.escape(MASK), text))]:
        coloured[start:end] = [True] * (end - start)
    for order in (range(len(text) - 1), range(len(text) - 2, -1, -1)):
        for i in order:
            here, there = (i, i + 1) if order.step > 0 else (i + 1, i)
            coloured[there] = coloured[there] or (coloured[here] and not text[there].isspace())
    words = [word.span() for word in re.finditer(r"[^\s\x1e\x1f]+", text)]
    masked = [any(coloured[start:end]) for start, end in words]
    while (more := [masked[i] or _drawn_in(text, words, masked, i) for i in range(len(words))]) != masked:
        masked = more
    found: list[Interval] = []
    for i, (start, end) in enumerate(words):
        if masked[i] and i and masked[i - 1] and not set(text[words[i - 1][1] : start]) & {"\x1e", "\x1f"}:
            found[-1] = (found[-1][0], end)
        elif masked[i]:
            found.append((start, end))
    return found


def _drawn_in(text: str, words: list[Interval], masked: list[bool], at: int) -> bool:
    """Whether an unmasked word is masked with those beside it: an article before one, a kind of street behind one, what
    stands between two with nothing but its like, in one message."""
    if at + 1 < len(words) and masked[at + 1] and _is(text, words[at], BEFORE, text[words[at][1] : words[at + 1][0]]):
        return True
    if at and masked[at - 1] and _is(text, words[at], BEHIND, text[words[at - 1][1] : words[at][0]]):
        return True
    left = max((i for i in range(at) if masked[i]), default=None)
    right = min((i for i in range(at + 1, len(words)) if masked[i]), default=None)
    if left is None or right is None or set(text[words[left][1] : words[right][0]]) & {"\x1e", "\x1f"}:
        return False
    return all(_between(text[slice(*words[i])]) for i in range(left + 1, right))


def _is(text: str, word: Interval, listed: frozenset[str], blank: str) -> bool:
    bare = re.sub(r"^[\W_]+|[\W_]+$", "", text[slice(*word)]).casefold()
    return bare in listed and set(blank) <= {" ", "\t"} and len(blank) <= 8 and word[1] - word[0] <= 16


def _between(word: str) -> bool:
    bare = re.sub(r"^[\W_]+|[\W_]+$", "", word).casefold()
    return not bare or bare in PARTICLES or (len(bare) == 1 and bare.isalpha()) or word == "&amp;"
