"""What the fields of somebody's rows are likely to be: texts, users, labels, ids, conversations; names, never a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from taciturn.text.read_options import TURN_TEXT

TEXT_NAMES = (
    "text", "body", "content", "message", "utterance", "transcript", "note", "description", "comment", "review",
)  # fmt: skip
USER_NAMES = (
    "user", "user_id", "userid", "username", "author", "author_id", "sender", "from", "customer", "customer_id", "client",
    "client_id", "patient", "patient_id", "person", "employee", "account", "account_id", "email", "owner", "speaker",
    "customer_email", "customer_name", "user_email", "user_name", "sender_email", "sender_id", "from_email", "email_address",
    "contact", "contact_id", "member", "member_id", "subscriber", "requester", "requester_id", "agent", "agent_id",
    "agent_name", "operator",
)  # fmt: skip
ID_NAMES = ("id", "uuid", "guid", "document_id", "message_id", "ticket_id", "dialogue_id")
LABEL_NAMES = ("label", "labels", "category", "class", "intent", "topic", "sentiment")
_NAME = re.compile(r"[A-Za-z_][\w.\- ]{0,40}")


@dataclass(slots=True)
class Field:
    """What rows hold under a (dotted) name. rows: that have it; kinds: of JSON values; values: of short ones, to count."""

    rows: int = 0
    kinds: set[str] = field(default_factory=set)
    characters: int = 0
    words: int = 0
    values: set[Any] = field(default_factory=set, repr=False)

    def add(self, value: Any) -> None:
        self.rows += 1
        if isinstance(value, str):
            self.kinds.add("text")
            self.characters += len(value)
            self.words += len(value.split())
            self.values.add(value[:80])
        elif isinstance(value, bool) or value is None or not isinstance(value, int):
            self.kinds.add("list" if isinstance(value, list) else "other")
        else:
            self.kinds.add("whole number")
            self.values.add(value)


def flat(value: Any, before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(dotted name, value) of an object and the objects in it."""
    if not isinstance(value, Mapping):
        return
    for name, each in value.items():
        path = f"{before}{name}"
        if isinstance(each, Mapping) and depth < 2:
            yield from flat(each, f"{path}.", depth + 1)
        else:
            yield path, each


def repeating(fields: Mapping[str, Field], n: int, others: Set[str]) -> Iterator[str]:
    """Fields that nearly every row has a short value under, of which there are many, and each comes more than once or twice:
    as people do. The most values first."""
    likely = {
        name: each
        for name, each in fields.items()
        if name not in others
        and _NAME.fullmatch(name)
        and each.rows >= 0.9 * n
        and each.kinds <= {"text", "whole number"}
        and each.words <= 3 * each.rows
        and 5 <= len(each.values) <= 0.6 * n
    }
    yield from sorted(likely, key=lambda name: (-len(likely[name].values), name))


def annotated_spans(rows: Sequence[Any]) -> tuple[int, int]:
    """Annotated spans of whole rows, and of their turns or messages, under the names that reading takes them from."""
    whole = inside = 0
    for row in rows:
        if not isinstance(row, Mapping):
            continue
        whole += _length(row.get("spans"))
        for name in ("turns", "messages", "conversations"):
            said = row.get(name)
            for each in said if isinstance(said, list) else ():
                inside += _length(each.get("spans")) if isinstance(each, Mapping) else 0
    return whole, inside


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0


def text_fields(fields: Mapping[str, Field], n: int) -> Iterator[str]:
    """Fields that most rows have, with three words and more on average; usual names first, then the longest."""
    likely = {
        name: each
        for name, each in fields.items()
        if each.kinds == {"text"} and each.rows >= 0.5 * n and each.words >= 3 * each.rows and _NAME.fullmatch(name)
    }

    def rank(name: str) -> tuple[int, float]:
        last = name.rpartition(".")[2].lower()
        return (TEXT_NAMES.index(last) if last in TEXT_NAMES else len(TEXT_NAMES), -likely[name].characters)

    yield from sorted(likely, key=rank)


def usual_field(fields: Mapping[str, Field], wanted: Sequence[str], n: int, fits: Any) -> str | None:
    """The first of the usual names that nearly every row has a short value under."""
    for last in wanted:
        for name, each in fields.items():
            usual = name.rpartition(".")[2].lower() == last and _NAME.fullmatch(name)
            if usual and each.rows >= 0.9 * n and each.values and not each.kinds & {"list", "other"} and fits(each):
                return name
    return None


def conversations(rows: Sequence[Any]) -> str | None:
    """The form of conversations, if most rows have it."""

    def listed(row: Any, name: str, *keys: str) -> bool:
        value = row.get(name) if isinstance(row, Mapping) else None
        first = value[0] if isinstance(value, list) and value else None
        return isinstance(first, Mapping) and all(key in first for key in keys)

    def texts(row: Any, *keys: str) -> bool:
        return isinstance(row, Mapping) and all(isinstance(row.get(key), str) for key in keys)

    forms = {
        "openai": lambda row: listed(row, "messages", "role", "content"),
        "sharegpt": lambda row: listed(row, "conversations", "from", "value"),
        "alpaca": lambda row: texts(row, "instruction", "output"),
        "pairs": lambda row: texts(row, "prompt", "completion"),
    }
    for name, has in forms.items():
        if rows and sum(map(has, rows)) >= 0.9 * len(rows):
            return name
    return None


def text_of(row: Any, name: str | None) -> str:
    """What the language is told from: the text field, or all texts of a conversation."""
    if name is not None:
        return " ".join(each for key, each in flat(row) if key == name and isinstance(each, str))
    return " ".join(_strings(row))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        content = [each for key, each in value.items() if key in TURN_TEXT or isinstance(each, list)]
        for each in content or value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
