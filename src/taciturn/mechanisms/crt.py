"""Confidentially Redacted Training (Zhao, Li, Wang 2022, Algorithm 1), and our two changes to it.

Skeletons: the noiseless phase also trains on every private record with all that π or π_c marks masked; both neighbours
have the same skeletons, so this is free (docs/guarantees.md, "Skeletons"). Order: public epochs first, then all private
steps, beside the paper's alternation; composition does not see the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from taciturn.errors import DataError, UsageError
from taciturn.mechanisms.config import PrivateSteps, PublicSteps, Strict
from taciturn.mechanisms.values import ValueTable
from taciturn.privacy.accounting.events import Part
from taciturn.privacy.guarantees.claims import Phases, merged
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.premises import PRIVATE_RECORD, RECORD
from taciturn.privacy.guarantees.statements import confidentiality, no_record_privacy, record_privacy
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.training.phase import Phase, epoch_steps
from taciturn.training.phase_terms import Fill, Plain
from taciturn.training.plan import Plan, Target
from taciturn.training.samplers import Poisson, Shuffle

SUMMARY = "plain steps on public text, DP-SGD on private records; confidentiality for every secret"


class RecordSteps(PrivateSteps):
    """targets: which tokens of a private record are learned, all or those that the conservative policy still marks in it,
    which the noiseless phase cannot teach. kept: as in the noiseless phase."""

    targets: Literal["all", "marked"] = "all"
    kept: float = Field(1.0, ge=0, le=1)


class Config(Strict):
    """public: the noiseless phase; private: the noised one. ``steps`` and ``epochs`` count the whole run. fill: what the
    noiseless phase reads where a skeleton has a mask: nothing else, or tokens of the model as it was at the start
    (public-model) or as it is (self), or values of a table that is released once with noise (learned); fill_loss: whether
    it learns what a model made up; with learned, whether the public model fills masks that the table has no value for.
    common: whether values that the table shows are filled into masks like all others, or stay where they stand; what is
    protected then is a secret whose value stands in at most ``values.protect_copies`` records (stay)."""

    fill: Literal["none", "public-model", "self", "learned"] = "none"
    fill_loss: bool = False
    common: Literal["fill", "stay"] = "fill"
    values: ValueTable = ValueTable()
    skeletons: bool = True
    schedule: Literal["public-first", "alternate"] = "public-first"
    public: PublicSteps = PublicSteps()
    private: RecordSteps = RecordSteps()

    @model_validator(mode="after")
    def _table_needs_skeletons(self) -> Self:
        if self.fill == "learned" and not self.skeletons:
            raise ValueError(
                "fill = learned puts values into skeletons; leave skeletons = true, or choose another fill"
            )
        if self.common == "stay" and self.fill != "learned":
            raise ValueError(
                "common = stay is about values that a table shows; choose fill = learned, or common = fill"
            )
        return self

    def fills(self) -> Fill | None:
        """What stands for masks in the noiseless phase."""
        if self.fill == "none":
            return None
        if self.fill == "learned":
            return self.values.fill(self.fill_loss)
        return Fill("initial" if self.fill == "public-model" else "self", self.fill_loss)


def plan(screened: ScreenedCorpus, config: Config, target: Target) -> Plan:
    """[plain phase on public text, DP-SGD phase on private records] × rounds; minibatches are never mixed."""
    stays = config.common == "stay"
    masked: Part = "common" if stays else "skeletons"
    open_text: tuple[Part, ...] = ("public", masked) if config.skeletons else ("public",)
    n_open = screened.size(*open_text)
    n_private = screened.size("private")
    if not n_private:
        raise DataError("the screened corpus has no private record: CRT has nothing to protect; check the policies")
    known = screened.manifest.originals
    if stays and not known:
        raise DataError(
            "common = stay: what stands behind masks is known from the originals, which this screened corpus did not keep; "
            "screen again with keep_originals, or choose common = fill"
        )
    table = (config.values.phase(n_private, target, known=known, stays=stays),) if config.fill == "learned" else ()
    rounds = config.public.epochs if config.schedule == "alternate" else 1
    if config.private.steps % rounds:
        raise UsageError(f"private.steps = {config.private.steps} cannot be shared by {rounds} alternating rounds")
    shuffle = Shuffle(config.public.batch_size)
    public = Phase(  # line 6
        "public",
        open_text,
        n_open,
        shuffle,
        Plain(),
        config.public.epochs * epoch_steps(n_open, shuffle) // rounds,
        config.public.optimiser.build(),
        fill=config.fills(),
        packed=config.public.packed,
        kept=config.public.kept,
    )
    private = Phase(  # line 7
        "private",
        ("private",),
        n_private,
        Poisson(config.private.sampling_rate(n_private)),
        config.private.rule(n_private, target, {phase.event: 1 for phase in table}),
        config.private.steps // rounds,
        config.private.optimiser.build(),
        targets=config.private.targets,
        kept=config.private.kept,
    )
    phases = (*table, public, private) if n_open else (private,)
    return Plan("crt", phases, rounds, target, screened.key)


def guarantees(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """Confidentially Redacted Training: noise on private records only (§3)."""
    yield from confidentiality(merged(phases), evidence, conditional=not evidence.all_private)
    unit = RECORD if evidence.all_private else PRIVATE_RECORD
    if evidence.skeletons:
        why = "the skeletons of private records are trained on without noise, so a record's presence may show"
        yield from no_record_privacy(evidence, unit, why)
    else:
        yield from record_privacy(merged(phases), evidence, unit)
