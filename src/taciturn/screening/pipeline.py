"""screen(): documents in, a screened corpus out (CRT, Algorithm 1, lines 1-4, in the order the proofs need)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

import orjson

from taciturn.errors import DataError, UsageError, nearest
from taciturn.screening.dedup import SCOPES, Dedup, Scope
from taciturn.screening.manifest import Counts, Input, Manifest, Policies, PolicyName
from taciturn.screening.policies.base import Finder, Policy
from taciturn.screening.policies.derived import Missing
from taciturn.screening.rows import Local, Row
from taciturn.screening.screened import ScreenedCorpus
from taciturn.screening.store import Store
from taciturn.text.document import Document, Record
from taciturn.text.readers import Blank, Corpus, Quarantined
from taciturn.text.segment import Unit, split

Order = Literal["redact-first", "as-published"]
ORDERS: tuple[Order, ...] = ("redact-first", "as-published")

_BATCH, _BATCH_SIZE = 4096, 1 << 21  # records, code points
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Options:
    """How to screen; every field is part of the content key."""

    unit: Unit = "sentence"
    dedup: Scope = "suspicious"
    order: Order = "redact-first"
    skeletons: bool = True
    miss_rate: float = 0.0
    miss_seed: int = 0
    keep_originals: bool = True

    def __post_init__(self) -> None:
        for what, value, known in (
            ("unit", self.unit, get_args(Unit)),
            ("dedup", self.dedup, SCOPES),
            ("order", self.order, ORDERS),
        ):
            if value not in known:
                raise UsageError(f"{what} '{value}' is unknown; {nearest(value, known)}")


def screen(
    corpus: Corpus,
    pi: Policy,
    conservative: Policy,
    *,
    unit: Unit | None = None,
    dedup: Scope = "suspicious",
    order: Order = "redact-first",
    skeletons: bool = True,
    miss_rate: float = 0.0,
    miss_seed: int = 0,
    max_bad: int = 0,
    keep_originals: bool = True,
    out: Path | None = None,
) -> ScreenedCorpus:
    """Split → Redact → Partition → Dedup, with skeletons taken before Dedup (guarantees.md §2 and §3).

    pi redacts; conservative (π_c) decides what is public. unit: sentence, or document where the corpus was read as
    conversations or pairs, which are never cut. order "as-published" deduplicates everything before redaction,
    as the paper prints it: it breaks "detected means ε = 0", gives no skeletons, and the manifest says so. miss_rate: share
    of π's findings that are dropped on purpose (π_c is left alone). keep_originals: also keep the untouched text, in a
    folder of mode 0700: mechanisms that train on it and ``group_size`` read it. out: a folder to write, else in memory.

    Raises DataError when more than ``max_bad`` items cannot be read (nothing is then written), UsageError for a wrong
    option.
    """
    unit = unit or ("document" if corpus.options.structured else "sentence")
    options = Options(unit, dedup, order, skeletons and order == "redact-first", miss_rate, miss_seed, keep_originals)
    finder: Finder = Missing(pi, miss_rate, miss_seed) if miss_rate else pi
    if not 0.0 <= miss_rate <= 1.0:
        raise UsageError(f"miss_rate must lie in [0, 1], found {miss_rate:g}")
    local = Local.of(finder, conservative, options.skeletons)
    first = Dedup("all") if order == "as-published" else None
    last = Dedup("none" if first else dedup)
    inputs = tuple(Input(name=name, digest=digest) for name, digest in corpus.digests().items())
    tally: Counter[str] = Counter()
    ordinal, labels = 0, False
    with Store(out, options.keep_originals) as store:
        records = _records(corpus, options.unit, tally, max_bad)
        for batch in _batches(records):
            rows = local.rows(batch)
            store.add([_stored(ordinal + i, row, first, last, tally) for i, row in enumerate(rows)])
            ordinal += len(rows)
            labels = labels or any(record.label is not None for record in batch)
        counts = Counts(**{**tally, "read": ordinal + tally["quarantined"]}).check()
        key = _key(options, (pi, conservative), corpus, inputs)
        manifest = _manifest(options, pi, conservative, inputs, counts, key, labels)
        return store.finish(manifest)


def _records(corpus: Corpus, unit: Unit, tally: Counter[str], max_bad: int) -> Iterator[Record]:
    """Records with something in them; quarantined and blank ones are counted on the way."""
    items = corpus.items()
    bad: list[Quarantined] = []
    for item in items:
        if isinstance(item, Quarantined):
            tally["quarantined"] += 1
            bad.append(item)
            if len(bad) > max_bad:
                bad += [late for late in items if isinstance(late, Quarantined)]
                raise DataError(_too_many(bad, max_bad))
        elif isinstance(item, Blank):
            tally["blank"] += 1
        else:
            tally["documents"] += 1
            yield from _filled(item, unit, tally)


def _batches(records: Iterator[Record]) -> Iterator[list[Record]]:
    batch: list[Record] = []
    size = 0
    for record in records:
        batch.append(record)
        size += len(record.text)
        if len(batch) == _BATCH or size >= _BATCH_SIZE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _filled(document: Document, unit: Unit, tally: Counter[str]) -> Iterator[Record]:
    for record in split(document, unit):
        if record.body and not record.body.isspace():
            yield record
        else:
            tally["blank"] += 1


def _too_many(bad: Sequence[Quarantined], max_bad: int) -> str:
    named = "; ".join(f"{b.source}, {b.location}: {b.reason}" for b in bad[:_NAMED])
    more = f"; and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
    return f"{len(bad)} items cannot be read, {max_bad} allowed: {named}{more}; mend them or raise max_bad"


def _stored(ordinal: int, row: Row, first: Dedup | None, last: Dedup, tally: Counter[str]) -> dict[str, object]:
    """The table row of a record, its share added to the counts."""
    label = row.record.label
    if first is not None and first.is_copy(row.body, private=True, suspicious=True, label=label):
        part, duplicate = "private", True  # the published order: the copy is a <MASK> before anything looks at it
    else:
        part = row.part
        duplicate = last.is_copy(row.redacted, part == "private", row.suspicious, label)
    tally.update(row.tally)
    tally[part] += 1
    tally["duplicates"] += duplicate
    tally["suspicious"] += row.suspicious
    tally["skeletons"] += row.skeleton is not None
    return {
        "ordinal": ordinal,
        "id": row.record.id,
        "document_id": row.record.document_id,
        "user": row.record.user,
        "part": part,
        "label": label,
        "redacted": row.redacted,
        "duplicate": duplicate,
        "suspicious": row.suspicious,
        "skeleton": row.skeleton,
        "original": row.body,
        "stable": [offset for interval in row.stable for offset in interval],
        "suspects": [offset for interval in row.suspects for offset in interval],
    }


def _manifest(
    options: Options,
    pi: Policy,
    conservative: Policy,
    inputs: tuple[Input, ...],
    counts: Counts,
    key: str,
    labels: bool,
) -> Manifest:
    published = options.order == "as-published"
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
        skeletons=options.skeletons,
        originals=options.keep_originals,
        labels=labels,
        counts=counts,
        warnings=tuple(_warnings(counts)),
        conditions=tuple(_conditions(options, policies, counts, labels)),
        guarantee_ok=not published,
        reasons=(_PUBLISHED,) if published else (),
    )


_PUBLISHED = (
    "deduplicated before redaction, as published: a detected secret with a copy still changes the corpus, so the published "
    "claim is not a guarantee"
)


def _warnings(counts: Counts) -> Iterator[str]:
    if counts.detector_failures:
        yield f"a detector did not finish on {counts.detector_failures} records; they are private"
    if counts.unsettled:
        yield f"redaction did not settle on {counts.unsettled} records; each is masked whole"
    if counts.spans_undetected_after_check:
        yield f"{counts.spans_undetected_after_check} of {counts.spans} spans do not survive their own masking: not detected"
    if counts.skeletons_refused:
        yield f"{counts.skeletons_refused} private records have a skeleton that depends on what it masks; it is left out"
    if counts.quarantined:
        yield f"{counts.quarantined} items could not be read"
    if not counts.private:
        yield "no record is private: nothing will be trained with noise"
    if not counts.public:
        yield "no record is public"


def _conditions(options: Options, policies: Policies, counts: Counts, labels: bool) -> Iterator[str]:
    if labels:
        yield "no label says anything secret: labels are stored and trained on as they are"
    if not policies.conservative.covers_all:
        yield "π or π_c marks something of every secret, so that its record is private"
    if options.skeletons and not policies.conservative.covers_all:
        yield (
            "every secret lies wholly in what π or π_c marks, and replacing it by <MASK> leaves its record's skeleton "
            "(or its having none) as it is; checked span by span at screening"
        )
    if options.skeletons and counts.skeletons_refused:
        yield f"the secret is not in one of the {counts.skeletons_refused} records whose skeleton failed that check"


def _key(options: Options, policies: tuple[Policy, Policy], corpus: Corpus, inputs: tuple[Input, ...]) -> str:
    parts = {
        "inputs": sorted((i.name, i.digest) for i in inputs),
        "reading": asdict(corpus.options),
        "policies": [policy.identity for policy in policies],
        "options": [getattr(options, name) for name in options.__slots__],
        "code": code_digest(),
    }
    return hashlib.blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()


@cache
def code_digest() -> str:
    """A hash of the code that decides what a screened corpus is: an edited pattern or rule gives another key."""
    digest = hashlib.blake2b(digest_size=16)
    for package in ("taciturn.text", "taciturn.text.readers", "taciturn.screening", "taciturn.screening.policies"):
        for source in sorted((f for f in files(package).iterdir() if f.name.endswith(".py")), key=lambda f: f.name):
            digest.update(f"{package}/{source.name}\0".encode() + source.read_bytes() + b"\0")
    return digest.hexdigest()


def _version() -> str:
    try:
        return metadata.version("taciturn")
    except metadata.PackageNotFoundError:
        return "unknown"
