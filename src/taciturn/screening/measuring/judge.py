"""What two policies make of labelled records: which secrets they miss, by screening's rules (guarantees.md §2.1, §3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from taciturn.errors import DataError, MismatchError
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.labels import Line, counted
from taciturn.screening.measuring.evaluate import TOKEN
from taciturn.screening.measuring.sample import Known, read_population
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.derived import Missing
from taciturn.screening.policies.finder import Finder, Named
from taciturn.screening.rows import Local, Outcome, Row
from taciturn.text.document import Record
from taciturn.text.spans import Span


@dataclass(frozen=True, slots=True)
class Secret:
    """A labelled secret and what became of it. casing: "digits" (has one), "upper", "lower", "title" or "mixed"."""

    label: str
    casing: str
    missed_by_pi: bool
    missed_by_both: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """A labelled record under two policies. private: whether it would be trained with noise."""

    id: str
    stratum: str
    private: bool
    secrets: tuple[Secret, ...]


UNSURE = "unsure"
"""The kind of a secret that may be none: it counts only where it is missed, as one that is found would dilute the misses."""


def judge_records(
    lines: Iterable[Line],
    screened: ScreenedCorpus,
    pi: Policy,
    conservative: Named,
    records: Mapping[str, Known] | None = None,
) -> list[Judged]:
    """What the policies make of each record that was looked at (``labels.counted``).

    A record that the person could not judge ("skip"), or passed over, is taken for the worst it may be, since leaving it out
    would bias the sample by what it says: one "unsure" secret, missed if the whole text or any word of it would be. records:
    of all these lines, if ``lookup`` has found them before. Raises MismatchError if a record is not in ``screened``, has
    another text there, or, under the policies it was screened with, comes out otherwise than it did; DataError for lines
    that were made to correct π, on which it cannot fail.
    """
    lines = list(lines)
    if any(line.salt is not None for line in lines):
        raise DataError(
            "these lines were exported for corrections: what a person corrected says nothing of the rest; "
            "draw and label a fresh sample with: taciturn sample"
        )
    done = counted(lines)
    records = lookup(done, screened) if records is None else records
    manifest = screened.manifest
    policies = manifest.policies
    own = (pi.identity, conservative.identity) == (policies.pi.identity, policies.conservative.identity)
    finder: Finder = Missing(pi, manifest.miss_rate, manifest.miss_seed) if own and manifest.miss_rate else pi
    local = Local.of(finder, conservative, manifest.skeletons, manifest.bridge)
    gold = [_record(line, records[line.id]) for line in done]
    rows = local.rows(gold)
    if own and manifest.order == "redact-first":
        rows = _as_screened(rows, gold, [records[line.id] for line in done], local)
    return [
        Judged(line.id, line.stratum, row.part == "private", tuple(_secrets(line, row.gold)))
        for line, row in zip(done, rows, strict=True)
    ]


def lookup(lines: Sequence[Line], screened: ScreenedCorpus) -> dict[str, Known]:
    """The records of the lines. Raises MismatchError if one is not in this corpus as it was sampled."""
    wanted = {line.id for line in lines}
    found = {record.id: record for record in read_population(screened) if record.id in wanted}
    for line in lines:
        if line.id not in found:
            raise MismatchError(
                f"record '{line.id}' is not in this screened corpus; name the folder the sample came from"
            )
        line.agrees_with(found[line.id].original)
    counts = screened.manifest.counts
    totals = {"all": counts.public + counts.private, "public": counts.public, "private": counts.private}
    for line in lines[:1]:
        if totals[line.population] != line.records:
            raise MismatchError(
                f"the sample was drawn from {line.records} records and this corpus has {totals[line.population]}; "
                "draw a new sample"
            )
    return found


def _record(line: Line, record: Known) -> Record:
    if line.label_status == "skip":
        places = [(0, len(line.text)), *(token.span() for token in TOKEN.finditer(line.text))]
        spans = tuple(Span(start, end, UNSURE, 1.0, "label") for start, end in dict.fromkeys(places))
    else:
        spans = tuple(Span(s.start, s.end, s.label, 1.0, "label") for s in line.spans)
    return Record(line.id, line.id, 0, len(record.original), record.original, gold=spans)


def _as_screened(rows: Sequence[Row], gold: Sequence[Record], records: Sequence[Known], local: Local) -> list[Row]:
    """The rows, those redone that the input had made private (screening keeps no note why, but leaves no skeleton)."""
    silent = [
        i
        for i, (row, record) in enumerate(zip(rows, records, strict=True))
        if record.part == "private" and (row.part == "public" or (record.skeleton is None and row.skeleton is not None))
    ]
    again = local.rows([replace(gold[i], private_because="so says the input") for i in silent])
    rows = list(rows)
    for i, row in zip(silent, again, strict=True):
        rows[i] = row
    for row, record in zip(rows, records, strict=True):
        if (row.redacted, row.part) != (record.redacted, record.part):
            raise MismatchError(
                f"record '{record.id}' comes out otherwise than when it was screened, with the same policies: "
                "a model or this program has changed since; screen again"
            )
    return rows


def _secrets(line: Line, outcomes: Sequence[Outcome]) -> list[Secret]:
    if line.label_status == "done":
        return [_secret(line.text, each) for each in outcomes]
    return [Secret(UNSURE, "other", any(o.missed_by_pi for o in outcomes), any(o.missed_by_both for o in outcomes))]


def _secret(text: str, outcome: Outcome) -> Secret:
    return Secret(
        outcome.label, casing(text[outcome.start : outcome.end]), outcome.missed_by_pi, outcome.missed_by_both
    )


def casing(secret: str) -> str:
    """How a secret is written.

    >>> [casing(s) for s in ("Dana Vale", "dana", "DANA", "7GAWK763", "laPena", "??")]
    ['title', 'lower', 'upper', 'digits', 'mixed', 'other']
    """
    if any(c.isdigit() for c in secret):
        return "digits"
    if not any(c.isalpha() for c in secret):
        return "other"
    if secret == secret.lower():
        return "lower"
    if secret == secret.upper():
        return "upper"
    return "title" if secret == secret.title() else "mixed"
