"""One scan that says which of many patterns may match, so that ``re`` runs only where there is something to find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import re2

from taciturn.screening.policies.relax import needs_digit, relaxed

# A set whose automaton outgrows its memory answers "no match", so there is far more than any state takes.
_MEMORY = 64 << 20
# Length of the patterns in a set: the states of a scan are combinations of theirs, and in a large set new ones never stop
# coming. Short patterns go together, long ones nearly alone.
_TOGETHER = 9000
_BLOCK = 1 << 11  # bytes scanned at once before single texts are

Data = Sequence[tuple[int, bytes]]  # texts in UTF-8 with their numbers
Loose = tuple[int, str]  # the number of a pattern, and what it was relaxed to


@dataclass(frozen=True, slots=True)
class Part:
    """Compiled sets, each with the numbers of its patterns. digits: every match of each has a digit, so that texts without
    one need no scan."""

    digits: bool
    sets: tuple[tuple[re2.Set, tuple[int, ...]], ...]

    @classmethod
    def of(cls, patterns: Sequence[Loose], digits: bool, always: list[int]) -> Part:
        """always: gets the numbers of those that no set can take."""
        return cls(digits, tuple(made for group in _groups(patterns) for made in _sets(group, always)))

    def hits(self, texts: Data) -> Iterator[tuple[int, int]]:
        """(pattern, text) wherever one may match in the other; by each pattern texts in their order. They are scanned by
        the block first: most blocks hold nothing."""
        if self.digits:
            texts = [each for each in texts if len(each[1].translate(None, b"0123456789")) < len(each[1])]
        for some, block in _blocks(texts):
            for searched, numbers in self.sets:
                if searched.Match(block):
                    for i, text in some:
                        for hit in searched.Match(text) or ():
                            yield numbers[hit], i


@dataclass(frozen=True, slots=True)
class Prefilter:
    """always: patterns that no set could take."""

    parts: tuple[Part, ...]
    always: tuple[int, ...]

    @classmethod
    @lru_cache(
        maxsize=32
    )  # policies are made anew for each corpus, and compiling takes longer than screening a small one
    def of(cls, patterns: tuple[tuple[str, bool], ...]) -> Prefilter:
        """Of (pattern, ignore case) pairs."""
        easy: list[Loose] = []
        always: list[int] = []
        for number, (pattern, ignore_case) in enumerate(patterns):
            try:
                loose = relaxed(pattern, ignore_case)
                re2.compile(loose.encode(), _options())
                easy.append((number, loose))
            except (ValueError, re2.error):
                always.append(number)
        parts = [Part.of([p for p in easy if needs_digit(p[1]) == its], its, always) for its in (True, False)]
        return cls(tuple(parts), tuple(always))

    def candidates(self, shadows: Sequence[str]) -> dict[int, list[int]]:
        """For each pattern that may match in some of the folded texts, the numbers of these texts, increasing; wherever it
        does match it is named."""
        found: dict[int, list[int]] = {n: list(range(len(shadows))) for n in self.always}
        # A lone surrogate is no character: as three bytes it may be taken for any character outside ASCII.
        texts = [(i, shadow.encode("utf-8", "surrogatepass")) for i, shadow in enumerate(shadows)]
        for part in self.parts:
            for number, i in part.hits(texts):
                found.setdefault(number, []).append(i)
        return found


def _blocks(texts: Data) -> Iterator[tuple[Data, bytes]]:
    """Neighbouring texts, and the same joined."""
    first = size = 0
    for at, (_, data) in enumerate(texts, 1):
        size += len(data)
        if size >= _BLOCK or at == len(texts):
            some = texts[first:at]
            yield some, b"\n".join(text for _, text in some)
            first, size = at, 0


def _groups(patterns: Sequence[Loose]) -> Iterator[list[Loose]]:
    group: list[Loose] = []
    size = 0
    for number, loose in sorted(patterns, key=lambda p: len(p[1])):
        if group and size + len(loose) > _TOGETHER:
            yield group
            group, size = [], 0
        group.append((number, loose))
        size += len(loose)
    if group:
        yield group


def _sets(patterns: Sequence[Loose], always: list[int]) -> list[tuple[re2.Set, tuple[int, ...]]]:
    """One set, or two of half the patterns where one grows too large."""
    if not patterns:
        return []
    made = re2.Set.SearchSet(_options())
    for _, loose in patterns:
        made.Add(loose.encode())
    try:
        made.Compile()
    except re2.error:
        if len(patterns) == 1:
            always.append(patterns[0][0])
            return []
        half = len(patterns) // 2
        return _sets(patterns[:half], always) + _sets(patterns[half:], always)
    return [(made, tuple(number for number, _ in patterns))]


def _options() -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY
    options.never_capture = True
    options.log_errors = False
    return options
