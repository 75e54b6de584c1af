"""What a screened corpus and a plan say about a run, as the plain numbers the theorems take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from taciturn.errors import UsageError
from taciturn.mechanisms.refusals import DEFAULT_DELTA, protected, refusals
from taciturn.mechanisms.settings import TrainConfig
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.screening.corpus.describe import CLEANED
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.text.readers import read
from taciturn.training.plan import LEARNED, Plan

INVARIANT = ("documents", "read", "public", "private", "quarantined", "blank", "skeletons")
"""Counts that are the same for both neighbours, so a certificate may be published with them; the number of spans found,
say, is not one of them."""


TOKENS = "the tokenizer was learned without noise from public records, which steps with noise were to protect"
PACKED = "records were packed into blocks, so no clip or mask is of one record"


def evidence(
    plan: Plan, screened: ScreenedCorpus, units: Mapping[str, float] | None = None, options: Any = None
) -> Evidence:
    """The evidence of a run of ``plan`` on ``screened``; δ is the target's, else 1e-5.

    units: numbers about what is drawn as one. options: the mechanism's, of which ``selects`` and ``screened`` count.
    """
    manifest, counts = screened.manifest, screened.counts
    reads = {part for phase in plan.phases for part in phase.reads}
    labelled = counts.gold_spans
    public = manifest.public
    preprocessing = [CLEANED[manifest.clean]] if manifest.clean in CLEANED else []
    preprocessing += [TOKENS] * learns_tokens(plan)
    preprocessing += [PACKED] * any(phase.packed for phase in plan.phases)
    screened_by_hand = getattr(options, "screened", None)
    return Evidence(
        delta=plan.target.delta or DEFAULT_DELTA,
        redacted="original" not in reads,
        all_private=manifest.policies.conservative.covers_all,
        skeletons=bool(reads & {"skeletons", "common"}),
        unit=manifest.unit,  # type: ignore[arg-type]
        order=manifest.order,  # type: ignore[arg-type]
        dedup=manifest.dedup,  # type: ignore[arg-type]
        labelled=labelled,
        missed_by_pi=counts.gold_missed_by_pi if labelled else None,
        missed_by_both=counts.gold_missed_by_both if labelled else None,
        records_per_user=_records_per_user(plan, screened),
        preprocessing=tuple(preprocessing),
        spans_not_stable=counts.spans_undetected_after_check,
        protected=protected(plan),
        allowed=tuple(sorted(refusals(plan, options))),
        public_values=public.values if public else 0,
        public_digest=public.digest if public else "",
        public_kinds=public.kinds if public else (),
        seeded_noise=plan.seeds.noise is not None,
        dial=manifest.miss_rate or None,
        screened=None if screened_by_hand is None else (screened_by_hand.checked, screened_by_hand.missed),
        units={name: float(value) for name, value in (units or {}).items()},
        selects=bool(getattr(options, "selects", False)),
        counts={name: getattr(counts, name) for name in INVARIANT},
    )


def learns_tokens(plan: Plan) -> bool:
    """Whether the vocabulary is learned from public records that no step reads without noise: it would show what is in them,
    and every statement that is not about the private part alone, or what the policy detects, would be false."""
    if any(phase.rule.sensitive for phase in plan.phases):
        return False  # other tokens are read without noise there
    plainly = {part for phase in plan.phases if not phase.private for part in phase.reads}
    return plan.model.tokenizer.startswith(LEARNED) and plainly.isdisjoint(
        ("public", "redacted", "removed", "original")
    )


def unsure_validation(train: TrainConfig, screened: ScreenedCorpus, validated: bool | None = None) -> bool:
    """Whether a run can be steered by validation text that is not known to be public: it measures some, and nobody declared
    it public. validated: whether there is any; None for what ``train`` names.

    Raises UsageError where a file that the corpus was screened from is declared public.
    """
    there = bool(train.valid) if validated is None else validated
    if not there or not train.evaluations:
        return False
    if train.valid_is == "public" and train.valid:
        own = {each.digest for each in screened.manifest.inputs}
        for name, digest in read(*train.valid).digests().items():
            if digest in own:
                raise UsageError(
                    f"train.valid_is: {name} is declared public, and the corpus was screened from that very file, so it is "
                    "private; name other text, or leave valid_is out"
                )
    return train.valid_is != "public"


def _records_per_user(plan: Plan, screened: ScreenedCorpus) -> int | None:
    """The most protected records one user has; None when the input names no users."""
    everything = not any("private" in phase.reads for phase in plan.phases)
    held: Counter[str] = Counter()
    for rows in screened.batches("user", "part"):
        if rows["user"].null_count < len(rows):
            pairs = zip(rows["user"].to_pylist(), rows["part"].to_pylist(), strict=True)
            held.update(user for user, part in pairs if user is not None and (everything or part == "private"))
    return max(held.values(), default=None) if held else None
