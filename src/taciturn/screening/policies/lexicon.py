"""A million values, found as whole words: one dictionary of values and one of their first words.

A text is cut into words once. Only a word that some value begins with is looked at again: the words from there on, as many
as those values have, are joined and looked up. No text is too slow: the work is bounded by the text's words times the
different lengths of values.
"""

from __future__ import annotations

import hashlib
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise

from taciturn.text.fold import fold

Found = tuple[int, int, int]
"""start, end, number of the label."""

COMPACT = 6
"""A value of digits alone, at least so many, is found however its digits are grouped."""

# Scripts written without blanks between words: each letter counts as a word.
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_ASCII_WORD = re.compile(r"[0-9A-Za-z]+")
_SIX_DIGITS = re.compile(r"[0-9](?:[\W_]*[0-9]){5}")
_DENSE_LETTER = re.compile(f"[{_DENSE}]")
_ACCENTS = re.compile("[\u0300-\u036f]+")
# Letters that Unicode does not take apart.
_BARE = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ŧ": "t"}
)


@cache
def _word() -> re.Pattern[str]:
    """Runs of letters, digits and the marks that go with them; single letters of dense scripts. Not "_"."""
    marks = "".join(c for c in map(chr, range(0x300, 0x1F000)) if unicodedata.category(c)[0] == "M")
    return re.compile(rf"(?:[^\W_{_DENSE}]++[{marks}]*+)++|[{_DENSE}][{marks}]*+")


@dataclass(frozen=True, slots=True)
class Matching:
    """How a value and a text are compared.

    folded: after text/fold.py, without regard to case, to the punctuation between words and to how digits are grouped;
    else code point by code point. accents: whether they count.
    """

    folded: bool = True
    accents: bool = True

    def plain(self, value: str) -> str:
        """The value as texts are shown to ``words``."""
        return fold(value).text if self.folded else value

    def words(self, text: str) -> list[str]:
        """The words of a plain text as they are compared."""
        if text.isascii():
            return _ASCII_WORD.findall(text.lower() if self.folded else text)
        found = _word().findall(text)
        return [self._compared(word) for word in found] if self.folded else found

    def _compared(self, word: str) -> str:
        return word.lower() if word.isascii() else _casefold(word) if self.accents else _bare(word)


@lru_cache(maxsize=1 << 15)
def _casefold(word: str) -> str:
    return unicodedata.normalize("NFC", word.casefold())


@lru_cache(maxsize=1 << 15)
def _bare(word: str) -> str:
    """Without accents.

    >>> _bare("Škoda"), _bare("ŁÓDŹ"), _bare("Straße")
    ('skoda', 'lodz', 'strasse')
    """
    apart = _ACCENTS.sub("", unicodedata.normalize("NFD", word.casefold()))
    return unicodedata.normalize("NFC", apart).translate(_BARE)


def word_positions(text: str) -> list[tuple[int, int]]:
    """Where the words of ``Matching.words`` stand."""
    return [m.span() for m in (_ASCII_WORD if text.isascii() else _word()).finditer(text)]


@dataclass(frozen=True, slots=True)
class Key:
    """What is looked up. size: its letters and digits, a letter of a dense script counting twice."""

    text: str
    words: tuple[str, ...]
    number: bool
    before: str
    after: str
    size: int


def key(value: str, matching: Matching) -> Key | None:
    """None for a value without a letter or digit. White space and punctuation around it are set aside."""
    plain = matching.plain(value).strip()
    words = tuple(matching.words(plain))
    if not words:
        return None
    first, last = _ends(plain)
    size = sum(map(len, words))
    number = matching.folded and size >= COMPACT and all(map(_digits, words))
    text = "".join(words) if number else " ".join(words) if matching.folded else plain[first:last]
    if not plain.isascii():
        size += sum(len(_DENSE_LETTER.findall(w)) for w in words)
    return Key(text, words, number, plain[:first], plain[last:], size)


