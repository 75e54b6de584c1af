"""How far two people agree on the same sample: by record, by mark, and by token beyond chance.

A token is what `taciturn evaluate` takes for one (a run of word characters, or one other character that is not blank); it is
marked if any of its characters is. Cohen's κ = (p_o − p_e) / (1 − p_e) of marked against not marked (Cohen 1960): p_o is the
share of tokens on which the two agree, p_e what two people who mark as often, but at random, would agree on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from taciturn.screening.labels import LabelSpan, Line
from taciturn.screening.measuring.evaluate import TOKEN


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of two people, on the records both looked at.

    agreed: records that both call done and in which they mark the same letters and digits. unsure: records that one of them
    could not judge. The rest is counted where both are done. tokens: in all; both, first, second: marked by both, by one
    alone. marks_first, marks_second, marks_same: marks, and those with both ends the same.
    """

    people: tuple[str, str]
    records: int = 0
    agreed: int = 0
    unsure: int = 0
    tokens: int = 0
    both: int = 0
    first: int = 0
    second: int = 0
    marks_first: int = 0
    marks_second: int = 0
    marks_same: int = 0

    @property
    def kappa(self) -> float | None:
        """None where chance alone agrees on everything (nothing is marked, or all).

        >>> round(Agreement(("a", "b"), tokens=50, both=20, first=5, second=10).kappa, 2)
        0.4
        """
        n = self.tokens
        if not n:
            return None
        ones, twos = self.both + self.first, self.both + self.second
        chance = (ones * twos + (n - ones) * (n - twos)) / n**2
        return None if chance == 1 else ((n - self.first - self.second) / n - chance) / (1 - chance)

    @property
    def f1(self) -> float | None:
        """2·same / (marks of one + marks of the other), which is F1 with either for gold; None without a mark."""
        marks = self.marks_first + self.marks_second
        return 2 * self.marks_same / marks if marks else None

    @property
    def share(self) -> float | None:
        """Of the records, how many they agree on."""
        return self.agreed / self.records if self.records else None


def pairs(files: Mapping[str, Sequence[Line]]) -> list[Agreement]:
    """Agreement of every two people; the files hold the same records in the same order."""
    return [
        between((one, two), zip(files[one], files[two], strict=True)) for one, two in combinations(sorted(files), 2)
    ]


def between(people: tuple[str, str], lines: Iterable[tuple[Line, Line]]) -> Agreement:
    """Agreement on pairs of lines of the same record."""
    looked = [(a, b) for a, b in lines if "todo" not in (a.label_status, b.label_status)]
    done = [(a, b) for a, b in looked if a.label_status == b.label_status == "done"]
    tokens = both = first = second = 0
    for a, b in done:
        one, two = covered(a.spans), covered(b.spans)
        for token in TOKEN.finditer(a.text):
            place = range(*token.span())
            in_one, in_two = not one.isdisjoint(place), not two.isdisjoint(place)
            tokens += 1
            both, first, second = both + (in_one and in_two), first + (in_one > in_two), second + (in_one < in_two)
    edges = [({(s.start, s.end) for s in a.spans}, {(s.start, s.end) for s in b.spans}) for a, b in done]
    return Agreement(
        people,
        records=len(looked),
        agreed=sum(core(a) == core(b) for a, b in done),
        unsure=len(looked) - len(done),
        tokens=tokens,
        both=both,
        first=first,
        second=second,
        marks_first=sum(len(x) for x, _ in edges),
        marks_second=sum(len(y) for _, y in edges),
        marks_same=sum(len(x & y) for x, y in edges),
    )


def covered(spans: Iterable[LabelSpan]) -> set[int]:
    """Positions under a mark."""
    return {at for s in spans for at in range(s.start, s.end)}


def core(line: Line) -> frozenset[int]:
    """Positions of marked letters and digits: a full stop more or less is no disagreement. A mark without any counts as it
    stands."""
    found: set[int] = set()
    for s in line.spans:
        places = range(s.start, s.end)
        found.update([at for at in places if line.text[at].isalnum()] or places)
    return frozenset(found)
