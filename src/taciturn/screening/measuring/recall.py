"""Recall measured on labelled secrets, as the plain numbers the theorems take (guarantees.md §3, γ and δ₂).

Two units. A *secret* is a labelled span; its bounds take the secrets as drawn independently, which the secrets of one record
are not. A *record* is a sampled record that holds a secret, and is missed if one of its secrets is; its bounds need only the
random sample, and hold for a secret chosen in any way within a record drawn at random. Claims use records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from taciturn.errors import DataError
from taciturn.exact_bounds import finite_upper, upper
from taciturn.screening.bounds import Stratum, ratio_upper
from taciturn.screening.corpus.manifest import Counts
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.labels import SIMPLE, Line
from taciturn.screening.measuring.judge import UNSURE, Judged, Secret


@dataclass(frozen=True, slots=True)
class Recall:
    """labelled: spans. missed_by_pi: not detected (γ's numerator). missed_by_both: covered by no finite ε (δ₂'s).

    missed_by_both <= missed_by_pi <= labelled. The rates are shares of this sample; a guarantee uses their upper
    confidence bounds, and those assume that the labelled spans are a random sample of the secrets.
    """

    labelled: int
    missed_by_pi: int
    missed_by_both: int

    @property
    def miss_rate(self) -> float:
        """γ of the sample."""
        return self.missed_by_pi / self.labelled

    @property
    def miss_rate_both(self) -> float:
        """δ₂ of the sample."""
        return self.missed_by_both / self.labelled


def measure(screened: ScreenedCorpus | Counts) -> Recall:
    """Recall on the labelled spans that came with the corpus. Raises DataError if there were none."""
    counts = screened if isinstance(screened, Counts) else screened.counts
    if not counts.gold_spans:
        raise DataError(
            "no labelled spans in this corpus: nothing to measure recall on; name the field that holds them (spans=...)"
        )
    return Recall(counts.gold_spans, counts.gold_missed_by_pi, counts.gold_missed_by_both)


NOT_DRAWN = "not drawn"
"""Strata that a sample smaller than their number left out: anything may be in them."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Misses among labelled secrets, and among labelled records that hold one, with one-sided upper bounds.

    A secret of the kind "unsure" counts only if it is missed: whatever it truly is, the bound is no smaller.
    share: of the secrets, by weight where the sample is stratified. bound: of records (``finite_upper``, with every record
    nobody looked at as one that may hold a secret, or ``ratio_upper`` for a stratified sample). secret_bound: of secrets
    taken as independent, how many the corpus holds being unknown; None for a stratified sample.
    """

    secrets: int
    missed: int
    records: int
    records_missed: int
    share: float
    bound: float
    secret_bound: float | None


@dataclass(frozen=True, slots=True)
class Rates:
    """pi: γ, secrets that π misses. both: δ₂, secrets that no finite ε covers."""

    pi: Rate
    both: Rate


def rates(
    lines: Sequence[Line],
    judged: Sequence[Judged],
    confidence: float = 0.95,
    chosen: Callable[[Secret], bool] = lambda _: True,
) -> Rates:
    """Miss rates of the ``chosen`` secrets. lines: the whole sample, for the sizes of its strata."""
    sizes = {line.stratum: line.stratum_records for line in lines}
    if unseen := lines[0].records - sum(sizes.values()):
        sizes[NOT_DRAWN] = unseen
    return Rates(
        _rate(sizes, judged, confidence, chosen, lambda s: s.missed_by_pi),
        _rate(sizes, judged, confidence, chosen, lambda s: s.missed_by_both),
    )


def _rate(
    sizes: dict[str, int],
    judged: Sequence[Judged],
    confidence: float,
    chosen: Callable[[Secret], bool],
    missed: Callable[[Secret], bool],
) -> Rate:
    looked: Counter[str] = Counter(record.stratum for record in judged)
    held: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    secrets, misses = 0, 0
    weighed, weighed_misses = 0.0, 0.0
    for record in judged:
        here = [s for s in record.secrets if chosen(s) and (s.label != UNSURE or missed(s))]
        gone = sum(map(missed, here))
        weight = sizes[record.stratum] / looked[record.stratum]
        secrets, misses = secrets + len(here), misses + gone
        weighed, weighed_misses = weighed + weight * len(here), weighed_misses + weight * gone
        held[record.stratum] += bool(here)
        lost[record.stratum] += gone > 0
    records, records_missed = held.total(), lost.total()
    if stratified(sizes):
        base = [Stratum(size, looked[name], held[name]) for name, size in sizes.items()]
        hits = [Stratum(size, looked[name], lost[name]) for name, size in sizes.items()]
        bound, secret_bound = ratio_upper(hits, base, confidence, _expected(looked)), None
    else:
        unseen = sum(sizes.values()) - looked.total()
        bound = finite_upper(records_missed, records, unseen + records, confidence)
        secret_bound = upper(misses, secrets, confidence) if unseen or not secrets else misses / secrets
    share = weighed_misses / weighed if weighed else 0.0
    return Rate(secrets, misses, records, records_missed, share, bound, secret_bound)


def _expected(looked: Mapping[str, int]) -> float:
    """About how many of the records looked at hold a secret, guessed from what is known before any is: those that π marks,
    and a quarter more."""
    return max(1.25 * sum(n for name, n in looked.items() if name.startswith("π,")), 0.05 * sum(looked.values()))


def stratified(strata: Iterable[str]) -> bool:
    """Whether a sample over these strata is a stratified one."""
    return set(strata) != {SIMPLE}


def private_share(lines: Sequence[Line], judged: Sequence[Judged]) -> float:
    """Estimated share of the population that would be private."""
    sizes = {line.stratum: line.stratum_records for line in lines}
    looked = Counter(record.stratum for record in judged)
    weights = [sizes[record.stratum] / looked[record.stratum] for record in judged]
    total = sum(weights)
    return sum(w for w, record in zip(weights, judged, strict=True) if record.private) / total if total else 0.0


def groups(judged: Sequence[Judged], key: Callable[[Secret], str]) -> list[str]:
    """Kinds (or casings) that occur, most frequent first."""
    seen = Counter(key(s) for record in judged for s in record.secrets)
    return [name for name, _ in sorted(seen.items(), key=lambda item: (-item[1], item[0]))]
