"""How much computing the accountant may do: whoever verifies a file of a stranger decides that, not the file.

The unit is one evaluation of one Gaussian (a cell of a grid times a component of its mixture); a core
does some 10^8 a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from taciturn.errors import GuaranteeError


@dataclass(slots=True)
class Effort:
    """What may still be computed, and what was."""

    most: float
    spent: int = 0


_now: ContextVar[Effort | None] = ContextVar("effort", default=None)


@contextmanager
def at_most(evaluations: float) -> Iterator[Effort]:
    """Within, the accountant raises GuaranteeError rather than evaluate more than that. Caches answer for nothing."""
    effort = Effort(evaluations)
    token = _now.set(effort)
    try:
        yield effort
    finally:
        _now.reset(token)
        if (around := _now.get()) is not None:
            around.spent += effort.spent


def pay(evaluations: int) -> None:
    """Called by the accountant *before* it computes or allocates so much."""
    effort = _now.get()
    if effort is None:
        return
    check_effort(evaluations)
    effort.spent += evaluations


def check_effort(evaluations: float) -> None:
    """Raise GuaranteeError at once if so much, which is still to be paid in parts, is more than may be."""
    effort = _now.get()
    if effort is not None and effort.spent + evaluations > effort.most:
        raise GuaranteeError(
            f"this would need more than {effort.most:.0e} evaluations: the groups, units or steps that these files name are "
            "too many to compute in reasonable time; verify with --patient if you trust where they come from"
        )
