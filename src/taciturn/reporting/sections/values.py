"""What a model may know of common values: the size of the released table, what it covers and what it costs, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.escape import escape
from taciturn.privacy.accounting.events import ThresholdedCounts
from taciturn.privacy.guarantees.guarantee import round_up
from taciturn.reporting import formats
from taciturn.reporting.finished_run import RunView


def tables(labelled: Sequence[tuple[str, RunView]]) -> list[dict[str, Any]]:
    """One entry for each run that released a table: its numbers, and sentences for whoever has to answer for it."""
    return [entry for name, run in labelled if (entry := _table(name, run))]


def _table(name: str, run: RunView) -> dict[str, Any]:
    released = {event: n for event, n in run.events.items() if isinstance(event, ThresholdedCounts)}
    if not released or run.values is None:
        return {}
    table, delta = run.values, float(run.evidence.get("delta", 1e-5))
    epsilon = compose(released, "substitution").epsilon(delta)
    few = sum(n * escape(event) for event, n in released.items())
    there = f"{formats.count(len(table.values))} values and {formats.count(len(table.shapes))} shapes of values"
    said = [
        "Before training, the words behind the masks were counted once and noise was added to every count. "
        f"{there} stand in so many records that they are in the table; they fill about "
        f"{formats.percent(table.coverage)} of the masks in the text that is trained on without noise.",
        "These values are public from now on, and so is about how often each stands in which surroundings; in which "
        "record one stands is not. A value of a single record is in the table with a chance of at most "
        f"{round_up(few, 2)}.",
        f"The table alone spends ε = {round_up(epsilon)} at δ = {delta:g} (by substitution, of a secret in one record): "
        "a part of what is certified of the run, not beside it.",
        "A filled mask is a value that was drawn, not the one that stood there: what the model says of such things is "
        "not a fact.",
    ]
    if stay := next((event.copies for event in released if event.copies), 0):
        said[-1:] = [
            "Where a private record holds such a value as a whole, and the policy does not redact it, it stays as it is in "
            f"the text that is trained on without noise. What is protected is a secret whose value stands in at most {stay} "
            "records; one that is a common value (a first name that many share) is not.",
            "Where a value does not stay, one may be drawn in its place: what the model says of such things is not a fact.",
        ]
    size = {"values": len(table.values), "shapes": len(table.shapes), "coverage": table.coverage}
    return {"run": name, **size, "words": said}
