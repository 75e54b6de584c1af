"""The bound that the labels so far allow: the numbers of `taciturn recall`, kept up to date record by record."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.labels import Line, counted
from taciturn.screening.measuring.judge import UNSURE, Judged, judge_records, lookup
from taciturn.screening.measuring.label_claims import up
from taciturn.screening.measuring.recall import rates
from taciturn.screening.measuring.sample import Known
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.finder import Named


@dataclass(slots=True)
class Reached:
    """Judges each line once for each state of its labels; the corpus is read once, at the start.

    Raises MismatchError when made if the lines are not of this corpus.
    """

    screened: ScreenedCorpus
    pi: Policy
    conservative: Named
    confidence: float
    _known: dict[str, Known] = field(repr=False)
    _judged: dict[str, tuple[Line, Judged]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def over(
        cls, lines: Sequence[Line], screened: ScreenedCorpus, pi: Policy, conservative: Named, confidence: float
    ) -> Reached:
        return cls(screened, pi, conservative, confidence, lookup(lines, screened))

    def __call__(self, lines: Sequence[Line]) -> dict[str, Any]:
        """Counts and bounds; ``gamma`` and ``delta2`` are None until a record with a secret was labelled."""
        with self._lock:
            judged = self._current(counted(lines))
        if not any(secret.label != UNSURE for record in judged for secret in record.secrets):
            return {"confidence": self.confidence, "records": 0, "gamma": None, "delta2": None}
        found = rates(lines, judged, self.confidence)
        return {
            "confidence": self.confidence,
            "records": found.both.records,
            "missed_by_pi": found.pi.records_missed,
            "missed_by_both": found.both.records_missed,
            "gamma": found.pi.bound,
            "delta2": found.both.bound,
            "said": {"gamma": up(found.pi.bound), "delta2": up(found.both.bound)},
        }

    def _current(self, looked: Sequence[Line]) -> list[Judged]:
        stale = [line for line in looked if line.id not in self._judged or self._judged[line.id][0] != line]
        again = judge_records(stale, self.screened, self.pi, self.conservative, self._known)
        self._judged |= {line.id: (line, record) for line, record in zip(stale, again, strict=True)}
        return [self._judged[line.id][1] for line in looked]
