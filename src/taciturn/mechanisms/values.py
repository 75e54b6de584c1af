"""Learned values: a table of what is common behind masks, released once with noise (docs/guarantees.md §3.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from taciturn.mechanisms.config import Strict
from taciturn.mechanisms.corpus import labels_of, task_of, texts_of
from taciturn.mechanisms.refusals import DEFAULT_DELTA
from taciturn.privacy.accounting.escape import threshold
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import Counts, Fill
from taciturn.training.plan import Plan, Target
from taciturn.training.samplers import Poisson
from taciturn.training.schedules import Optimiser

if TYPE_CHECKING:
    from taciturn.training.values.fill import Filler
    from taciturn.training.values.slots import Slots

PHASE = "values"
SHARE = 8
"""Of δ that what the table shows of few records may take, one in so many."""


class ValueTable(Strict):
    """mu: μ of the table alone, a Gaussian mechanism for one record that becomes another with the same skeleton.
    protect_copies: a value that only so many records hold is shown with a chance of at most ``delta``, an eighth of the
    target's by default. record_weight: how many values of a record count in full; of more each counts less. candidates:
    values of the table that the public model chooses from, for each mask."""

    mu: float = Field(0.5, gt=0)
    protect_copies: int = Field(10, ge=1, le=1000)
    delta: float | None = Field(None, gt=0, lt=1)
    record_weight: float = Field(2.0, ge=1, le=1000)
    candidates: int = Field(6, ge=1, le=64)

    def phase(self, records: int, target: Target) -> Phase:
        """The release, over all private records."""
        rule = Counts(1 / self.mu, 1.0, self.record_weight)
        delta = self.delta or (target.delta or DEFAULT_DELTA) / SHARE
        rule = replace(rule, threshold=threshold(rule.release, self.protect_copies, delta))
        return Phase(PHASE, ("private",), records, Poisson(1.0), rule, 1, Optimiser(lr=1.0), once=True)

    def fill(self, loss: bool) -> Fill:
        """What puts the table into masks. loss: whether the public model fills the others, as targets; else they stay."""
        return Fill("initial", loss, longest=3 if loss else 0, table=PHASE, candidates=self.candidates)


def slots_of(screened: ScreenedCorpus) -> Slots:
    """What stands behind the masks of the private records' skeletons."""
    from taciturn.training.values.contexts import Contexts
    from taciturn.training.values.slots import Slots

    columns = (screened.table[name].to_pylist() for name in ("part", "redacted", "skeleton"))
    pairs = ((text, skeleton) for part, text, skeleton in zip(*columns, strict=True) if part == "private")
    return Slots.of(pairs, Contexts.of(screened.texts("skeletons")))


def filler_of(tokenizer: Any, plan: Plan, phase: Phase, screened: ScreenedCorpus, limit: int) -> Filler:
    """What fills the masks of a phase."""
    from taciturn.models.tasks import encode_task
    from taciturn.training.values.fill import Filler

    labels = labels_of(phase, screened)

    def encode(rows: Sequence[int], texts: Sequence[str]) -> Any:
        return encode_task(tokenizer, texts, limit, labels=[labels[row] for row in rows], **task_of(plan))

    return Filler(texts_of(phase, screened), encode, tokenizer)
