"""One batch of records through both policies: the record-local part of preprocessing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from taciturn.screening.bridges import Bridge, whole
from taciturn.screening.entities import entities
from taciturn.screening.partition import RecordPart, part
from taciturn.screening.policies.base import CLEAN
from taciturn.screening.policies.derived import Cached, Joined, Sharing
from taciturn.screening.policies.finder import Finder
from taciturn.screening.redact import BRIDGED, Interval, Masked, neighbours, pieces, redact, survives
from taciturn.screening.skeletons import has_one_skeleton, tested
from taciturn.screening.sparing import Sparing
from taciturn.screening.standing import places_of, standing
from taciturn.text.document import MASK, Record
from taciturn.text.spans import CANARY, merge


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a labelled span ``body[start:end]``.

    missed_by_pi: not detected, in the sense of ``survives``. missed_by_both: no finite ε covers it, as its record is public
    or, with skeletons, has another one than its neighbour; it then counts as missed by π too. public: its record is.
    changes: its record has another skeleton than its neighbour, whether skeletons are kept or not.
    """

    start: int
    end: int
    label: str
    missed_by_pi: bool
    missed_by_both: bool
    public: bool = False
    changes: bool = False


@dataclass(slots=True)  # freezing would double what making one costs, and there is one a record
class Row:
    """What is known of a record without looking at any other.

    redacted: the fixed point of π. suspicious: whether π_c marks something in ``redacted``. skeleton: None for public
    records, records without one, and skeletons that are only a mask. stable: maximal spans of π in ``body`` that survive
    their own masking. suspects: what π_c marks in ``redacted``. entities: see screening/entities.py. gold: of labelled
    spans. tally: this record's share of the counts.
    """

    record: Record
    body: str
    redacted: str
    part: RecordPart = "public"
    suspicious: bool = False
    skeleton: str | None = None
    stable: tuple[Interval, ...] = ()
    behind: tuple[Interval, ...] = ()
    stands: bool = False
    suspects: tuple[Interval, ...] = ()
    entities: tuple[str, ...] = ()
    gold: tuple[Outcome, ...] = ()
    tally: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Local:
    """π, π_c and what to do with them; a pure function from a record to its row."""

    pi: Finder
    conservative: Finder
    both: Finder | None
    joined: Finder
    bridge: Bridge = "particles"

    @classmethod
    def of(cls, pi: Finder, conservative: Finder, skeletons: bool = True, bridge: Bridge = "particles") -> Local:
        """With detections remembered."""
        if isinstance(conservative, Sparing):
            conservative = conservative.over(Cached(conservative.pi), Cached(conservative.conservative))
        same = pi.identity == conservative.identity and type(pi) is type(conservative)
        first = Cached(pi)
        second = first if same else Sharing.of(conservative, first)
        joined = Joined.of(first, second)
        return cls(first, second, joined if skeletons else None, joined, bridge)

    def rows(self, records: Sequence[Record]) -> list[Row]:
        """One row a record, in order."""
        bodies = [record.body for record in records]
        found = self.pi.find(bodies)
        wide = found if self.conservative is self.pi else self.conservative.find(bodies)
        rows = [Row(record, body, body) for record, body in zip(records, bodies, strict=True)]
        busy = [
            i
            for i, (row, its, wider) in enumerate(zip(rows, found, wide, strict=True))
            if its is not CLEAN
            or wider is not CLEAN
            or row.record.gold
            or row.record.private_because is not None
            or MASK in row.body
        ]
        for i, row in zip(busy, self._looked_at([records[i] for i in busy]), strict=True):
            rows[i] = row
        return rows

    def _looked_at(self, records: Sequence[Record]) -> list[Row]:
        """Rows of records in which a policy, the input or a label has marked something."""
        bodies = [record.body for record in records]
        redacted = redact(bodies, self.pi)
        found = self.pi.find(bodies)
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
        skeletons = self._skeletons(records, bodies, parts, redacted)
        gold = self._gold(records, bodies, parts)
        labelled = [[g for g in each if g.label != CANARY] for each in gold]
        rows = []
        for i, record in enumerate(records):
            skeleton, refused, behind, stands = skeletons[i]
            statuses = {redacted[i].status, wide[i].status, still[i].status} - {"ok"}
            tally = Counter(
                spans=len(checks[i]),
                spans_undetected_after_check=checks[i].count(False),
                skeletons_refused=int(refused),
                values_refused=int(skeleton is not None and not stands),
                detector_failures=int(bool(statuses)),
                unsettled=int(not redacted[i].settled),
                corrected=int(any(s.detector == "corrections" for s in found[i].spans)),
                gold_spans=len(labelled[i]),
                gold_missed_by_pi=sum(g.missed_by_pi for g in labelled[i]),
                gold_missed_by_both=sum(g.missed_by_both for g in labelled[i]),
            )
            tally.update({f"detector_{status}": 1 for status in statuses})
            suspicious = parts[i] == "private" and (bool(still[i].spans) or still[i].status != "ok")
            rows.append(
                Row(
                    record,
                    bodies[i],
                    redacted[i].text,
                    parts[i],
                    suspicious,
                    skeleton,
                    stable=tuple(x for x, holds in zip(redacted[i].marks, checks[i], strict=True) if holds),
                    behind=behind,
                    stands=stands,
                    suspects=tuple(merge(still[i].spans)) if suspicious else (),
                    entities=entities(bodies[i], found[i].spans),
                    gold=gold[i],
                    tally=tuple((+tally).items()),
                )
            )
        return rows

    def _skeletons(
        self, records: Sequence[Record], bodies: Sequence[str], parts: Sequence[RecordPart], redacted: Sequence[Masked]
    ) -> list[tuple[str | None, bool, tuple[Interval, ...], bool]]:
        """(skeleton, refused by the check, what stands behind it, whether that may be shown where it stands) of each record,
        from its original text, before Dedup."""
        chosen = [i for i, r in enumerate(records) if parts[i] == "private" and r.private_because is None]
        out: list[tuple[str | None, bool, tuple[Interval, ...], bool]] = [(None, False, (), False)] * len(records)
        if self.both is None:
            return out
        texts = [bodies[i] for i in chosen]
        masked = redact(texts, self.both, BRIDGED)
        places = places_of(texts, masked, [redacted[i] for i in chosen], self.both, self.bridge)
        stable = standing(places, self.pi, self.both, self.bridge)
        one, stands = tested(texts, masked, self.both, self.bridge, stable)
        kept = zip(self._kept(masked, one), places, stands, strict=True)
        for i, ((skeleton, refused), its, holds) in zip(chosen, kept, strict=True):
            known = skeleton is not None and its is not None
            out[i] = skeleton, refused, its.pairs if known and its is not None else (), known and holds
        return out

    def _skeleton(self, texts: Sequence[str]) -> list[tuple[str | None, bool]]:
        """(skeleton, refused by the check) of each text."""
        masked = redact(texts, self.joined, BRIDGED)
        return self._kept(masked, has_one_skeleton(texts, masked, self.joined, self.bridge))

    def _kept(self, masked: Sequence[Masked], one: Sequence[bool]) -> list[tuple[str | None, bool]]:
        """(skeleton, refused): sk(s), if every masking of marked words has the same (guarantees.md §3.1). Refused is also
        what cannot be tested, and what has no skeleton but might have one if words were masked."""
        skeletons = [whole(m.text, self.bridge) if m.settled and not m.failed else MASK for m in masked]
        return [
            (sk if sk.strip() != MASK else None, False) if holds else (None, True)
            for sk, holds in zip(skeletons, one, strict=True)
        ]

    def _gold(
        self, records: Sequence[Record], bodies: Sequence[str], parts: Sequence[RecordPart]
    ) -> list[tuple[Outcome, ...]]:
        """The labelled spans of each record, cut to its body."""
        spans = [
            [(start, end, s.label) for s in record.gold for start, end in _bare(body, s.start, s.end)]
            for record, body in zip(records, bodies, strict=True)
        ]
        gold = [[(start, end) for start, end, _ in of_record] for of_record in spans]
        detected = survives(list(zip(bodies, gold, strict=True)), self.pi)
        kept = iter(self._same_skeleton(records, bodies, gold))
        outcomes = []
        for part_, labelled, found in zip(parts, spans, detected, strict=True):
            public, changes = part_ == "public", [not next(kept) for _ in found]
            lost = [public or (change and self.both is not None) for change in changes]
            outcomes.append(
                tuple(
                    Outcome(*span, missed_by_pi=gone or not hit, missed_by_both=gone, public=public, changes=change)
                    for span, gone, change, hit in zip(labelled, lost, changes, found, strict=True)
                )
            )
        return outcomes

    def _same_skeleton(
        self, records: Sequence[Record], bodies: Sequence[str], gold: Sequence[Sequence[Interval]]
    ) -> list[bool]:
        """For each labelled span, in order: do s(x) and s(<MASK>) give the same skeleton, or neither one?"""
        answers: list[bool] = []
        for pairs in pieces(neighbours(b, x) for b, spans in zip(bodies, gold, strict=True) for x in spans):
            sides = list(dict.fromkeys(side for pair in pairs for side in pair))
            outcome = dict(zip(sides, self._skeleton(sides), strict=True))
            answers += [outcome[left][0] == outcome[right][0] for left, right in pairs]
        silent = (r.private_because is not None for r, spans in zip(records, gold, strict=True) for _ in spans)
        return [same or none for same, none in zip(answers, silent, strict=True)]


def _bare(body: str, start: int, end: int) -> Iterator[Interval]:
    """A labelled span cut to the body, without the blanks around it, which are no part of a secret; nothing for a span of
    blanks."""
    text = body[start:end]
    if inner := text.strip():
        first = start + text.index(inner)
        yield first, first + len(inner)
