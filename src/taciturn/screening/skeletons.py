"""Whether a text has the same skeleton whatever words of its marks are masked (guarantees.md §3.1).

What a skeleton masks is masked by the *token* (what stands between blanks): the brackets of "(555) 010-7700", the rest of an
address of which one word is masked, the "'s" behind a name go with it. So what matters of a masking is which tokens a policy
still marks of those that it leaves alone (maskings.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import eq

from taciturn.screening.maskings import Case, Question, stays
from taciturn.screening.policies.base import Finder
from taciturn.screening.redact import Interval, Masked, substitute
from taciturn.text.document import MASK

_TOKEN = re.compile(r"[^\s\x1e\x1f]+")
_MASKED = re.compile(rf"[^\s\x1e\x1f]*{MASK}[^\s\x1e\x1f]*")


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
    return tested(texts, masked, policy, joint)[0]


def tested(
    texts: Sequence[str], masked: Sequence[Masked], policy: Finder, joint: re.Pattern[str], *others: Question
) -> list[list[bool]]:
    """``has_one_skeleton``, and the answers to other questions about the same maskings."""

    def look(_: Sequence[str], redacted: Sequence[Masked]) -> list[tuple[str, bool]]:
        return [(by_token(m.text, joint), m.failed) for m in redacted]

    cases = [
        Case(text, m.marks, tokens(text), m.marks) if m.settled and not m.failed and m.marks else None
        for text, m in zip(texts, masked, strict=True)
    ]
    questions = Question(policy, joint, cases, look, eq), *others
    one, *rest = stays(texts, masked, policy, joint, questions)
    return [[holds and (m.failed or m.settled) for holds, m in zip(one, masked, strict=True)], *rest]


def tokens(text: str) -> list[Interval]:
    """What stands between blanks and borders of messages."""
    return [token.span() for token in _TOKEN.finditer(text)]
