"""What a person should label: a random sample of a screened corpus's records, simple or stratified by cue.

Strata are made from what is known of a record by itself: who marks it (π, π_c alone, nobody) and its strongest cue (an "@",
a digit, a capital inside, a word that announces a secret). Lines come in random order, so that whoever labels only the first
ones has labelled a random sample, too.
"""

from __future__ import annotations

import heapq
import math
import random
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import pyarrow.parquet as pq

from taciturn.errors import DataError, UsageError, nearest
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.labels import SIMPLE, Line, Population, digest
from taciturn.text.document import MASK

By = Literal["simple", "cue"]

_DIGIT = re.compile(r"\d")
_CAPITAL = re.compile(r"(?<=[a-z,;:] )(?!I\b)[A-Z]|(?<=[a-z])[A-Z]|\b[A-Z]{2}")
_WORDS = re.compile(
    r"\b(?:names?|called?|named?|surname|i ?['’]?a?m|this is|mr|mrs|ms|dr|password|passcode|pin|code|key|token|secret|login|"
    r"user|account|card|number|ssn|social security|passport|licen[cs]e|address|street|live|born|birth|birthday|age|email|"
    r"mail|phone|mobile|order|reference|booking|patient|diagnos\w+)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Known:
    """A record of a screened corpus with its original. skeleton: as screened, None without one."""

    id: str
    part: Literal["public", "private"]
    redacted: str = field(repr=False)
    original: str = field(repr=False)
    skeleton: str | None = field(repr=False, default=None)


def read_population(screened: ScreenedCorpus) -> Iterator[Known]:
    """Every record, in corpus order, one batch of originals in memory at a time. Raises DataError without originals."""
    columns = [screened.table[name] for name in ("id", "part", "redacted", "skeleton")]
    at = 0
    for originals in _originals(screened):
        rows = zip(*(c.slice(at, len(originals)).to_pylist() for c in columns), originals, strict=True)
        for id, part, redacted, skeleton, original in rows:
            yield Known(id, part, redacted, original, skeleton)
        at += len(originals)


def _originals(screened: ScreenedCorpus) -> Iterator[list[Any]]:
    if not screened.manifest.originals:
        raise DataError(
            "the original texts of this screened corpus were not kept, so there is nothing to label; "
            "screen again with keep_originals (--originals)"
        )
    if screened.path is None:
        yield screened.originals["original"].to_pylist()
        return
    for shard in screened.manifest.shards:
        if shard.path.startswith("originals/"):
            with (screened.path / shard.path).open("rb") as handle:
                file = pq.ParquetFile(handle, pre_buffer=False)
                for batch in file.iter_batches(columns=["original"], use_threads=False):
                    yield batch.column(0).to_pylist()


def draw(
    screened: ScreenedCorpus,
    n: int,
    by: By = "simple",
    part: Population = "all",
    seed: int | None = None,
) -> list[Line]:
    """``n`` records without replacement, each with the number of records it stands for (weight), in random order.

    by "cue": from strata, by size (``allocate``). part: sample only the public or the private records; recall measured on
    such a sample says nothing about the other part. seed: None draws one from the operating system; it is recorded.
    Raises UsageError (n < 1, an unknown choice), DataError (originals not kept, nothing to draw from).
    """
    for what, value, choices in (("by", by, get_args(By)), ("part", part, get_args(Population))):
        if value not in choices:
            raise UsageError(f"{what} '{value}' is unknown; {nearest(value, choices)}")
    if n < 1:
        raise UsageError(f"a sample needs at least one record, found n = {n}")
    seed = secrets.randbits(53) if seed is None else seed
    coins = random.Random(seed)
    strata: dict[str, list[int]] = {}
    for at, record in enumerate(read_population(screened)):
        if part in ("all", record.part):
            strata.setdefault(SIMPLE if by == SIMPLE else stratum(record), []).append(at)
    if not strata:
        raise DataError(f"no {part} record in this screened corpus; there is nothing to sample")
    names = sorted(strata)
    sizes = [len(strata[name]) for name in names]
    drawn = dict(zip(names, allocate(sizes, n), strict=True))
    chosen = {at: name for name in names for at in coins.sample(strata[name], drawn[name])}
    lines = [
        Line(
            id=record.id,
            text=record.original,
            part=record.part,
            stratum=chosen[at],
            stratum_records=len(strata[chosen[at]]),
            records=sum(sizes),
            weight=len(strata[chosen[at]]) / drawn[chosen[at]],
            population=part,
            seed=seed,
            text_digest=digest(record.original),
        )
        for at, record in enumerate(read_population(screened))
        if at in chosen
    ]
    coins.shuffle(lines)
    return lines


def stratum(record: Known) -> str:
    """Who marks it and its strongest cue, e.g. "unmarked, digit".

    >>> stratum(Known("1", "public", "my name is dana", "my name is dana"))
    'unmarked, cue word'
    """
    mark = "π" if MASK in record.redacted else "π_c only" if record.part == "private" else "unmarked"
    text = record.original
    if "@" in text:
        cue = "@"
    elif _DIGIT.search(text):
        cue = "digit"
    elif _CAPITAL.search(text):
        cue = "capital"
    else:
        cue = "cue word" if _WORDS.search(text) else "no cue"
    return f"{mark}, {cue}"


def allocate(sizes: Sequence[int], n: int) -> list[int]:
    """How many to draw from each stratum: by size, n in all (or everything), so that one that is drawn stands for no more
    records than it must (Adams's divisor method): where nothing is missed, that number is what a bound grows with.

    >>> allocate([1000, 100, 3], 40)
    [35, 4, 1]
    """
    drawn = [0] * len(sizes)
    waiting = [(-math.inf, -size, i) for i, size in enumerate(sizes) if size]
    heapq.heapify(waiting)
    for _ in range(min(n, sum(sizes))):
        _, size, i = heapq.heappop(waiting)
        drawn[i] += 1
        if drawn[i] < sizes[i]:
            heapq.heappush(waiting, (-sizes[i] / drawn[i], size, i))
    return drawn
