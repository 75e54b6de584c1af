"""CRT whose noised steps carry differences only: a private record's gradient minus its skeleton's (ours, not published).

Skeletons are free (docs/guarantees.md, "Skeletons"), so the part of a gradient that they already tell needs neither clip nor
noise. The noiseless half of a step draws skeletons of its own: those of the records drawn would show which were drawn, and
the amplification by sampling would be gone.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from taciturn.errors import DataError, UsageError
from taciturn.mechanisms.config import PrivateSteps, PublicSteps, Strict
from taciturn.mechanisms.corpus import residual_units
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.guarantees.claims import Phases, merged
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.premises import COVERED, NOISED, PRIVATE_RECORD, STABLE, WHOLE, alignment, spared
from taciturn.privacy.guarantees.statements import confidentiality, no_record_privacy
from taciturn.privacy.guarantees.status import with_status
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.training.phase import Phase, epoch_steps
from taciturn.training.phase_terms import Plain, Residual
from taciturn.training.plan import Plan, Target
from taciturn.training.samplers import Poisson, Shuffle
from taciturn.training.units.row_groups import Units

SUMMARY = "crt whose noise falls on what private records add to their skeletons"
ALONE = "a secret that is all the conservative policy marks, after redaction, in a record with a skeleton"


class Config(Strict):
    """public: the noiseless phase, over public text and skeletons. private: the residual steps. skeleton_batch: how many
    skeletons the noiseless half of such a step reads."""

    public: PublicSteps = PublicSteps()
    private: PrivateSteps = PrivateSteps()
    skeleton_batch: int = Field(32, ge=1)


def plan(screened: ScreenedCorpus, config: Config, target: Target) -> Plan:
    """[plain phase on public text and skeletons, residual steps on private records]."""
    n_open = screened.size("public", "skeletons")
    n_private, skeletons = screened.size("private"), screened.size("skeletons")
    if not n_private or not skeletons:
        raise DataError(
            f"the screened corpus has {n_private} private records and {skeletons} skeletons: residuals need both; check the "
            "policies, or take crt"
        )
    if config.private.clipping == "adaptive":
        raise UsageError(
            "crt_residual does not clip adaptively: a record whose residual vanishes would still be counted, and its "
            "smaller ε would not hold; choose flat, per-layer or automatic"
        )
    shuffle = Shuffle(config.public.batch_size)
    steps = config.public.epochs * epoch_steps(n_open, shuffle)
    public = Phase(
        "public", ("public", "skeletons"), n_open, shuffle, Plain(), steps, config.public.optimiser.build(),
        packed=config.public.packed, kept=config.public.kept,
    )  # fmt: skip
    private = Phase(
        "private",
        ("private", "skeletons"),
        n_private,
        Poisson(config.private.sampling_rate(n_private)),
        Residual(config.private.rule(n_private, target), config.skeleton_batch),
        config.private.steps,
        config.private.optimiser.build(),
        unit="residual",
    )
    return Plan("crt_residual", (public, private), 1, target, screened.key)


def units(screened: ScreenedCorpus, config: Config) -> dict[str, Units]:
    """Private records beside their skeletons."""
    del config
    return {"private": residual_units(screened)}


def guarantees(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """As crt, since a residual is clipped to C like a gradient; and less for a secret whose masked record is its skeleton:
    the neighbour adds nothing at all, so C instead of 2C comes between them (guarantees.md §3.5)."""
    counts = merged(phases)
    yield from confidentiality(counts, evidence, conditional=not evidence.all_private)
    profile = compose(counts, "add-remove")
    assumptions = (*NOISED, STABLE, *alignment(evidence), COVERED, WHOLE, *spared(evidence))
    yield with_status(
        "confidentiality", ALONE, "substitution", profile.epsilon(evidence.delta), evidence.delta,
        "residuals (guarantees.md §3.5)", assumptions, evidence,
        curve=profile.curve, reason=profile.reason, order_matters=True,
    )  # fmt: skip
    if size := evidence.records_per_user:  # each of them goes from a vector to nothing, as a removed record does
        yield with_status(
            "group-confidentiality", f"all such secrets of one user in at most {size} records", "substitution",
            profile.for_group(size).epsilon(evidence.delta), evidence.delta, "residuals (guarantees.md §3.5)", assumptions,
            evidence, curve=profile.for_group(size).curve, detail={"k": float(size)}, reason=profile.reason,
            order_matters=True,
        )  # fmt: skip
    why = "the skeletons of private records are trained on without noise, so a record's presence may show"
    yield from no_record_privacy(evidence, PRIVATE_RECORD, why)
