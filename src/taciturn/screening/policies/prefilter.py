"""One scan that says which of many patterns may match, so that ``re`` runs only where there is something to find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import re2

from taciturn.screening.policies.relax import relaxed

# A set whose automaton outgrows its memory answers "no match", so there is far more than any state takes.
_MEMORY = 64 << 20
# Length of the patterns in a set: the states of a scan are combinations of theirs, and in a large set new ones never stop
# coming. Short patterns go together, long ones nearly alone.
_TOGETHER = 5000
_BLOCK = 1 << 11  # bytes scanned at once before single texts are


@dataclass(frozen=True, slots=True)
class Prefilter:
    """sets: compiled sets, each with the numbers of its patterns. always: patterns that no set could take."""

    sets: tuple[tuple[re2.Set, tuple[int, ...]], ...]
    always: tuple[int, ...]

    @classmethod
    @lru_cache(
        maxsize=32
    )  # policies are made anew for each corpus, and compiling takes longer than screening a small one
    def of(cls, patterns: tuple[tuple[str, bool], ...]) -> Prefilter:
        """Of (pattern, ignore case) pairs."""
        easy: list[tuple[int, str]] = []
        always: list[int] = []
        for number, (pattern, ignore_case) in enumerate(patterns):
            try:
                loose = relaxed(pattern, ignore_case)
                re2.compile(loose.encode(), _options())
                easy.append((number, loose))
            except (ValueError, re2.error):
                always.append(number)
        return cls(tuple(made for part in _groups(easy) for made in _sets(part, always)), tuple(always))

    def candidates(self, shadows: Sequence[str]) -> dict[int, list[int]]:
        """For each pattern that may match in some of the folded texts, the numbers of these texts, increasing; wherever it
        does match it is named. Texts are scanned by the block first: most blocks hold nothing."""
        found: dict[int, list[int]] = {n: list(range(len(shadows))) for n in self.always}
        for texts, block in _blocks(shadows):
            for searched, numbers in self.sets:
                if searched.Match(block):
                    for i, text in texts:
                        for hit in searched.Match(text) or ():
                            found.setdefault(numbers[hit], []).append(i)
        return found


def _blocks(shadows: Sequence[str]) -> Iterator[tuple[list[tuple[int, bytes]], bytes]]:
    """Neighbouring texts in UTF-8 with their numbers, and the same joined."""
    held: list[tuple[int, bytes]] = []
    size = 0
    for i, shadow in enumerate(shadows):
        # A lone surrogate is no character: as three bytes it may be taken for any character outside ASCII.
        data = shadow.encode("utf-8", "surrogatepass")
        held.append((i, data))
        size += len(data)
        if size >= _BLOCK:
            yield held, b"\n".join(data for _, data in held)
            held, size = [], 0
    if held:
        yield held, b"\n".join(data for _, data in held)


def _groups(patterns: Sequence[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    group: list[tuple[int, str]] = []
    size = 0
    for number, loose in sorted(patterns, key=lambda p: len(p[1])):
        if group and size + len(loose) > _TOGETHER:
            yield group
            group, size = [], 0
        group.append((number, loose))
        size += len(loose)
    if group:
        yield group


def _sets(patterns: Sequence[tuple[int, str]], always: list[int]) -> list[tuple[re2.Set, tuple[int, ...]]]:
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