def _ends(plain: str) -> tuple[int, int]:
    if plain[0].isalnum() and plain[-1].isalnum():
        return 0, len(plain)
    spots = word_positions(plain)
    return spots[0][0], spots[-1][1]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """values: number of the label by key. lengths: numbers of words of the values that begin with a word, most first.
    numbers: like values, for those of digits alone. around: punctuation that belongs to a value, before and after.
    digest: 32 hex digits of the set of keys and labels: a function of secrets, as everything here."""

    matching: Matching
    values: dict[str, int] = field(repr=False)
    lengths: dict[str, tuple[int, ...]] = field(repr=False)
    numbers: dict[str, int] = field(repr=False)
    around: dict[str, tuple[tuple[str, str], ...]] = field(repr=False)
    longest: int
    digest: str

    @classmethod
    def of(cls, keys: Iterable[tuple[int, Key]], matching: Matching) -> Lexicon:
        """From (number of a label, key), in any order; the lowest label of a key counts."""
        values: dict[str, int] = {}
        numbers: dict[str, int] = {}
        lengths: dict[str, tuple[int, ...]] = {}
        around: dict[str, tuple[tuple[str, str], ...]] = {}
        for label, key in keys:
            if key.before or key.after:
                pair = (sys.intern(key.before), sys.intern(key.after))
                if pair not in around.get(key.text, ()):
                    around[key.text] = (*around.get(key.text, ()), pair)
            table = numbers if key.number else values
            known = table.get(key.text)
            if known is None or label < known:
                table[key.text] = label
            if known is None and not key.number:
                _add_length(lengths, key)
        longest = max(map(len, numbers), default=0)
        return cls(matching, values, lengths, numbers, around, longest, _digest(values, numbers, around))

    def __len__(self) -> int:
        return len(self.values) + len(self.numbers)

    def find(self, text: str) -> list[Found]:
        """Every occurrence of every value in a plain text, those inside another one left out, left to right."""
        words = self.matching.words(text)
        hits = [] if self.lengths.keys().isdisjoint(words) else list(self._phrases(text, words))
        if self.numbers and _SIX_DIGITS.search(text):
            hits += self._numbers(text)
        if len(hits) < 2:
            return hits
        hits.sort(key=lambda hit: (hit[0], -hit[1]))
        kept = hits[:1]
        for hit in hits[1:]:
            if hit[1] > kept[-1][1]:
                kept.append(hit)
        return kept

    def single(self, text: str) -> bool:
        """Whether no value of several words, and no number, can begin in a plain text."""
        lengths = self.lengths
        several = any(lengths[w][0] > 1 for w in self.matching.words(text) if w in lengths)
        return not several and not (self.numbers and _SIX_DIGITS.search(text))

    def _phrases(self, text: str, words: Sequence[str]) -> Iterator[Found]:
        folded, values, lengths, count = self.matching.folded, self.values, self.lengths, len(words)
        spots: Sequence[tuple[int, int]] = ()
        for i in [i for i, word in enumerate(words) if word in lengths]:
            for length in lengths[words[i]]:
                if i + length > count:
                    continue
                key = words[i] if length == 1 else " ".join(words[i : i + length])
                if folded and key not in values:
                    continue
                spots = spots or word_positions(text)
                start, end = spots[i][0], spots[i + length - 1][1]
                key = key if folded else text[start:end]
                gaps = pairwise(spots[i : i + length])
                if key in values and all(_near(text[left:right]) for (_, left), (right, _) in gaps):
                    yield (*self._wider(text, start, end, key), values[key])
                    break  # a shorter value from here lies inside this one

    def _numbers(self, text: str) -> Iterator[Found]:
        groups = [m.span() for m in (_ASCII_WORD if text.isascii() else _word()).finditer(text) if _digits(m[0])]
        for i, (start, stop) in enumerate(groups):
            compact, best = text[start:stop], None
            for j in range(i + 1, len(groups) + 1):
                if compact in self.numbers:
                    best = stop, compact
                if j == len(groups) or len(compact) >= self.longest or not _joined(text[stop : groups[j][0]]):
                    break
                compact, stop = compact + text[slice(*groups[j])], groups[j][1]
            if best is not None:
                yield (*self._wider(text, start, *best), self.numbers[best[1]])

    def _wider(self, text: str, start: int, end: int, key: str) -> tuple[int, int]:
        """With the punctuation that belongs to the value, where the text has it."""
        pairs = self.around.get(key)
        if pairs is None:
            return start, end
        before = max((len(b) for b, _ in pairs if text.endswith(b, 0, start)), default=0)
        after = max((len(a) for _, a in pairs if text.startswith(a, end)), default=0)
        return start - before, end + after


def _add_length(lengths: dict[str, tuple[int, ...]], key: Key) -> None:
    have, count = lengths.get(key.words[0], ()), len(key.words)
    if count not in have:
        # From the value itself where it is one word: one string instead of two.
        lengths[key.text if count == 1 else key.words[0]] = _sorted(have, count)


@cache
def _sorted(have: tuple[int, ...], count: int) -> tuple[int, ...]:
    return tuple(sorted((*have, count), reverse=True))


def _near(gap: str) -> bool:
    """Whether it is white space and at most two other characters."""
    return len(gap) < 3 or len("".join(gap.split())) < 3


def _digits(word: str) -> bool:
    return word.isdigit() and word.isascii()


def _joined(gap: str) -> bool:
    return _near(gap) and (_ASCII_WORD if gap.isascii() else _word()).search(gap) is None


def _digest(values: dict[str, int], numbers: dict[str, int], around: dict[str, tuple[tuple[str, str], ...]]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in (values, numbers):
        for text in sorted(part):
            outer = "\0".join("\0".join(pair) for pair in sorted(around.get(text, ())))
            digest.update(f"{text}\0{part[text]}\0{outer}\1".encode("utf-8", "surrogatepass"))
        digest.update(b"\2")
    return digest.hexdigest()
