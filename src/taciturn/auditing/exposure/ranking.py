"""How far up a model ranks secrets among everything that could have stood there: exact ranks, planted and never inserted.

The rank is by negative log-likelihood of the secret given the template's prefix. What follows the secret (suffix, end of
text) is not scored. In a random subset of the candidates that holds the secrets the same null holds, with its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.auditing.canaries.templates import Template, draw
from taciturn.auditing.exposure.likelihood import candidate_scores, plain_scores
from taciturn.auditing.exposure.search import MOST_MINUTES, TIE, Notify, Search, bounded, scored, tolerance
from taciturn.auditing.exposure.trie import Ids, candidate_trie, encode_candidates
from taciturn.errors import TaciturnError, UsageError

CONTROLS = 512
"""Candidates among which secrets never inserted are ranked where branch and bound has not scored them."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Ranks of n secrets among ``size`` candidates, 1 the likeliest, each [n].

    middle: tied candidates share the mean of their ranks; last: they share the last, so that last/size is a p-value.
    control_*: of secrets never inserted, among ``control_size``. complete: every candidate was scored.
    """

    size: int
    middle: Floats
    last: Floats
    control_size: int
    control_middle: Floats
    control_last: Floats
    complete: bool
    evaluations: int

    def part(self, start: int, end: int) -> Ranked:
        """Of secrets start … end − 1 only."""
        at = slice(start, end)
        return replace(
            self,
            middle=self.middle[at],
            last=self.last[at],
            control_middle=self.control_middle[at],
            control_last=self.control_last[at],
        )


def midranks(scores: Floats, chosen: NDArray[np.int64]) -> Floats:
    """Rank of each chosen candidate, 1 the likeliest; tied candidates share the mean of their ranks.

    >>> midranks(np.array([-1.0, -3.0, -1.0, -2.0]), np.array([0, 1, 3]))
    array([1.5, 4. , 3. ])
    """
    above, tied = _above(scores, chosen)
    return np.asarray(above + (tied + 1) / 2)


def _above(scores: Floats, chosen: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """How many candidates are likelier than each chosen one, and how many as likely, itself included."""
    ascending = np.sort(scores)
    above = len(scores) - np.searchsorted(ascending, scores[chosen] + TIE, "right")
    tied = len(scores) - np.searchsorted(ascending, scores[chosen] - TIE, "left") - above
    return above.astype(float), tied.astype(float)


def ranks(model: Any, tokenizer: Any, template: Template, secrets: Sequence[str], most: int | None = 20_000) -> Floats:
    """Exact ranks of a few secrets, for checkpoints: branch and bound first, all candidates when that is no cheaper.

    Every prefix less likely than the least likely secret is dropped; a memorised secret needs a few nodes. After
    ``most`` evaluated nodes the full enumeration takes over, with the same result.
    """
    trie = candidate_trie(tokenizer, template)
    chosen = np.array([template.index(secret) for secret in secrets])
    if most is not None:
        found = bounded(model, trie, encode_candidates(tokenizer, template, secrets), chosen, most)
        if found is not None:
            return midranks(found[0], chosen)
    return midranks(candidate_scores(model, trie), chosen)


def ranked(
    model: Any,
    tokenizer: Any,
    template: Template,
    secrets: Sequence[str],
    *,
    seed: int = 0,
    search: Search = "auto",
    candidates: int | None = None,
    most_minutes: float = MOST_MINUTES,
    notify: Notify | None = None,
) -> Ranked:
    """Ranks of planted secrets and of as many that were never inserted; see :mod:`taciturn.auditing.exposure.exposure`."""
    n = len(secrets)
    if candidates is not None and candidates < template.size:
        if candidates < 4 * n:
            raise UsageError(f"exposure: expected at least {4 * n} candidates for {n} canaries, found {candidates}")
        others = draw(template, candidates - n, seed, without=secrets)
        pool = [template.index(secret) for secret in (*secrets, *others)]
        places, control = np.arange(n), np.arange(n, 2 * n)
    else:
        pool, others = None, []
        places = control = np.zeros(0, np.int64)
    trie = candidate_trie(tokenizer, template, pool)
    if pool is None:
        others = draw(template, n, seed, without=secrets)
        places, control = (np.array([template.index(s) for s in some]) for some in (secrets, others))
    planted = encode_candidates(tokenizer, template, secrets)
    found = scored(model, trie, planted, places, search, most_minutes, notify)
    few = np.arange(min(n, 3))
    _check_walk(model, [planted[i] for i in few], len(trie.context), found.scores[places[few]])
    above, tied = _above(found.scores, places)
    rest, size = found.scores, trie.candidates
    if not found.complete:
        size = min(CONTROLS * max(1, n // 16), template.size - n)
        some = draw(template, size, seed, without=secrets)
        rest = candidate_scores(model, candidate_trie(tokenizer, template, [template.index(s) for s in some]))
        control = np.arange(n)
    control_above, control_tied = _above(rest, control)
    return Ranked(
        size=trie.candidates,
        middle=above + (tied + 1) / 2,
        last=above + tied,
        control_size=size,
        control_middle=control_above + (control_tied + 1) / 2,
        control_last=control_above + control_tied,
        complete=found.complete,
        evaluations=found.evaluations,
    )


def _check_walk(model: Any, planted: Sequence[Ids], context: int, walked: Floats) -> None:
    gap = float(np.abs(plain_scores(model, planted, context) - walked).max())
    if not gap <= tolerance(model):
        raise TaciturnError(
            f"{type(model).__name__}: log-probabilities with and without its cache differ by {gap:.2g} nats, expected "
            f"at most {tolerance(model)}; its cache cannot be trusted and no rank is reported"
        )
