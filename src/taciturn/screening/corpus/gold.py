"""Labelled secrets by label, and which of them no finite ε covers with skeletons and without (guarantees.md §3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from taciturn.screening.rows import Outcome, Row
from taciturn.text.spans import CANARY

LONGEST = 40
"""Code points of a label that are kept: it is the name of a kind, and no text."""


class Gold(BaseModel):
    """Labelled secrets with one label. missed_by_pi: not detected. with_skeletons: missed by both policies where private
    records are trained on as skeletons, too: in a public record, or in one whose skeleton is another without the secret.
    without_skeletons: in a public record.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str = Field(max_length=LONGEST)
    spans: int
    missed_by_pi: int
    with_skeletons: int
    without_skeletons: int


def count_gold(rows: Iterable[Row]) -> Counter[str]:
    """How often each thing happened to each label, as ``what:label``; canaries are left out."""
    tally: Counter[str] = Counter()
    for row in rows:
        for each in row.gold:
            if each.label != CANARY:
                label = each.label[:LONGEST]
                tally[f"spans:{label}"] += 1
                for what, happened in _happened(each).items():
                    tally[f"{what}:{label}"] += happened
    return tally


def by_label(tally: Mapping[str, int]) -> tuple[Gold, ...]:
    """Counts of ``count_gold``, added up, the most frequent label first."""
    whats = [name for name in Gold.model_fields if name != "label"]
    labels = {key.removeprefix("spans:") for key in tally if key.startswith("spans:")}
    made = [Gold(label=label, **{what: tally.get(f"{what}:{label}", 0) for what in whats}) for label in labels]
    return tuple(sorted(made, key=lambda each: (-each.spans, each.label)))


def together(gold: Iterable[Gold]) -> Gold:
    """All labels as one, which is called "all"."""
    sums: Counter[str] = Counter()
    for each in gold:
        sums.update(each.model_dump(exclude={"label"}))
    return Gold(label="all", **{name: sums[name] for name in Gold.model_fields if name != "label"})


def missed(row: Row) -> list[dict[str, Any]]:
    """What is missed with skeletons of a record, with its text, and whether it would be without them, too. For a file that
    only its owner reads."""
    return [
        {
            "id": row.record.id,
            "label": each.label,
            "start": each.start,
            "end": each.end,
            "text": row.body[each.start : each.end],
            "without_skeletons": each.public,
        }
        for each in row.gold
        if each.label != CANARY and (each.public or each.changes)
    ]


def _happened(each: Outcome) -> dict[str, bool]:
    return {
        "missed_by_pi": each.missed_by_pi,
        "with_skeletons": each.public or each.changes,
        "without_skeletons": each.public,
    }
