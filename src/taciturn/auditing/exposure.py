"""Canary exposure: how far up a model ranks a planted secret among everything that could have stood there.

exposure = log2|R| − log2 rank (Carlini et al. 2019, Definition 2; CRT Definition 9), with the exact rank by negative
log-likelihood of the secret given the template's prefix. What follows the secret (suffix, end of text) is not scored.
In a random subset of R that holds the secrets the same null holds, with |R| the size of the subset.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.auditing import nulls
from taciturn.auditing.bounds import eps_lower_exposure
from taciturn.auditing.canaries import Template, draw
from taciturn.auditing.controls import positive_control
from taciturn.auditing.finding import Finding, judge
from taciturn.auditing.likelihood import candidate_scores, plain_scores
from taciturn.auditing.search import MOST_MINUTES, TIE, Notify, Search, bounded, scored, tolerance
from taciturn.auditing.trie import Ids, candidate_trie, encode_candidates
from taciturn.errors import TaciturnError, UsageError

HIT_SHARE = 1e-3
"""The ε bound counts canaries among the first |R|/1000; fixed here, before any model is seen."""

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
    """Ranks of planted secrets and of as many that were never inserted; see :func:`exposure`."""
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


def exposure(
    model: Any,
    tokenizer: Any,
    template: Template | str,
    secrets: Sequence[str],
    *,
    seed: int = 0,
    search: Search = "auto",
    candidates: int | None = None,
    most_minutes: float = MOST_MINUTES,
    notify: Notify | None = None,
) -> Finding:
    """Highest exposure of the planted ``secrets``, read against the exact null of the highest of as many unseen ones.

    template: a :class:`Template`, or its text (digits, as long as the secrets). search: how candidates are scored, see
    :func:`taciturn.auditing.search.scored`. candidates: rank in a random subset of so many. most_minutes: refuse what
    would take longer. notify: told what the work will take before it starts. Negative control: as many secrets of the
    same template that were never inserted, from the same enumeration of the same model, or from a small one of their own
    where branch and bound did not score them. Positive control: see :mod:`taciturn.auditing.controls`. No interval: the
    rank is exact for this model and these secrets.
    """
    if not secrets:
        raise UsageError("exposure: expected at least one planted secret, found none")
    if isinstance(template, str):
        template = Template(template, length=len(secrets[0]))
    found = ranked(
        model,
        tokenizer,
        template,
        secrets,
        seed=seed,
        search=search,
        candidates=candidates,
        most_minutes=most_minutes,
        notify=notify,
    )
    return judged(found)


def judged(found: Ranked) -> Finding:
    """The finding that ranks make."""
    n, size = len(found.last), found.size
    bits = math.log2(size) - np.log2(found.middle)
    control_bits = math.log2(found.control_size) - np.log2(found.control_middle)
    positive = positive_control()
    p = nulls.exposure_max_p(float(found.last.min()), n, size)
    p_mean = nulls.exposure_sum_p(found.last, size)
    problems, notes = [], []
    if positive.exposure < positive.exposure_max - 1:
        problems.append("the positive control failed: the attack misses an over-fitted model's secrets")
    if nulls.exposure_max_p(float(found.control_last.min()), n, found.control_size) < 1e-4:
        problems.append("the negative control failed: secrets never inserted rank high")
    if p >= 0.01 and p_mean < 0.01:
        notes.append("the highest exposure is unremarkable but the mean exposure is not: see p_mean")
    verdict = judge(p, problems)
    if verdict == "no leak found" and notes:
        verdict = "inconclusive"
    hit_rank = max(int(size * HIT_SHARE), 1)
    hits = int((found.last <= hit_rank).sum())
    return Finding(
        attack="exposure",
        score=float(bits.max()),
        unit_of_score="bits",
        interval=None,
        null={
            "mean": nulls.exposure_max_mean(n, size),
            "p95": nulls.exposure_max_p95(n),
            "p": p,
            "p_mean": p_mean,
            "single_mean": nulls.exposure_mean(size),
            "single_p95": nulls.exposure_max_p95(1),
        },
        controls={
            "positive": positive.exposure,
            "positive_max": positive.exposure_max,
            "negative": float(control_bits.max()),
            "negative_mean": float(control_bits.mean()),
        },
        verdict=verdict,
        detail={
            "exposures": bits.tolist(),
            "p_values": (found.last / size).tolist(),
            "control_exposures": control_bits.tolist(),
            "control_candidates": found.control_size,
            "mean": float(bits.mean()),
            "max_possible": math.log2(size),
            "candidates": size,
            "evaluations": found.evaluations,
            "search": "exact" if found.complete else "branch-and-bound",
            "hits": hits,
            "hit_rank": hit_rank,
            "eps_lower": eps_lower_exposure(hits, n, hit_rank, size),
        },
        notes=(*problems, *notes),
    )


def _check_walk(model: Any, planted: Sequence[Ids], context: int, walked: Floats) -> None:
    gap = float(np.abs(plain_scores(model, planted, context) - walked).max())
    if not gap <= tolerance(model):
        raise TaciturnError(
            f"{type(model).__name__}: log-probabilities with and without its cache differ by {gap:.2g} nats, expected "
            f"at most {tolerance(model)}; its cache cannot be trusted and no rank is reported"
        )
