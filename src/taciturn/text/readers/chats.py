"""Conversations and instruction pairs as people store them, into the one form of ``taciturn.text.chat``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from taciturn.text.chat import head, message_problem
from taciturn.text.read_options import CHATS, TURN_SPEAKER, TURN_TEXT, ReadOptions
from taciturn.text.readers.fields import gold_spans, kind, lookup, text_of
from taciturn.text.readers.items import BadRecord, MissingField
from taciturn.text.spans import Span

_SHAREGPT = {
    "human": "user", "gpt": "assistant", "chatgpt": "assistant", "bot": "assistant", "observation": "tool",
    "function_call": "assistant",
}  # fmt: skip
"""A call of a tool, written out as text, is something the assistant said."""
_SPEAKERS = {
    "usr": "user", "customer": "user", "client": "user", "human": "user", "seeker": "user",
    "sys": "assistant", "system": "assistant", "agent": "assistant", "bot": "assistant", "wizard": "assistant",
}  # fmt: skip
"""In a dialogue corpus the system is who answers."""

Found = tuple[str, str, object]
"""Role, content, and the annotated spans of that content."""


def conversation(value: Mapping[str, Any], options: ReadOptions) -> tuple[str, tuple[Span, ...]] | None:
    """The record text of a row and its gold spans; None when no message says anything.

    Raises BadRecord for a message that is not text, whose role is unknown, or that holds a separator.
    """
    chat, fields = options.chat_fields
    match chat:
        case "openai":
            found = _messages(_listed(value, fields[0]), ("role",), ("content",), {}, options)
        case "sharegpt":
            found = _messages(_listed(value, fields[0]), ("from", "role"), ("value", "content"), _SHAREGPT, options)
        case "turns":
            found = _messages(_listed(value, fields[0]), TURN_SPEAKER, TURN_TEXT, _SPEAKERS, options)
        case "pairs":
            found = (m for field, role in zip(fields, ("user", "assistant"), strict=True)
                     for m in _side(value, field, role, options))  # fmt: skip
        case _:
            found = _alpaca(value, fields)
    if chat in ("pairs", "alpaca") and lookup(value, options.spans)[1]:
        raise BadRecord(f"field '{options.spans}' cannot be placed: annotate the messages of a conversation instead")
    parts: list[str] = []
    gold: list[Span] = []
    at = 0
    blank = True
    for number, (role, content, spans) in enumerate(found, 1):
        if wrong := message_problem(role, content):
            raise BadRecord(f"message {number} {wrong}")
        parts += (head(role), content)
        at += len(head(role))
        gold += gold_spans(spans, content, at, f"message {number}", options.gold == "secret")
        at += len(content)
        blank = blank and (not content or content.isspace())
    return None if blank else ("".join(parts), tuple(gold))


def suggested(names: Iterable[str]) -> str | None:
    """The form of conversations that rows with these fields have, if any.

    >>> suggested({"messages", "id"}), suggested({"instruction", "output"}), suggested({"body"})
    ('openai', 'alpaca', None)
    """
    there = set(names)
    telling = {kind: set(fields) - {"input"} for kind, fields in CHATS.items()}
    return next((kind for kind, fields in telling.items() if fields <= there), None)


def _listed(value: Mapping[str, Any], field: str) -> list[Any]:
    found, messages = lookup(value, field)
    if not found:
        raise MissingField(field, value)
    if not isinstance(messages, list):
        raise BadRecord(f"field '{field}' holds {kind(messages)} where a list of messages is expected")
    return messages


def _side(value: Mapping[str, Any], field: str, role: str, options: ReadOptions) -> Iterator[Found]:
    """A prompt or a completion: a text, or a list of messages."""
    if isinstance(lookup(value, field)[1], list):
        yield from _messages(_listed(value, field), ("role",), ("content",), {}, options)
    else:
        yield role, text_of(value, field), None


def _alpaca(value: Mapping[str, Any], fields: tuple[str, ...]) -> Iterator[Found]:
    instruction, context, output = fields
    given = text_of(value, context) if lookup(value, context)[1] is not None else ""
    yield "user", "\n\n".join(part for part in (text_of(value, instruction), given) if part), None
    yield "assistant", text_of(value, output), None


def _messages(
    messages: list[Any],
    speaker: tuple[str, ...],
    content: tuple[str, ...],
    names: Mapping[str, str],
    options: ReadOptions,
) -> Iterator[Found]:
    for number, message in enumerate(messages, 1):
        if not isinstance(message, Mapping):
            raise BadRecord(f"message {number} holds {kind(message)} where an object is expected")
        for key in ("tool_calls", "function_call", "weight"):
            if message.get(key) not in (None, [], {}, 1):
                raise BadRecord(
                    f"message {number} has '{key}', which is not supported; write it out as text or remove it"
                )
        role = next((message[key] for key in speaker if key in message), None)
        if not isinstance(role, str):
            raise BadRecord(f"message {number} has no role (looked for {', '.join(speaker)})")
        text = next((message[key] for key in content if key in message), None)
        role = role.strip().lower() if names else role
        yield names.get(role, role), _text(text, number), message.get(options.spans)


def _text(content: object, number: int) -> str:
    """A content that is text, or a list of typed parts that all are."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise BadRecord(f"message {number} holds {kind(content)} where text is expected")
    texts: list[str] = []
    for part in content:
        if isinstance(part, Mapping) and part.get("type") == "text":
            part = part.get("text", part.get("value"))
        if not isinstance(part, str):
            raise BadRecord(f"message {number} has a part that is not text; only text can be screened")
        texts.append(part)
    return "".join(texts)
