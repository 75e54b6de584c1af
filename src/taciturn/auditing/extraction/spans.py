"""Spans of personal data, as attacks take them: a value, and the text before and after it. Never shown, never written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from taciturn.errors import UsageError
from taciturn.text.spans import Detection, Span


class Finder(Protocol):
    """What tags personal data; a policy does."""

    def find(self, texts: Sequence[str]) -> list[Detection]: ...


class Annotated(Protocol):
    """A document or a record with gold spans."""

    @property
    def text(self) -> str: ...

    @property
    def gold(self) -> tuple[Span, ...]: ...


@dataclass(frozen=True, slots=True)
class Masked:
    """A span of personal data in its text."""

    before: str = field(repr=False)
    value: str = field(repr=False)
    after: str = field(repr=False)
    label: str = ""

    @property
    def key(self) -> str:
        """The value without letter case and runs of blanks: two spellings of one thing are one."""
        return " ".join(self.value.casefold().split())


def tagged(texts: Sequence[str], policy: Finder) -> list[Masked]:
    """The spans a policy finds in ``texts``."""
    return [
        Masked(text[: s.start], text[s.start : s.end], text[s.end :], s.label)
        for text, detection in zip(texts, policy.find(texts), strict=True)
        for s in detection.spans
    ]


def gold(records: Iterable[Annotated]) -> list[Masked]:
    """The annotated spans of documents or records."""
    return [
        Masked(each.text[: s.start], each.text[s.start : s.end], each.text[s.end :], s.label)
        for each in records
        for s in each.gold
    ]


def same_value(value: str, masked: Masked) -> bool:
    """Whether a candidate is the value, but for letter case and blanks."""
    return Masked("", value.strip(), "").key == masked.key


def values(members: Sequence[Masked], nonmembers: Sequence[Masked]) -> tuple[set[str], set[str]]:
    """The different values of either side that the other has not. Raises UsageError when a side has none."""
    inside, outside = {each.key for each in members}, {each.key for each in nonmembers}
    inside, outside = inside - outside, outside - inside
    if not inside or not outside:
        raise UsageError(
            "personal data: expected values in the training text and others in text never seen, found "
            f"{len(inside)} and {len(outside)}; name a policy that finds some, or annotated records"
        )
    return inside, outside


def distinct_values(members: Sequence[Masked], nonmembers: Sequence[Masked]) -> tuple[list[Masked], list[Masked]]:
    """One span of each value that only one side has."""
    inside, outside = values(members, nonmembers)
    first = [{each.key: each for each in reversed(side)} for side in (members, nonmembers)]
    return [first[0][key] for key in sorted(inside)], [first[1][key] for key in sorted(outside)]


def pooled(spans: Sequence[Masked]) -> dict[str, list[str]]:
    """Label → its different values."""
    found: dict[str, dict[str, str]] = {}
    for each in spans:
        found.setdefault(each.label, {}).setdefault(each.key, each.value)
    return {label: list(each.values()) for label, each in found.items()}


def others(masked: Masked, pool: Mapping[str, Sequence[str]], n: int, rng: np.random.Generator) -> list[str]:
    """At most ``n`` random values of the label that are not the span's own. Raises UsageError when there are none."""
    rest = [value for value in pool.get(masked.label, ()) if not same_value(value, masked)]
    if not rest or n < 1:
        raise UsageError(
            f"pii-inference: expected at least two values of the label {masked.label!r} to choose from; give a pool"
        )
    return [rest[i] for i in rng.permutation(len(rest))[:n]]
