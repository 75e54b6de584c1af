"""The manifest of a screening: what was done, what it came to, what the proofs assume of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import metadata

from taciturn.screening.cleaning.clean import Source
from taciturn.screening.corpus.gold import Gold
from taciturn.screening.corpus.manifest import (
    CleanedSource,
    Counts,
    Input,
    Manifest,
    Policies,
    PolicyName,
    PublicValues,
)
from taciturn.screening.corpus.options import Options
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.finder import Named
from taciturn.screening.sparing import Sparing


def describe(
    options: Options,
    pi: Policy,
    conservative: Named,
    inputs: tuple[Input, ...],
    counts: Counts,
    key: str,
    labels: bool,
    sources: tuple[Source, ...] = (),
    gold: tuple[Gold, ...] = (),
) -> Manifest:
    public = None
    if isinstance(conservative, Sparing):
        spared = conservative.public
        public = PublicValues(values=len(spared.values), digest=spared.digest, kinds=spared.kinds)
    published = options.order == "as-published"
    reasons = (*((_PUBLISHED,) if published else ()), *((CLEANED[options.clean],) if options.clean in CLEANED else ()))
    policies = Policies(
        pi=PolicyName(name=pi.name, identity=pi.identity, covers_all=pi.covers_all and not options.miss_rate),
        conservative=PolicyName(
            name=conservative.name, identity=conservative.identity, covers_all=conservative.covers_all
        ),
    )
    return Manifest(
        taciturn=_version(),
        key=key,
        inputs=inputs,
        unit=options.unit,
        dedup="all" if published else options.dedup,
        order=options.order,
        miss_rate=options.miss_rate,
        miss_seed=options.miss_seed,
        policies=policies,
        public=public,
        skeletons=options.skeletons,
        bridge=options.bridge,
        originals=options.keep_originals,
        labels=labels,
        clean=options.clean,
        cleaned=tuple(CleanedSource(name=s.name, read=s.read, kept=s.kept, removed=s.removed) for s in sources),
        counts=counts,
        gold=gold,
        warnings=tuple(_warnings(counts)),
        conditions=tuple(_conditions(options, policies, public, counts, labels)),
        guarantee_ok=not reasons,
        reasons=reasons,
    )


_PUBLISHED = (
    "deduplicated before redaction, as published: a detected secret with a copy still changes the corpus, so the published "
    "claim is not a guarantee"
)

CLEANED: Mapping[str, str] = {
    how: (
        f"documents were cleaned of {what} (clean='{how}') by a look at all originals together, in which one record may "
        "decide about any number of others, so no confidentiality and no differential privacy of records can be claimed "
        "(guarantees.md §2.2)"
    )
    for how, what in (("bloom", "copies"), ("minhash", "near-duplicates"))
}
"""Why a corpus cleaned in this way has no guarantee."""


def _warnings(counts: Counts) -> Iterator[str]:
    if counts.detector_failures:
        yield f"a detector did not finish on {counts.detector_failures} records; they are private"
    if counts.unsettled:
        yield f"redaction did not settle on {counts.unsettled} records; each is masked whole"
    if counts.spans_undetected_after_check:
        yield f"{counts.spans_undetected_after_check} of {counts.spans} spans do not survive their own masking: not detected"
    if counts.skeletons_refused:
        yield f"{counts.skeletons_refused} private records have a skeleton that depends on what it masks; it is left out"
    if counts.values_refused:
        yield (
            f"{counts.values_refused} private records have a skeleton into which no value may come back: masking one value "
            "may change whether π marks another"
        )
    if counts.quarantined:
        yield f"{counts.quarantined} item{'s' * (counts.quarantined != 1)} could not be read"
    if not counts.private:
        yield "no record is private: nothing will be trained with noise"
    if not counts.public:
        yield "no record is public"


def _conditions(
    options: Options, policies: Policies, public: PublicValues | None, counts: Counts, labels: bool
) -> Iterator[str]:
    if labels:
        yield "no label says anything secret: labels are stored and trained on as they are"
    if not policies.conservative.covers_all:
        yield "π or π_c marks something of every secret, so that its record is private"
    if public is not None:
        yield f"no secret is, or lies in, {public.said}: π_c leaves these unmarked"
    if options.skeletons and not policies.conservative.covers_all:
        yield (
            "every secret lies wholly in what skeletons mask: what π or π_c marks, and what belongs to it; and replacing it "
            "by <MASK> leaves its record's skeleton (or its having none) as it is, as screening checks for any of its words"
        )
    if options.skeletons and counts.skeletons_refused:
        yield (
            f"the secret is not in one of the {counts.skeletons_refused} records whose skeleton failed that check: they "
            "have none, and without the secret they might"
        )
    if options.skeletons and counts.detector_failures:
        yield (
            f"the secret is not in one of the {counts.detector_failures} records on which a detector did not finish: they "
            "have no skeleton, and without the secret they might"
        )


def _version() -> str:
    try:
        return metadata.version("taciturn")
    except metadata.PackageNotFoundError:
        return "unknown"
