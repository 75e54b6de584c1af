"""Records with what the policies mark in them, in pieces that a terminal or a page can colour."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, TypeVar

from taciturn.errors import DataError
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.measuring.sample import read_population
from taciturn.screening.partition import RecordPart
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.finder import Named
from taciturn.screening.redact import ADJACENT, Interval, maximal
from taciturn.screening.rows import Local
from taciturn.text.document import Document, Record
from taciturn.text.readers import Corpus, Quarantined
from taciturn.text.segment import Unit, split
from taciturn.text.spans import Span, merge

Show = Literal["all", "private", "public"]
Marker = Literal["", "π", "π_c"]
T = TypeVar("T")

_BATCH = 64

# What a reader would not see, or would see elsewhere than it stands: controls, zero-width and bidirectional characters, line
# separators, byte order marks, lone surrogates. Line feeds and tabs stay.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text: marked by π, by π_c alone, or by nobody (""). label: of the longest span in it."""

    text: str = field(repr=False)
    start: int
    by: Marker = ""
    label: str = ""

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Shown:
    """A record as it is shown. redacted: what training would read of it."""

    id: str
    part: RecordPart
    pieces: tuple[Piece, ...] = field(repr=False)
    redacted: str = field(repr=False)

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


def of_corpus(corpus: Corpus, unit: Unit | None = None, max_bad: int = 0) -> Iterator[Record]:
    """The records screening would make of a corpus. Raises DataError at item ``max_bad`` + 1 that cannot be read."""
    unit = unit or ("document" if corpus.options.structured else "sentence")
    bad = 0
    for item in corpus.items():
        if isinstance(item, Document):
            yield from (record for record in split(item, unit) if record.body.strip())
        elif isinstance(item, Quarantined):
            bad += 1
            if bad > max_bad:
                raise DataError(
                    f"{item.source}, {item.location}: {item.reason}; {max_bad} unreadable items allowed: mend it or raise "
                    "max_bad"
                )


def of_screened(screened: ScreenedCorpus) -> Iterator[Record]:
    """The records of a screened corpus, untouched."""
    for record in read_population(screened):
        yield Record(record.id, record.id, 0, len(record.original), record.original)


def chosen(
    records: Iterable[Record], pi: Policy, conservative: Named, n: int, show: Show = "all", seed: int | None = None
) -> list[Shown]:
    """The first ``n`` records of a part, or with a seed ``n`` of them drawn at random, in corpus order."""
    if seed is None:
        return list(islice(_of_part(records, pi, conservative, show), n))
    if show == "all":
        return list(_of_part(_reservoir(records, n, seed), pi, conservative, show))
    return _reservoir(_of_part(records, pi, conservative, show), n, seed)


def _of_part(records: Iterable[Record], pi: Policy, conservative: Named, show: Show) -> Iterator[Shown]:
    rest = iter(records)
    while batch := list(islice(rest, _BATCH)):
        yield from (record for record in preview_records(batch, pi, conservative) if show in ("all", record.part))


def _reservoir(items: Iterable[T], n: int, seed: int) -> list[T]:
    """``n`` items drawn without replacement in one pass (Vitter's algorithm R), in their order."""
    coins, kept = random.Random(seed), dict[int, tuple[int, T]]()
    for number, item in enumerate(items):
        place = number if number < n else coins.randrange(number + 1)
        if place < n:
            kept[place] = number, item
    return [item for _, item in sorted(kept.values(), key=lambda entry: entry[0])]


def preview_records(records: Sequence[Record], pi: Policy, conservative: Named) -> list[Shown]:
    """Records under two policies."""
    local = Local.of(pi, conservative, skeletons=False)
    rows = local.rows(records)
    bodies = [row.body for row in rows]
    return [
        Shown(row.record.id, row.part, tuple(pieces(row.body, first.spans, second.spans)), row.redacted)
        for row, first, second in zip(rows, local.pi.find(bodies), local.conservative.find(bodies), strict=True)
    ]


def pieces(text: str, pi: Sequence[Span], conservative: Sequence[Span]) -> Iterator[Piece]:
    """The text cut at the edges of marks. Where π marks, π_c's mark is not shown."""
    masked = maximal(text, pi, ADJACENT)
    marks: list[tuple[Interval, Marker, str]] = [(x, "π", _label(x, pi)) for x in masked]
    marks += [(x, "π_c", _label(x, conservative)) for y in merge(conservative) for x in _without(y, masked)]
    at = 0
    for (start, end), by, label in sorted(marks):
        if at < start:
            yield Piece(text[at:start], at)
        yield Piece(text[start:end], start, by, label)
        at = end
    if at < len(text):
        yield Piece(text[at:], at)


def _label(interval: Interval, spans: Sequence[Span]) -> str:
    start, end = interval
    inside = [s for s in spans if s.start < end and start < s.end]
    return max(inside, key=lambda s: s.end - s.start).label if inside else ""


def _without(interval: Interval, cut: Sequence[Interval]) -> Iterator[Interval]:
    start, end = interval
    for low, high in cut:
        if low < end and start < high:
            if start < low:
                yield start, low
            start = max(start, high)
    if start < end:
        yield start, end


def runs(text: str) -> Iterator[tuple[str, bool]]:
    r"""The text in runs, characters that nobody would see as visible escapes (True).

    >>> list(runs("a\u202eb"))
    [('a', False), ('\\u202e', True), ('b', False)]
    """
    at = 0
    for match in _HIDDEN.finditer(text):
        if at < match.start():
            yield text[at : match.start()], False
        code = ord(match.group())
        yield f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}", True
        at = match.end()
    if at < len(text):
        yield text[at:], False
