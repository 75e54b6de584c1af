"""Verdicts on the orders that a paper reports, computed from the runs of the rows they compare.

"As in the paper" and "Not as in the paper" are said only where each row has three runs, Welch's 95 % interval of the
difference excludes 0 (Welch 1947; with Holm's correction for all orders of a page, Holm 1979), and the models of both rows
do better than the model they started from and than the constant predictor (of the row behind it is not asked where the
paper's own does not, and the page says so). Everything else is "Not told apart here", with
the reason.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev
from typing import Literal

from taciturn.recipes.recipe import Cell
from taciturn.reporting.formats import general

RUNS = 3
"""A row of fewer says nothing about its spread."""
ALPHA = 0.05
"""Chance that a page has any verdict although nothing differs."""
Kind = Literal["As in the paper", "Not as in the paper", "Not told apart here"]
AS, NOT_AS, UNTOLD = Kind.__args__  # type: ignore[attr-defined]
OURS = {AS: "Told apart", NOT_AS: "The other way round"}
"""What a verdict is called where the order is not a paper's."""
RULE = (
    "An order is called as or not as in the paper only where each row has three runs, Welch's 95 % interval of the "
    "difference excludes 0 after Holm's correction for all orders of the page, and the models of both rows do better than "
    "the one they started from and than the constant predictor (the largest class of the test, or the words' frequencies in "
    "the training text)."
)

ONE = (
    "Of the row behind that is not asked where the paper's own is no better than the constant predictor, which is then what "
    "the order says: {}."
)


@dataclass(frozen=True, slots=True)
class Floor:
    """What a model must beat to have learned anything. utility: perplexity of each run, or where ``higher`` accuracy.
    start: of the models before training. constant: of the best prediction that looks at no text, None if unknown."""

    utility: tuple[float, ...]
    start: tuple[float, ...] = ()
    constant: float | None = None
    higher: bool = False

    def missed(self) -> str:
        """Why these models count as having learned nothing, or "". Of several runs the 95 % interval of the mean decides,
        of few their mean."""
        sign = 1 if self.higher else -1
        bars = [*self.start, *([] if self.constant is None else [self.constant])]
        if not bars:
            return ""
        bar = sign * max(sign * each for each in bars)
        ours = [sign * each for each in self.utility]
        if all(map(math.isfinite, ours)):
            reach = mean(ours) - (_half_width(ours) if len(ours) >= RUNS else 0.0)
            if reach > sign * bar:
                return ""
        of = "the constant predictor" if bar == self.constant else "its start"
        return f"{general(mean(self.utility))} is no better than {of} at {general(bar)}"


@dataclass(frozen=True, slots=True)
class Runs:
    """A row: what is compared, of each run, and what its models must beat (None where nothing was trained)."""

    name: str
    scores: tuple[float, ...]
    floor: Floor | None = None

    @property
    def mean(self) -> float:
        return mean(self.scores)

    def scaled(self, by: float) -> Runs:
        """The same row ``by`` times as high: to say "within 10 % of" is to be ahead of 1.1 times."""
        return replace(self, name=f"{by:g} × {self.name}", scores=tuple(by * each for each in self.scores))


@dataclass(frozen=True, slots=True)
class Order:
    """The paper has ``ahead`` before ``behind``, a row or a number. says: of what and in what, the same for orders that one
    sentence holds; at: which of them this is. higher: more is ahead. both: the row behind has to have learned something too;
    not where the paper says of its own that it did not."""

    says: str
    ahead: Runs
    behind: Runs | float
    at: str = ""
    higher: bool = False
    both: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    """reason: why nothing is told apart. lost: which rows learned nothing. p: after Holm's correction, None where none
    was tested."""

    order: Order
    kind: Kind
    reason: str = ""
    lost: str = ""
    p: float | None = None


def verdicts(orders: Sequence[Order]) -> list[Verdict]:
    """One an order, in order."""
    from taciturn.auditing.comparisons import holm

    untested = {at: why for at, each in enumerate(orders) if any(why := _untested(each))}
    tested = [at for at in range(len(orders)) if at not in untested]
    adjusted = dict(zip(tested, holm([_p(orders[at]) for at in tested]), strict=True))
    found = []
    for at, each in enumerate(orders):
        if at in untested:
            found.append(Verdict(each, UNTOLD, *untested[at]))
        elif adjusted[at] >= ALPHA:
            found.append(Verdict(each, UNTOLD, "within the spread of the runs", p=adjusted[at]))
        else:
            behind = each.behind if isinstance(each.behind, float) else each.behind.mean
            found.append(Verdict(each, AS if (each.ahead.mean > behind) == each.higher else NOT_AS, p=adjusted[at]))
    return found


