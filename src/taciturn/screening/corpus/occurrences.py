"""Where named secrets stand in a text, and whether a skeleton may still show a part of one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from taciturn.screening.redact import Interval
from taciturn.text.document import MASK

_TOKEN = re.compile(r"[^\s\x1e\x1f]+")  # what a skeleton masks as a whole (screening/skeletons.py)


def regardless_of_case(text: str) -> str:
    """``text`` with case folded, character for character, so that offsets stay: a letter is the first of what it folds to.

    >>> regardless_of_case("İZMİR Straße ΟΔΟΣ")
    'izmir strase οδοσ'
    """
    return text.lower() if text.isascii() else "".join(c.casefold()[0] for c in text)


def places(text: str, secrets: Sequence[str]) -> set[Interval]:
    """Every occurrence of every secret, case aside (secrets as :func:`regardless_of_case` has them); they may overlap."""
    text = regardless_of_case(text)
    found = set()
    for secret in secrets:
        at = text.find(secret)
        while at >= 0:
            found.add((at, at + len(secret)))
            at = text.find(secret, at + 1)
    return found


def may_show(original: str, skeleton: str, secrets: Sequence[str]) -> bool:
    """Whether a token that an occurrence of a secret in ``original`` touches may stand in ``skeleton``, its skeleton.

    A skeleton is the original with runs of tokens masked. Which tokens are left is not always clear ("a <MASK> a" of
    "a a a a"): every way to lay the stretches between masks over the original counts. True also where there is no way.

    >>> may_show("ask for Zed Quill", "ask for <MASK> Quill", ["zed quill"])
    True
    >>> may_show("ask for Zed Quill", "ask for <MASK>", ["zed quill"])
    False
    """
    tokens = [token.span() for token in _TOKEN.finditer(original)]
    found = places(original, secrets)
    touched = {i for i, (a, b) in enumerate(tokens) if any(start < b and a < end for start, end in found)}
    if not touched:
        return False
    words = [original[a:b] for a, b in tokens]
    stretches: list[list[str]] = [[]]
    for kept in _TOKEN.findall(skeleton):
        if MASK in kept:
            stretches.append([])
        else:
            stretches[-1].append(kept)
    first = _laid(words, stretches)
    mirrored = _laid(words[::-1], [stretch[::-1] for stretch in reversed(stretches)])
    if first is None or mirrored is None:
        return True
    for stretch, low, before in zip(stretches, first, reversed(mirrored), strict=True):
        size = len(stretch)
        for start in range(low, len(words) - before - size + 1):
            if words[start : start + size] == stretch and not touched.isdisjoint(range(start, start + size)):
                return True
    return False


def _laid(words: Sequence[str], stretches: Sequence[Sequence[str]]) -> list[int] | None:
    """Where each stretch begins if each lies as far left as it can, with a word between any two, the first at the start and
    the last at the end; None where they do not fit. Mirrored, it is as far right as each can lie."""
    starts: list[int] = []
    at = 0
    for i, stretch in enumerate(stretches):
        last = len(words) - len(stretch)
        low = max(at, last) if i == len(stretches) - 1 else at
        high = 0 if i == 0 else last
        start = next((s for s in range(low, high + 1) if list(words[s : s + len(stretch)]) == list(stretch)), None)
        if start is None:
            return None
        starts.append(start)
        at = start + len(stretch) + 1
    return starts
