"""Ordinary training on the text as it is: the unprotected baseline (CRT 4, "Non-private")."""

from __future__ import annotations

from collections.abc import Iterator

from taciturn.mechanisms.config import PublicSteps
from taciturn.privacy.accounting.events import Part
from taciturn.privacy.guarantees.claims import Phases
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.premises import SECRET
from taciturn.privacy.guarantees.status import no_guarantee
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.training.phase import Phase, epoch_steps
from taciturn.training.phase_terms import Fill, Plain
from taciturn.training.plan import Plan, Target
from taciturn.training.samplers import Shuffle

SUMMARY = "ordinary training on the original text; no protection"


class Config(PublicSteps):
    """Epochs, batch size and optimiser."""


def plan(
    screened: ScreenedCorpus,
    config: PublicSteps,
    target: Target,
    *,
    name: str = "sgd",
    reads: Part = "original",
    fill: Fill | None = None,
) -> Plan:
    """One plain phase over ``reads``."""
    records = screened.size(reads)
    sampler = Shuffle(config.batch_size)
    steps = config.epochs * epoch_steps(records, sampler)
    optimiser, packed, kept = config.optimiser.build(), config.packed, config.kept
    phase = Phase("plain", (reads,), records, sampler, Plain(), steps, optimiser, fill=fill, packed=packed, kept=kept)
    return Plan(name, (phase,), 1, target, screened.key)


def guarantees(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """Training on raw text without noise."""
    del phases
    yield no_guarantee(
        "confidentiality", SECRET, "substitution", evidence, "the text was trained on as it is, without noise"
    )
