"""Scoring the candidates of a template: all of them, or by branch and bound; measured first, refused when it takes too long.

Branch and bound drops every beginning that is already less likely than the least likely planted secret (Carlini et al.
2019, section 4.3 search for the likeliest candidate the same way). What is left ranks the secrets exactly: a memorised one
needs a few nodes, one that is not memorised needs nearly all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from taciturn.auditing.exposure.likelihood import BudgetSpent, Scores, candidate_scores, pace, plain_scores
from taciturn.auditing.exposure.trie import Ids, Trie
from taciturn.errors import UsageError, nearest

Search = Literal["auto", "exact", "branch-and-bound"]

TIE = 1e-6
"""Log-probabilities this close are one: float32 arithmetic depends on the shape of the batch."""

AGREEMENT = 5e-3
"""Largest difference, in nats, between the walk and a plain forward pass. Float32 gives 1e-5, half precision more."""

HALF_AGREEMENT = 0.1

QUICK = 120.0
"""Seconds of a full enumeration that is not worth avoiding: only it ranks secrets that were never inserted."""

TRIED = 0.1
"""Share of a full enumeration's evaluations that branch and bound may take first."""

MOST_MINUTES = 60.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """What scoring every candidate would take, from a few batches: node evaluations, and seconds on this machine."""

    candidates: int
    evaluations: int
    seconds: float

    def words(self) -> str:
        """
        >>> Estimate(1000000, 111111, 95.2).words()
        '1,000,000 candidates, 111,111 evaluations, about 1:35'
        """
        return f"{self.candidates:,} candidates, {self.evaluations:,} evaluations, about {clock(self.seconds)}"


@dataclass(frozen=True, slots=True)
class Searched:
    """scores: log p of each candidate in nats, [candidates], −∞ where it was dropped. complete: none was dropped.
    evaluations: how many nodes were read."""

    scores: Scores = field(repr=False)
    complete: bool
    evaluations: int
    estimate: Estimate


Notify = Callable[[str], None]


def scored(
    model: Any,
    trie: Trie,
    planted: Sequence[Ids],
    places: NDArray[np.int64],
    how: Search = "auto",
    most_minutes: float = MOST_MINUTES,
    notify: Notify | None = None,
) -> Searched:
    """Score the candidates, after telling ``notify`` how long that takes.

    planted: the secrets' sequences, ``trie.context`` included; places: theirs among the candidates. how: "exact" scores
    everything. "branch-and-bound" drops what is less likely than the least likely of ``planted``. "auto" scores
    everything when that is quick, else tries branch and bound on a tenth of the evaluations first; on as many as
    ``most_minutes`` allow where everything takes longer. Raises UsageError with the next steps when ``most_minutes`` are
    not enough.
    """
    if how not in get_args(Search):
        raise UsageError(f"search {how!r}: {nearest(how, get_args(Search))}")
    each = pace(model, trie)
    estimate = Estimate(trie.candidates, trie.evaluations, trie.evaluations * each)
    if notify is not None:
        notify(f"scoring all candidates: {estimate.words()}")
    affordable = estimate.seconds <= 60 * most_minutes
    if how == "exact" and not affordable:
        raise UsageError(
            f"exposure: {_above(estimate, most_minutes)}; allow more minutes, rank the secrets in a random subset "
            "(--candidates 10000), or, where they are memorised, try --search branch-and-bound"
        )
    if how != "exact" and not (how == "auto" and affordable and estimate.seconds <= QUICK):
        most = int(60 * most_minutes / each) if each else trie.evaluations
        if how == "auto" and affordable:
            most = int(TRIED * trie.evaluations)
        if notify is not None:
            notify(f"branch and bound first, on at most {min(most, trie.evaluations):,} evaluations")
        found = bounded(model, trie, planted, places, most)
        if found is not None:
            return Searched(found[0], found[1] == trie.evaluations, found[1], estimate)
        if not affordable:
            raise UsageError(
                f"exposure: {_above(estimate, most_minutes)}, and branch and bound did not end in that time, as not every "
                "canary is memorised; allow more minutes, or rank the secrets in a random subset (--candidates 10000)"
            )
    return Searched(candidate_scores(model, trie), True, trie.evaluations, estimate)


def bounded(
    model: Any, trie: Trie, planted: Sequence[Ids], places: NDArray[np.int64], most: int
) -> tuple[Scores, int] | None:
    """Scores of all candidates as likely as the least likely of ``planted``, −∞ for others, and the nodes that took; None
    when it takes more than ``most`` nodes, or when what was dropped could rank above a planted secret."""
    floor = plain_scores(model, planted, len(trie.context)).min() - tolerance(model)
    read: list[int] = []
    try:
        scores = candidate_scores(model, trie, floor, most, read.append)
    except BudgetSpent:
        return None
    return (scores, sum(read)) if scores[places].min() >= floor + TIE else None


def tolerance(model: Any) -> float:
    """How far a walk and a plain pass may lie apart, in nats."""
    return HALF_AGREEMENT if next(model.parameters()).element_size() < 4 else AGREEMENT


def clock(seconds: float) -> str:
    """
    >>> clock(3725.4), clock(59)
    ('1:02:05', '0:59')
    """
    minutes, rest = divmod(round(min(seconds, 1e15)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _above(estimate: Estimate, most_minutes: float) -> str:
    return f"{estimate.words()} on this machine, more than the {most_minutes:g} minutes allowed (--most-minutes)"
