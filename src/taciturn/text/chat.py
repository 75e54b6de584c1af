"""Structure inside a record's text: messages with roles, and pairs of texts.

A message is U+001E, its role, U+001F, its content. The characters are part of the text, so whatever screening does to
the text decides the structure too: it is a function of the record, and every statement about records holds unchanged.
Readers refuse contents that hold these characters. Reading the structure back never fails: what a mask has left of a
separator becomes a line end of the message before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from taciturn.errors import DataError

OPEN, CLOSE = "\x1e", "\x1f"
ROLES = ("system", "developer", "user", "assistant", "tool", "function")
FIRST, SECOND = "first", "second"
"""The roles of the two texts of a pair (premise and hypothesis, question and passage)."""

_HEAD = re.compile(f"{OPEN}({'|'.join((*ROLES, FIRST, SECOND))}){CLOSE}")
_LINE_ENDS = str.maketrans({OPEN: "\n", CLOSE: "\n"})


@dataclass(frozen=True, slots=True)
class Message:
    """content came from ``text[start : start + len(content)]`` of the record, separators in it turned into line ends."""

    role: str
    content: str
    start: int


def join(messages: Iterable[tuple[str, str]]) -> str:
    """The record text of (role, content) pairs. Raises DataError for an unknown role or a separator in a content.

    >>> join([("user", "Hi"), ("assistant", "Hello")])
    '\\x1euser\\x1fHi\\x1eassistant\\x1fHello'
    """
    parts = []
    for number, (role, content) in enumerate(messages, 1):
        wrong = message_problem(role, content)
        if wrong:
            raise DataError(f"message {number} {wrong}")
        parts.append(head(role) + content)
    return "".join(parts)


def head(role: str) -> str:
    """What stands before the content of a message."""
    return f"{OPEN}{role}{CLOSE}"


def message_problem(role: str, content: str) -> str | None:
    """Why a message cannot be part of a record, never quoting it; None if it can."""
    if role not in (*ROLES, FIRST, SECOND):
        return f"has a role that is none of {', '.join(ROLES)}"
    if OPEN in content or CLOSE in content:
        return "holds U+001E or U+001F, which mark where messages begin; remove them"
    return None


def heads(text: str) -> list[tuple[int, int]]:
    """Where the heads of messages lie, as half-open intervals.

    >>> heads(join([("user", "Hi"), ("assistant", "Hello")]))
    [(0, 6), (8, 19)]
    """
    return [found.span() for found in _HEAD.finditer(text)] if OPEN in text else []


def structured(text: str) -> bool:
    """Whether there is a message in the text."""
    return OPEN in text and _HEAD.search(text) is not None


def parse(text: str) -> list[Message]:
    """The messages of any text at all, in order, at least one; text before the first head is a message of the user's.

    >>> [(m.role, m.content) for m in parse("<MASK>\\x1eassistant\\x1fHello\\x1e<MASK>")]
    [('user', '<MASK>'), ('assistant', 'Hello\\n<MASK>')]
    """
    heads = list(_HEAD.finditer(text))
    ends = [h.start() for h in heads[1:]] + [len(text)]
    messages = [Message(h[1], _plain(text[h.end() : end]), h.end()) for h, end in zip(heads, ends, strict=False)]
    before = text[: heads[0].start()] if heads else text
    return [Message("user", _plain(before), 0), *messages] if before or not messages else messages


def pair(text: str) -> tuple[Message, Message | None] | None:
    """The two texts of a pair, the second None when a mask has swallowed the border; None if the text is no pair."""
    messages = parse(text)
    if not any(m.role in (FIRST, SECOND) for m in messages):
        return None
    border = next((h for h in _HEAD.finditer(text) if h[1] == SECOND), None)
    end = len(text) if border is None else border.start()
    begin = len(head(FIRST)) if text.startswith(head(FIRST)) else 0
    first = Message(FIRST, _plain(text[begin:end]), begin)
    return first, None if border is None else Message(SECOND, _plain(text[border.end() :]), border.end())


def contents(text: str) -> list[str]:
    """The texts that a person wrote: of each message, or the whole where there is none."""
    return [message.content for message in parse(text)] if structured(text) else [text]


def _plain(content: str) -> str:
    return content.translate(_LINE_ENDS)