def sentences(orders: Sequence[Order], ours: Sequence[Order] = ()) -> list[str]:
    """The verdicts on all orders of a page in words, one sentence for those that share claim, kind and reason: the paper's,
    the rule, and ours as :func:`apart` has them. Called once a page, as the correction is for all of its orders."""
    found = verdicts([*orders, *ours])
    lines = _lines(found[: len(orders)], {})
    alone = sorted({each.says for each in orders if not each.both})
    rule = [RULE, *([ONE.format("; ".join(alone))] if alone else [])] if lines else []
    return [*lines, *rule, *_lines(found[len(orders) :], OURS)]


def apart(orders: Sequence[Order]) -> list[str]:
    """The same for orders that no paper reports: by the same rule, told apart, the other way round, or neither."""
    return _lines(verdicts(orders), OURS)


def _lines(found: Sequence[Verdict], words: Mapping[str, str]) -> list[str]:
    grouped: dict[tuple[str, Kind, str], list[Verdict]] = {}
    for each in found:
        grouped.setdefault((each.order.says, each.kind, each.reason), []).append(each)
    return [
        f"{words.get(kind, kind)}: {says}: {'; '.join(map(numbers, group))}{f' ({reason})' if reason else ''}."
        for (says, kind, reason), group in grouped.items()
    ]


def computed(holds: bool, yes: str, no: str) -> str:
    """A finding about numbers in which nothing is drawn at random, such as an ε: it holds or it does not."""
    return f"{AS}: {yes}" if holds else f"{NOT_AS}: {no}"


def merged(runs: Sequence[Mapping[str, tuple[Cell, ...]]]) -> tuple[tuple[Cell, ...], ...]:
    """Rows of a table from those of several runs: (name, cells), numbers that differ as mean ± standard deviation.

    >>> merged([{"a": (1.0, "x", None)}, {"a": (3.0, "x", None)}])
    (('a', '2.00 ± 1.41', 'x', None),)
    """
    return tuple(
        (name, *(_merged([run[name][at] for run in runs]) for at in range(len(runs[0][name])))) for name in runs[0]
    )


def _merged(cells: Sequence[Cell]) -> Cell:
    if len(set(cells)) == 1:
        return cells[0]
    if all(isinstance(each, int | float) and math.isfinite(each) for each in cells):
        numbers = [float(each) for each in cells]  # type: ignore[arg-type]
        return f"{general(mean(numbers))} ± {general(stdev(numbers))}"
    return " / ".join("–" if each is None else each if isinstance(each, str) else general(each) for each in cells)


def _untested(order: Order) -> tuple[str, str]:
    """Why an order is not tested, and which of its rows learned nothing; both "" where it is."""
    rows = [order.ahead, *([order.behind] if isinstance(order.behind, Runs) else [])]
    few = min(len(row.scores) for row in rows)
    learned = rows if order.both else rows[:1]
    lost = "; ".join(f"{row.name}: {why}" for row in learned if row.floor and (why := row.floor.missed()))
    if few < RUNS:
        return f"{'one run' if few == 1 else f'{few} runs'} a row, {RUNS} are asked for", lost
    if not all(math.isfinite(each) for row in rows for each in row.scores):
        return "a score is not finite", lost
    if lost:
        return "a row learned nothing", lost
    if all(len(set(row.scores)) == 1 for row in rows):
        return "the runs do not differ, so there is no spread to compare with", ""
    return "", ""


def _p(order: Order) -> float:
    """Two-sided, of Welch's test, or of Student's against a number."""
    from scipy import stats

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # that the runs of one of the rows do not differ
        if isinstance(order.behind, float):
            return float(stats.ttest_1samp(order.ahead.scores, order.behind).pvalue)
        return float(stats.ttest_ind(order.ahead.scores, order.behind.scores, equal_var=False).pvalue)


def _half_width(values: Sequence[float]) -> float:
    """Of Student's 95 % interval of the mean."""
    from scipy import stats

    return float(stats.t.ppf(1 - ALPHA / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))


def numbers(verdict: Verdict) -> str:
    """The two numbers, and p where there is one; before them which order it is, where one sentence holds several."""
    order = verdict.order
    behind = order.behind if isinstance(order.behind, float) else order.behind.mean
    p = "" if verdict.p is None else f", p = {verdict.p:.2g}"
    lost = f"; {verdict.lost}" if verdict.lost else ""
    both = f"{general(order.ahead.mean)} against {general(behind)}{p}{lost}"
    return f"{order.at} ({both})" if order.at else both
