"""How well a policy finds annotated spans: tokens, records, and what it costs. Streams; only numbers are kept.

A token is a maximal run of word characters, or one other character that is not blank (``TOKEN``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from taciturn.screening.corpus.gold import Gold, by_label, count_gold
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.derived import Cached
from taciturn.screening.policies.public import Public
from taciturn.screening.rows import Local, Row
from taciturn.screening.sparing import Sparing
from taciturn.text.document import MASK, Record
from taciturn.text.spans import Detection, merge

TOKEN = re.compile(r"\w+|[^\w\s]")
_WORD, _VISIBLE = re.compile(r"\w"), re.compile(r"\S")

_BATCH, _SIZE = 512, 1 << 20  # records, code points


@dataclass(frozen=True, slots=True)
class Label:
    """tokens, spans: annotated with this label; found: tokens wholly covered by marks, spans of which no word character
    is left."""

    tokens: int
    tokens_found: int
    spans: int
    spans_found: int

    @property
    def recall(self) -> float:
        """Of tokens."""
        return self.tokens_found / self.tokens if self.tokens else 1.0


@dataclass(frozen=True, slots=True)
class Score:
    """A policy against annotations.

    tokens: of all records; marked: those the policy touches; gold: those an annotation touches; gold_found: of those, wholly
    covered by marks; gold_marked: touched by both. records_gold: records with an annotation; records_clean: of those, no
    letter or digit of an annotation is left; records_exposed: of those, public although annotated.
    failures: records on which a detector did not finish (they are private). gold_by_label: what screening with π_c would
    make of each label, with skeletons and without; empty without π_c.
    """

    name: str
    tokens: int
    marked: int
    gold: int
    gold_found: int
    gold_marked: int
    records: int
    public: int
    records_gold: int
    records_clean: int
    records_exposed: int
    failures: int
    labels: Mapping[str, Label] = field(default_factory=dict)
    gold_by_label: tuple[Gold, ...] = ()

    @property
    def token_recall(self) -> float:
        """Annotated tokens that are wholly covered."""
        return self.gold_found / self.gold if self.gold else 1.0

    @property
    def record_recall(self) -> float:
        """Records with an annotation in which no letter or digit of it is left."""
        return self.records_clean / self.records_gold if self.records_gold else 1.0

    @property
    def precision(self) -> float:
        """Touched tokens that are annotated."""
        return self.gold_marked / self.marked if self.marked else 1.0

    @property
    def redacted(self) -> float:
        """Tokens that are touched."""
        return self.marked / self.tokens if self.tokens else 0.0

    @property
    def public_share(self) -> float:
        """Records in which nothing is marked."""
        return self.public / self.records if self.records else 0.0


def evaluate(
    records: Iterable[Record],
    policies: Sequence[Policy],
    conservative: Policy | None = None,
    public: Public | None = None,
    missed: Callable[[str, Row], None] = lambda *_: None,
) -> list[Score]:
    """One score a policy. conservative: what it marks (π_c), but for what is ``public``, makes a record private as well;
    redaction stays π's. missed: told of every record with annotations as screening would have it, with the policy's name."""
    tallies = [(Counter[str](), Counter[tuple[str, str]](), Counter[str]()) for _ in policies]
    for batch in batches(records):
        bodies = [record.body for record in batch]
        shared = None if conservative is None else Cached(conservative)
        for policy, (counts, labels, gold) in zip(policies, tallies, strict=True):
            wide = [Detection()] * len(batch)
            if conservative is not None and shared is not None:
                chosen = Sparing.of(policy, conservative, public)
                wide = (chosen.over(policy, shared) if isinstance(chosen, Sparing) else shared).find(bodies)
                rows = Local.of(policy, chosen).rows([record for record in batch if record.gold])
                gold.update(count_gold(rows))
                for row in rows:
                    missed(policy.name, row)
            for record, detection, also in zip(batch, policy.find(bodies), wide, strict=True):
                _add(record, detection, also, counts, labels)
    return [_score(p.name, *tally) for p, tally in zip(policies, tallies, strict=True)]


def batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    """In lists of a few hundred, or a megabyte of text."""
    rest = iter(records)
    while batch := list(islice(rest, 1)):
        size = len(batch[0].text)
        while len(batch) < _BATCH and size < _SIZE and (more := next(rest, None)) is not None:
            batch.append(more)
            size += len(more.text)
        yield batch


def _add(
    record: Record,
    detection: Detection,
    also: Detection,
    counts: Counter[str],
    labels: Counter[tuple[str, str]],
) -> None:
    text = record.body
    marks = _bytes(len(text), merge(detection.spans))
    spans = [s for s in record.gold if text[s.start : s.end].strip()]
    gold = _bytes(len(text), merge(spans))
    failed = detection.status != "ok" or also.status != "ok"
    public = not (detection.spans or also.spans or failed or record.private_because is not None or MASK in text)
    counts.update(records=1, public=public, failures=failed)
    counts.update(_tokens(text, marks, gold))
    if spans:
        clean = all(_covered(text, marks, s.start, s.end) for s in spans)
        counts.update(records_gold=1, records_clean=clean, records_exposed=public)
    for span in spans:
        whole = _covered(text, marks, span.start, span.end)
        labels.update({(span.label, "spans"): 1, (span.label, "spans_found"): whole})
        for token in TOKEN.finditer(text, span.start, min(span.end, len(text))):
            labels[span.label, "tokens"] += 1
            labels[span.label, "tokens_found"] += marks.find(0, *token.span()) < 0


def _tokens(text: str, marks: bytearray, gold: bytearray) -> dict[str, int]:
    tokens = marked = annotated = found = both = 0
    for token in TOKEN.finditer(text):
        start, end = token.span()
        touched, wanted = marks.find(1, start, end) >= 0, gold.find(1, start, end) >= 0
        tokens += 1
        marked += touched
        annotated += wanted
        both += wanted and touched
        found += wanted and touched and marks.find(0, start, end) < 0
    return {"tokens": tokens, "marked": marked, "gold": annotated, "gold_found": found, "gold_marked": both}


def _bytes(length: int, intervals: Iterable[tuple[int, int]]) -> bytearray:
    """One byte a code point: 1 inside the intervals."""
    marks = bytearray(length)
    for start, end in intervals:
        stop = min(end, length)
        marks[start:stop] = b"\x01" * (stop - start)
    return marks


def _covered(text: str, marks: bytearray, start: int, end: int) -> bool:
    """Whether no letter and no digit of ``text[start:end]`` is left; where there are none, no character but blanks."""
    end = min(end, len(text))
    tell = _WORD if _WORD.search(text, start, end) else _VISIBLE
    at = marks.find(0, start, end)
    while at >= 0 and not tell.match(text, at):
        at = marks.find(0, at + 1, end)
    return at < 0


def _score(name: str, counts: Counter[str], labels: Counter[tuple[str, str]], gold: Counter[str]) -> Score:
    numbers = {f: counts[f] for f in Score.__dataclass_fields__ if f not in ("name", "labels", "gold_by_label")}
    seen = sorted({label for label, _ in labels}, key=lambda label: (-labels[label, "tokens"], label))
    per_label = {label: Label(**{f: labels[label, f] for f in Label.__dataclass_fields__}) for label in seen}
    return Score(name, **numbers, labels=per_label, gold_by_label=by_label(gold))
