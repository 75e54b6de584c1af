"""Recall measured on labelled spans, as the plain numbers the theorems take (guarantees.md §3, γ and δ₂)."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.errors import DataError
from taciturn.screening.manifest import Counts
from taciturn.screening.screened import ScreenedCorpus


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
