"""Just Fine-tune Twice (Shi et al. 2022): redacted text first, then the originals with noise (guarantees.md §4.1).

The first phase is noiseless, or lightly noised where what the policy misses is to cost less than everything. Both phases
are record-aligned: every record is trained on by itself, never packed with others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from taciturn.errors import UsageError
from taciturn.mechanisms.config import NOTHING, PrivateSteps, Strict, existing
from taciturn.mechanisms.corpus import rows_with_ids, share_of
from taciturn.mechanisms.values import FilledSteps
from taciturn.privacy.accounting.accountant import Profile, accountant_name, compose
from taciturn.privacy.accounting.averaged_curves import averaged_curve
from taciturn.privacy.accounting.events import Event, NonPrivate, Part, PoissonGaussian
from taciturn.privacy.accounting.tradeoff import Curve
from taciturn.privacy.guarantees.claims import Phases, added, merged
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Assumption, Guarantee
from taciturn.privacy.guarantees.premises import (
    COVERED,
    DETECTED,
    DRAWN_SECRET,
    GROUP,
    MISSED,
    NOISED,
    RECORD,
    STABLE,
    WHOLE,
    alignment,
    bounds_fail,
    labelled_sample,
    spared,
    table,
)
from taciturn.privacy.guarantees.statements import (
    Counts,
    grouped,
    miss_rates,
    named_groups,
    no_record_privacy,
    record_privacy,
)
from taciturn.privacy.guarantees.status import faults, no_guarantee, with_status
from taciturn.privacy.guarantees.theorems import averaged, recall_bound
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.training.phase import Phase, epoch_steps
from taciturn.training.phase_terms import Plain
from taciturn.training.plan import Plan, Target
from taciturn.training.samplers import Poisson, Shuffle

SUMMARY = "fine-tune on redacted text, then privately on the originals; selective privacy"


SCREENED = "a secret drawn at random from those in the hand-screened records"
FIRST = "redacted"
"""Name of the first phase."""


class Screened(Strict):
    """The records that a person looked through before the first phase (JFT 3.1, selective manual screening). ids: a file
    with their ids, one a line. checked, missed: of the secrets that somebody looked for in them a second time, how many
    there were, and how many of these the first look had left (they bound what is left now)."""

    ids: Path
    checked: int = Field(0, ge=0)
    missed: int = Field(0, ge=0)


class Config(Strict):
    """redacted: the first phase (JFT 3.1, direct usage). light: noised instead (lightly-noised fine-tuning); it states its
    own noise_multiplier, and so does ``private`` then, as one target cannot be shared out. screened: the first phase reads
    these records alone. start: skeletons: the first phase reads, for every private record, the skeleton, in which what
    either policy marks is masked. share: of the records, for both phases (low-resource, JFT A.4). private: the second."""

    redacted: FilledSteps = FilledSteps()
    light: PrivateSteps | None = None
    screened: Screened | None = None
    start: Literal["redacted", "skeletons"] = "redacted"
    share: float = Field(1.0, gt=0, le=1)
    private: PrivateSteps = PrivateSteps(clip=0.1)

    @model_validator(mode="after")
    def _one_first_phase(self) -> Self:
        chosen = [self.light is not None, self.screened is not None, self.start == "skeletons"]
        if sum(chosen) > 1:
            raise ValueError("choose one of light, screened and start = skeletons for the first phase")
        if self.redacted.fill == "learned" and (self.light is not None or self.screened is not None or self.share < 1):
            raise ValueError(
                "redacted.fill = learned goes with neither light, screened nor share: it is about all records"
            )
        return self


def plan(screened: ScreenedCorpus, config: Config, target: Target) -> Plan:
    """[redacted text, plainly or lightly noised; originals with DP-SGD]."""
    everything = screened.size("redacted")
    rows = share_of(everything, config.share)
    records = everything if rows is None else len(rows)
    released = config.redacted.table(records, target)
    beside = {each.event: 1 for each in released}
    second = _noised("private", "original", records, rows, config.private, target, beside)
    if config.light is not None:
        if config.light.noise_multiplier is None or config.private.noise_multiplier is None:
            raise UsageError(
                "jft with a lightly noised first phase: set light.noise_multiplier and private.noise_multiplier; one "
                "target ε cannot be shared between two phases"
            )
        first = _noised(FIRST, "redacted", records, rows, config.light, target)
        return Plan("jft", (first, second), 1, target, screened.key)
    reads: tuple[Part, ...] = ("redacted",)
    if config.screened is not None:
        ids = existing(config.screened.ids, "file of record ids").read_text("utf-8").split("\n")
        rows = rows_with_ids(screened, [each for each in ids if each])
    elif config.start == "skeletons":
        reads = ("public", "skeletons")
        rows = share_of(screened.size(*reads), config.share)
    count = screened.size(*reads) if rows is None else len(rows)
    steps = config.redacted
    shuffle = Shuffle(steps.batch_size)
    number = steps.epochs * epoch_steps(count, shuffle)
    optimiser = steps.optimiser.build()
    first = Phase(
        FIRST, reads, count, shuffle, Plain(), number, optimiser,
        rows=rows, fill=steps.fills(), packed=steps.packed, kept=steps.kept,
    )  # fmt: skip
    # The target is about a secret that the policy detects: redacted text is then the same in both worlds.
    return Plan("jft", (*released, first, second), 1, target, screened.key, free=("redacted",))


def _noised(
    name: str,
    part: Part,
    records: int,
    rows: tuple[int, ...] | None,
    steps: PrivateSteps,
    target: Target,
    beside: Mapping[Event, int] = NOTHING,
) -> Phase:
    sampler, rule = Poisson(steps.sampling_rate(records)), steps.rule(records, target, beside)
    return Phase(name, (part,), records, sampler, rule, steps.steps, steps.optimiser.build(), rows=rows)


def guarantees(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """(a) what both phases cost a secret that was missed, (b) averaged over the miss, (c) as published (§4.1)."""
    first, second = (
        phases.get(FIRST, {}),
        {e: n for name, counts in phases.items() if name != FIRST for e, n in counts.items()},
    )
    plain = [event for event in first if isinstance(event, NonPrivate)]
    detected, missed = compose(second, "substitution"), compose(merged(phases), "substitution")
    base = (*NOISED, *table(detected, evidence), *alignment(evidence))
    # Redacted text is the same in both worlds where the policy detects the secret; skeletons under a condition of their own.
    found = (*base, STABLE, *((WHOLE,) if evidence.skeletons else ()))
    yield with_status(
        "sdp", DETECTED, "substitution", detected.epsilon(evidence.delta), evidence.delta,
        "JFT Theorem 1, by substitution (guarantees.md §4.1)", found, evidence,
        curve=detected.curve, reason=detected.reason,
    )  # fmt: skip
    if size := evidence.records_per_user:
        unit = f"all secrets of one user that the policy detects, in at most {size} records"
        yield grouped(detected, evidence, found, unit, size)
    if missed.reason is not None:
        why = "what the policy misses was trained on without noise in the first phase"
        yield no_guarantee("sdp", MISSED, "substitution", evidence, why, miss_rates(evidence))
        for name, size in evidence.groups:
            unit = f"{GROUP} '{name}' in {size} records"
            yield no_guarantee("group-confidentiality", unit, "substitution", evidence, f"of those in it, {why}")
    else:
        # Skeletons: the same in both worlds if the conservative policy marks the secret (§3).
        covered = (*base, COVERED, WHOLE, *spared(evidence)) if plain else base
        yield with_status(
            "sdp", MISSED, "substitution", missed.epsilon(evidence.delta), evidence.delta,
            "both phases composed (guarantees.md §4.1a)", covered, evidence, curve=missed.curve, reason=missed.reason,
        )  # fmt: skip
        yield from named_groups(missed, evidence, covered)
        if most := evidence.records_per_user:
            yield grouped(missed, evidence, covered, f"all secrets of one user, in at most {most} records", most)
    if evidence.screened is not None:
        yield _screened(detected, missed, evidence.screened, evidence, found)
    if not plain or missed.reason is not None:
        yield from _averaged(first, second, evidence, found)
    if plain:
        why = "redacted records are trained on without noise, so a record's presence may show"
        yield from no_record_privacy(evidence, RECORD, why)
    else:
        yield from record_privacy(merged(phases), evidence, RECORD)


def _screened(
    detected: Profile, missed: Profile, looked: tuple[int, int], evidence: Evidence, assumptions: tuple[Assumption, ...]
) -> Guarantee:
    """A secret of the hand-screened records: left by the person with probability at most m, which is one coin."""
    checked, left = looked
    if not checked:
        why = "nobody looked a second time, so what a person left is unknown"
        return no_guarantee("bayesian-confidentiality", SCREENED, "substitution", evidence, why)
    m = recall_bound(left, checked, evidence.confidence)
    epsilon, delta = averaged(detected, missed, m, evidence.delta)
    sample = Assumption(
        f"the {checked} secrets looked for again are a random sample of those in the screened records "
        f"(the bound drawn from them fails for at most {100 * (1 - evidence.confidence):.2g} % of samples)",
        enforced=False,
    )
    return with_status(
        "bayesian-confidentiality", SCREENED, "substitution", epsilon, delta,
        "averaged over what a person left (guarantees.md §4.1b)", (*assumptions, sample), evidence,
        curve=_either(detected, missed, m, evidence.delta), detail={"gamma": m, "bounds_fail": bounds_fail(evidence, 1)},
    )  # fmt: skip


def _either(detected: Profile, missed: Profile, m: float, delta: float) -> Callable[[float], Curve]:
    """The curve of the average over the miss."""
    lost = missed.reason is not None
    return lambda _: averaged_curve(detected.curve(delta), None if lost else missed.curve(delta), m)


def _averaged(
    first: Counts, second: Counts, evidence: Evidence, assumptions: tuple[Assumption, ...]
) -> Iterator[Guarantee]:
    """A secret that is missed with probability at most m: proved as a mixture over that one coin (§4.1b), and as published,
    with the sampling rate of the first phase times m (§4.1c, JFT 3.1), which is no bound."""
    rates = miss_rates(evidence)
    if not rates:
        why = "no secrets were labelled, so the miss rate is unknown"
        yield no_guarantee("bayesian-confidentiality", DRAWN_SECRET, "substitution", evidence, why)
        return
    m = rates["gamma"]
    detected, missed = compose(second, "substitution"), compose(added([first, second]), "substitution")
    epsilon, delta = averaged(detected, missed, m, evidence.delta)
    yield with_status(
        "bayesian-confidentiality", DRAWN_SECRET, "substitution", epsilon, delta,
        "averaged over the miss (guarantees.md §4.1b)", (*assumptions, labelled_sample(evidence, 1)), evidence,
        curve=_either(detected, missed, m, evidence.delta), detail={"gamma": m, "bounds_fail": bounds_fail(evidence, 1)},
        reason=detected.reason,
    )  # fmt: skip
    if first and missed.reason is None and 0 < m < 1 and not faults(evidence) and not evidence.seeded_noise:
        thinned: dict[Event, int] = {
            replace(e, rate=e.rate * m): n for e, n in first.items() if isinstance(e, PoissonGaussian)
        }
        published = compose(added([thinned, second]), "add-remove").epsilon(evidence.delta)
        yield Guarantee(
            "bayesian-confidentiality", DRAWN_SECRET, "add-remove", published, evidence.delta, "estimate",
            "JFT section 3.1 as published (guarantees.md §4.1c)", accountant_name(),
            reason="a miss is a fixed property of the data, not a coin of every step: an estimate, not a bound",
            detail={"gamma": m},
        )  # fmt: skip
