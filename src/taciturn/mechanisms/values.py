"""Learned values: a table of what is common behind masks, released once with noise (docs/guarantees.md §3.7)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from taciturn.errors import UsageError
from taciturn.mechanisms.config import PublicSteps, Strict, existing
from taciturn.mechanisms.corpus import labels_of, task_of, texts_of
from taciturn.mechanisms.refusals import DEFAULT_DELTA
from taciturn.privacy.accounting.calibrate import noise_multiplier
from taciturn.privacy.accounting.escape import threshold
from taciturn.privacy.accounting.events import Part
from taciturn.privacy.certificates.exported_model import VALUES
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.text.document import MASK
from taciturn.text.readers import read
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import Counts, Fill
from taciturn.training.plan import Plan, Target
from taciturn.training.samplers import Poisson
from taciturn.training.schedules import Optimiser

if TYPE_CHECKING:
    from taciturn.training.values.fill import Filler
    from taciturn.training.values.slots import Slots

PHASE = "values"
MU = 0.5
SHARE = 8
"""Of δ that what the table shows of few records may take, one in so many."""


class ValueTable(Strict):
    """mu: μ of the table alone, a Gaussian mechanism for one record that becomes another with the same skeleton; by default
    ``MU``, or less where that would take more than two thirds of the target's ε.
    protect_copies: a value that only so many records hold is shown with a chance of at most ``delta``, an eighth of the
    target's by default. record_weight: how many values of a record count in full; of more each counts less. candidates:
    values of the table that the public model chooses from, for each mask; 1 asks no model, and costs no time. public: files
    of public values, one a line (a catalogue, places), of which shapes are made instead of built-in names: none that was
    made from the corpus. It unmasks nothing, and what stands in it is protected like all else."""

    mu: float | None = Field(None, gt=0)
    protect_copies: int = Field(10, ge=1, le=1000)
    delta: float | None = Field(None, gt=0, lt=1)
    record_weight: float = Field(2.0, ge=1, le=1000)
    candidates: int = Field(1, ge=1, le=64)
    public: tuple[Path, ...] = ()

    def phase(
        self, records: int, target: Target, reads: Part = "private", known: bool = False, stays: bool = False
    ) -> Phase:
        """The release, over all records of ``reads``. known: screening has noted what stands behind each mask
        (``ScreenedCorpus.behind``). stays: values that it shows are left standing where they are."""
        copies = self.protect_copies if stays else 0
        rule = Counts(1 / (self.mu or _share(target)), 1.0, self.record_weight, one_sided=known, copies=copies)
        delta = self.delta or (target.delta or DEFAULT_DELTA) / SHARE
        rule = replace(rule, threshold=threshold(rule.release, self.protect_copies, delta))
        return Phase(PHASE, (reads,), records, Poisson(1.0), rule, 1, Optimiser(lr=1.0), once=True)

    def fill(self, loss: bool) -> Fill:
        """What puts the table into masks. loss: whether the public model fills the others, as targets; else they stay."""
        digest = hashlib.blake2b(repr(known).encode(), digest_size=16).hexdigest() if (known := self.known()) else None
        return Fill("initial", loss, longest=3 if loss else 0, table=PHASE, candidates=self.candidates, known=digest)

    def known(self) -> tuple[str, ...]:
        """The public values, in the order of the files."""
        lines = [existing(path, "file of public values").read_text("utf-8-sig").splitlines() for path in self.public]
        return tuple(line.strip() for each in lines for line in each if line.strip())


def _share(target: Target) -> float:
    """μ of a table that leaves something for the steps beside it; a function of the target alone."""
    if target.epsilon is None or target.delta is None:
        return MU
    sigma = noise_multiplier(2 / 3 * target.epsilon, target.delta, 1.0, 1, "substitution")
    return min(MU, 2 / sigma)  # by substitution means lie 2 apart, noise is σ


class FilledSteps(PublicSteps):
    """fill: what stands for masks: nothing else, or values of a table that is released once with noise, and where that has
    none, with fill_loss, tokens of the public model."""

    fill: Literal["none", "learned"] = "none"
    fill_loss: bool = False
    values: ValueTable = ValueTable()

    def table(self, records: int, target: Target) -> tuple[Phase, ...]:
        """The release over all originals, where there is to be one."""
        return (self.values.phase(records, target, "original"),) if self.fill == "learned" else ()

    def fills(self) -> Fill | None:
        return self.values.fill(self.fill_loss) if self.fill == "learned" else None


def public_values(options: Any, screened: ScreenedCorpus) -> tuple[str, ...]:
    """The public values that a mechanism's options name. Raises UsageError where a file of them is one of those that the
    corpus was screened from: what is made from private text is not public."""
    steps = options if hasattr(options, "values") else getattr(options, "redacted", None)
    if not isinstance(table := getattr(steps, "values", None), ValueTable) or not table.public:
        return ()
    own = {each.digest for each in screened.manifest.inputs}
    for name, digest in read(*map(str, table.public), format="lines").digests().items():
        if digest in own:
            raise UsageError(f"values.public: the corpus was screened from {name}, so it is private; name public text")
    return table.known()


def slots_of(plan: Plan, phase: Phase, screened: ScreenedCorpus) -> Slots:
    """What stands in the records of a phase behind the masks of the text that its table is to fill: of private records
    behind those of skeletons; of originals behind those, or those of redacted text, whichever is trained on."""
    from taciturn.training.values.contexts import Contexts
    from taciturn.training.values.slots import Slots

    filled = next(each for each in plan.phases if each.fill is not None and each.fill.table == phase.name)
    column = "redacted" if "redacted" in filled.reads else "skeleton"
    masked: list[str | None] = screened.table[column].to_pylist()
    if phase.reads == ("original",):
        full, counted = screened.texts("original"), [True] * len(masked)
    else:
        full = screened.table["redacted"].to_pylist()
        counted = [part == "private" for part in screened.table["part"].to_pylist()]
    users = screened.table["user"].to_pylist()
    contexts = Contexts.of(text for text in masked if text is not None)
    here = [row for row, counts in enumerate(counted) if counts]
    pairs, owners = [(full[row], masked[row]) for row in here], [users[row] for row in here]
    assert isinstance(phase.rule, Counts)
    if not phase.rule.one_sided:
        return Slots.of(pairs, contexts, owners)
    known = iter(screened.behind())
    return Slots.of(pairs, contexts, owners, [[] if masked[row] is None else next(known) for row in here])


def standing(screened: ScreenedCorpus, folder: Path) -> list[list[str]]:
    """Of each skeleton, the values that the steps without noise of the run in ``folder`` read where they stand."""
    from taciturn.training.values.table import Table

    table = Table.from_bytes((folder / VALUES).read_bytes())
    return [[value for value in there if value is not None and table.shows(value)] for there in screened.standing()]


def filler_of(
    tokenizer: Any, plan: Plan, phase: Phase, screened: ScreenedCorpus, limit: int, known: Sequence[str] = ()
) -> Filler:
    """What fills the masks of a phase. known: public values that shapes are made of."""
    from taciturn.models.tasks import encode_task
    from taciturn.training.values.fill import Filler
    from taciturn.training.values.shapes import by_shape

    masked, labels, task = texts_of(phase, screened), labels_of(phase, screened), task_of(plan)
    labelled = task["task"] in ("classify", "prompt")

    def encode(rows: Sequence[int], texts: Sequence[str]) -> Any:
        if labelled:  # what was a mask and nothing else has no label, whatever stands in it now
            texts = [MASK if masked[row] == MASK else text for row, text in zip(rows, texts, strict=True)]
        return encode_task(tokenizer, texts, limit, labels=[labels[row] for row in rows], **task)

    behind = screened.standing() if "common" in phase.reads else ()
    return Filler(masked, encode, tokenizer, by_shape(known), behind)
