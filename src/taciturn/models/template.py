"""Chat templates: which one, and what it writes around the contents of a sequence of roles.

A template is rendered around place holders, so it never sees a record's text, and no error of its own can quote one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taciturn.errors import UsageError, nearest
from taciturn.text.chat import OPEN

PLAIN = (
    "{{ bos_token or eos_token }}"
    "{% for message in messages %}{{ message['content'] }}{{ '\\n' if not loop.last }}{% endfor %}"
    "{{ eos_token }}"
)
"""Contents joined by line ends, roles left out: for a tokenizer that was never taught a chat format."""

TODAY = "26 Jul 2024"
"""What templates that print a date get, so that a run gives the same ids on every day (the default of Llama 3's)."""

_UNIT = re.compile(f"{OPEN}\\d+{OPEN}|[^{OPEN}\n]*\n|[^{OPEN}\n]+")
_HOLDER = r"qz\d{5}zq"
_PAD = "\n \n"
_STRIPS: dict[str, str | None] = {_PAD: "", " \n": "\n", "": None}
"""What is left of a padding, read towards the content, and what ``str.strip`` takes to do the same."""


def set_template(tokenizer: Any, spec: str) -> Any:
    """The tokenizer with the template ``spec`` names: "auto" (its own), "plain", or a file with a Jinja template.

    Raises UsageError when there is no such file.
    """
    if spec == "auto":
        return tokenizer
    if spec != "plain" and not Path(spec).is_file():
        hint = "no such file" if "." in spec or "/" in spec else nearest(spec, ("auto", "plain"))
        raise UsageError(f"chat_template {spec!r}: expected auto, plain or a file with a Jinja template; {hint}")
    tokenizer.chat_template = PLAIN if spec == "plain" else Path(spec).read_text(encoding="utf-8")
    return tokenizer


@dataclass(frozen=True, slots=True)
class Layout:
    """A template for one sequence of roles: ``pieces[0]``, the content of message ``order[0]``, ``pieces[1]``, and so on.

    strip: for each message, what the template strips off the left and the right of its content ("": nothing, None: white
    space). closing: for each message of the assistant's, how many characters of the piece after it end its turn.
    """

    order: tuple[int, ...]
    pieces: tuple[str, ...]
    strip: tuple[tuple[str | None, str | None], ...]
    closing: tuple[int, ...]


def layout(tokenizer: Any, roles: tuple[str, ...], guard: Callable[[str], str]) -> Layout:
    """What the tokenizer's template writes for ``roles``, each piece through ``guard``.

    What ends a turn of the assistant's is what the template writes when the conversation stops there, as far as it does
    so when it goes on. Raises UsageError, naming the roles, for a template that refuses them, or that drops, repeats or
    rewrites contents.
    """
    holders = [f"qz{i:05d}zq" for i in range(len(roles))]
    bare = _render(tokenizer, roles, holders)
    order = tuple(int(holder[2:-2]) for holder in re.findall(_HOLDER, bare))
    if sorted(order) != list(range(len(roles))):
        raise UsageError(
            f"the chat template does not write each message of {_named(roles)} exactly once; choose another with "
            "model.chat_template"
        )
    pieces = tuple(map(guard, re.split(_HOLDER, bare)))
    left = _render(tokenizer, roles, [_PAD + holder for holder in holders])
    right = _render(tokenizer, roles, [holder + _PAD for holder in holders])
    strip = tuple(
        (_stripped(bare, left, h, roles), _stripped(bare[::-1], right[::-1], h[::-1], roles)) for h in holders
    )
    closing = [0] * len(roles)
    for piece, at in zip(pieces[1:], order, strict=True):
        if roles[at] == "assistant":
            until = bare if at == len(roles) - 1 else _render(tokenizer, roles[: at + 1], holders[: at + 1])
            closing[at] = _shared(guard(until.partition(holders[at])[2]), piece)
    return Layout(order, pieces, strip, tuple(closing))


def _render(tokenizer: Any, roles: Sequence[str], contents: Sequence[str]) -> str:
    messages = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=True)]
    try:
        return str(tokenizer.apply_chat_template(messages, tokenize=False, date_string=TODAY))
    except Exception as error:  # a template may run into anything
        reason = str(error).strip().partition("\n")[0][:200] or "no reason given"
        raise UsageError(
            f"the chat template cannot render the roles {_named(roles)} ({type(error).__name__}: {reason})"
        ) from None


def _stripped(bare: str, padded: str, holder: str, roles: Sequence[str]) -> str | None:
    """What the template strips off the left of one content: "" for nothing, None for white space."""
    before, after = (re.search(r"\s*$", text.partition(holder)[0]) for text in (bare, padded))
    assert before is not None
    assert after is not None
    kept = after[0].removeprefix(before[0])
    if not after[0].startswith(before[0]) or kept not in _STRIPS:
        raise UsageError(
            f"the chat template rewrites contents of {_named(roles)}; choose another with model.chat_template"
        )
    return _STRIPS[kept]


def _shared(closing: str, piece: str) -> int:
    """How much of ``piece`` is the beginning of ``closing``, in whole special tokens and lines."""
    same = 0
    for a, b in zip(_UNIT.findall(closing), _UNIT.findall(piece), strict=False):
        if a != b:
            break
        same += len(a)
    return same


def _named(roles: Sequence[str]) -> str:
    return ", ".join(roles[:12]) + (f" and {len(roles) - 12} more" if len(roles) > 12 else "")
