"""What stands around a record in its document, for a person to read and not to mark."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.labels import Line
from taciturn.screening.measuring.sample import read_population

RECORDS, LONGEST = 4, 600
"""Records on each side, and code points of each that are shown."""


@dataclass(frozen=True, slots=True)
class Around:
    """Records before and after one, in the order of the document, from the originals."""

    before: tuple[str, ...] = field(default=(), repr=False)
    after: tuple[str, ...] = field(default=(), repr=False)


def around(lines: Sequence[Line], screened: ScreenedCorpus) -> dict[str, Around]:
    """By record id, of the records of ``lines``; never of another document. Reads the originals once, in order."""
    wanted = {line.id for line in lines}
    before: dict[str, tuple[str, ...]] = {}
    after: dict[str, list[str]] = {}
    last, document = deque[str](maxlen=RECORDS), None
    open_: list[str] = []  # wanted records of this document that still take what comes after them
    for record, of in zip(read_population(screened), screened.table["document_id"].to_pylist(), strict=True):
        if of != document:
            last.clear()
            open_, document = [], of
        for each in open_:
            after[each].append(_cut(record.original))
        open_ = [each for each in open_ if len(after[each]) < RECORDS]
        if record.id in wanted:
            before[record.id], after[record.id] = tuple(last), []
            open_.append(record.id)
        last.append(_cut(record.original, end=True))
    return {id: Around(before[id], tuple(after[id])) for id in before}


def _cut(text: str, end: bool = False) -> str:
    """The end of a text that comes before, the beginning of one that comes after."""
    if len(text) <= LONGEST:
        return text
    return f"… {text[-LONGEST:]}" if end else f"{text[:LONGEST]} …"
