"""One batch of records through both policies: the record-local part of preprocessing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from taciturn.screening.partition import RecordPart, part
from taciturn.screening.policies.base import Finder
from taciturn.screening.policies.derived import Cached, Joined
from taciturn.screening.redact import BRIDGED, Interval, Masked, neighbours, pieces, redact, survives
from taciturn.text.document import MASK, Record
from taciturn.text.spans import merge


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of a record without looking at any other.

    redacted: the fixed point of π. marked: whether π or π_c marks something in the original. suspicious: whether π_c marks
    something in ``redacted``. skeleton: None for public records, records without one, and skeletons that are only a mask.
    stable: intervals of the original whose masking leaves ``redacted`` as it is. suspects: intervals of ``redacted`` that
    π_c marks. tally: what this record adds to the counts.
    """

    record: Record
    body: str
    redacted: str
    part: RecordPart
    suspicious: bool
    skeleton: str | None
    stable: tuple[Interval, ...]
    suspects: tuple[Interval, ...]
    tally: dict[str, int]


@dataclass(frozen=True, slots=True)
class Local:
    """π, π_c and what to do with them; a pure function from a record to its row."""

    pi: Finder
    conservative: Finder
    skeletons: bool = True

    @classmethod
    def of(cls, pi: Finder, conservative: Finder, skeletons: bool = True) -> Local:
        """With detections remembered."""
        return cls(Cached(pi), Cached(conservative), skeletons)

    def rows(self, records: Sequence[Record]) -> list[Row]:
        """One row a record, in order."""
        bodies = [record.body for record in records]
        redacted = redact(bodies, self.pi)
        wide = self.conservative.find(bodies)
        still = self.conservative.find([m.text for m in redacted])
        parts = [
            part(
                m.text,
                marked=bool(m.marks or c.spans),
                failed=m.failed or c.status != "ok",
                private_because=r.private_because,
            )
            for r, m, c in zip(records, redacted, wide, strict=True)
        ]
        looked = survives([(b, m.doubtful) for b, m in zip(bodies, redacted, strict=True)], self.pi)
        checks = [holds or [True] * len(m.marks) for holds, m in zip(looked, redacted, strict=True)]
        skeletons = self._skeletons(records, bodies, parts)
        gold = self._gold(records, bodies, parts)
        rows = []
        for i, record in enumerate(records):
            skeleton, refused = skeletons[i]
            failed = redacted[i].failed or wide[i].status != "ok" or still[i].status != "ok"
            tally = Counter(
                spans=len(checks[i]),
                spans_undetected_after_check=checks[i].count(False),
                skeletons_refused=int(refused),
                detector_failures=int(failed),
                unsettled=int(not redacted[i].settled),
                **gold[i],
            )
            stable = tuple(x for x, holds in zip(redacted[i].marks, checks[i], strict=True) if holds)
            suspicious = parts[i] == "private" and (bool(still[i].spans) or still[i].status != "ok")
            suspects = tuple(merge(still[i].spans)) if suspicious else ()
            rows.append(
                Row(record, bodies[i], redacted[i].text, parts[i], suspicious, skeleton, stable, suspects, dict(tally))
            )
        return rows

    def _skeletons(
        self, records: Sequence[Record], bodies: Sequence[str], parts: Sequence[RecordPart]
    ) -> list[tuple[str | None, bool]]:
        """(skeleton, refused by the check) for each record; taken from the original text, before Dedup."""
        if not self.skeletons:
            return [(None, False)] * len(records)
        chosen = [i for i, r in enumerate(records) if parts[i] == "private" and r.private_because is None]
        kept = dict(zip(chosen, self._skeleton([bodies[i] for i in chosen]), strict=True))
        return [kept.get(i, (None, False)) for i in range(len(records))]

    def _skeleton(self, texts: Sequence[str]) -> list[tuple[str | None, bool]]:
        """sk(s), if masking any one marked span by itself leads to the same skeleton (guarantees.md §3)."""
        both = Joined(self.pi, self.conservative)
        masked = redact(texts, both, BRIDGED)
        local = both.local(texts)
        doubtful = [m.doubtful if _usable(m) and not sure else () for m, sure in zip(masked, local, strict=True)]
        checks = survives(list(zip(texts, doubtful, strict=True)), both, BRIDGED)
        return [
            (None, False) if not _usable(m) else (m.text, False) if all(holds) else (None, True)
            for m, holds in zip(masked, checks, strict=True)
        ]

    def _gold(
        self, records: Sequence[Record], bodies: Sequence[str], parts: Sequence[RecordPart]
    ) -> list[dict[str, int]]:
        """Labelled spans, those whose masking changes what the private part holds, and those no finite ε covers."""
        gold = [
            [(s.start, min(s.end, len(body))) for s in record.gold if s.start < min(s.end, len(body))]
            for record, body in zip(records, bodies, strict=True)
        ]
        detected = survives(list(zip(bodies, gold, strict=True)), self.pi)
        kept = iter(self._same_skeleton(records, bodies, gold))
        tallies: list[dict[str, int]] = []
        for part_, found in zip(parts, detected, strict=True):
            lost = [not same or part_ == "public" for same in (next(kept) for _ in found)]
            missed = sum(gone or not hit for gone, hit in zip(lost, found, strict=True))
            tallies.append(
                {"gold_spans": len(found), "gold_missed_by_pi": missed, "gold_missed_by_both": sum(lost)}
                if found
                else {}
            )
        return tallies

    def _same_skeleton(
        self, records: Sequence[Record], bodies: Sequence[str], gold: Sequence[Sequence[Interval]]
    ) -> list[bool]:
        """For each labelled span, in order: do s(x) and s(<MASK>) give the same skeleton, or neither one?"""
        if not self.skeletons:
            return [True for spans in gold for _ in spans]
        answers: list[bool] = []
        for pairs in pieces(neighbours(b, x) for b, spans in zip(bodies, gold, strict=True) for x in spans):
            sides = list(dict.fromkeys(side for pair in pairs for side in pair))
            outcome = dict(zip(sides, self._skeleton(sides), strict=True))
            answers += [outcome[left][0] == outcome[right][0] for left, right in pairs]
        silent = (r.private_because is not None for r, spans in zip(records, gold, strict=True) for _ in spans)
        return [same or none for same, none in zip(answers, silent, strict=True)]


def _usable(masked: Masked) -> bool:
    return masked.settled and not masked.failed and masked.text != MASK
