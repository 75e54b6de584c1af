"""What a canary's secret is spelt in: digits, hexadecimal digits, letters, or the words of a list (a passphrase)."""

from __future__ import annotations

import string
from pathlib import Path

from taciturn.errors import DataError, UsageError, nearest

Alphabet = str | tuple[str, ...]
"""Letters, or words; a secret of words has one space between two of them."""

NAMED = {"digits": string.digits, "hex": "0123456789abcdef", "letters": string.ascii_lowercase}
WORDS = "words:"


def alphabet(spec: str) -> Alphabet:
    """The alphabet of a name, or of ``words:FILE``. Raises UsageError for an unknown name, DataError for a bad list.

    >>> alphabet("hex")
    '0123456789abcdef'
    """
    if spec.startswith(WORDS):
        return read_words(Path(spec.removeprefix(WORDS)))
    if spec not in NAMED:
        raise UsageError(f"alphabet {spec!r}: {nearest(spec, [*NAMED, WORDS + 'FILE'])}")
    return NAMED[spec]


def read_words(path: Path) -> tuple[str, ...]:
    """A list of words, one a line, in the file's order; of a numbered list (diceware) the last column."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"word list {path.name}: cannot be read as UTF-8 text ({type(error).__name__})") from None
    found: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            word = line.split()[-1]
            if word in found:
                raise DataError(f"word list {path.name}, line {number}: the same word as in line {found[word]}")
            found[word] = number
    if len(found) < 2:
        raise DataError(f"word list {path.name}: expected at least two words, one a line, found {len(found)}")
    return tuple(found)


def alphabet_problem(symbols: Alphabet) -> str | None:
    """Why these cannot be an alphabet, never quoting one of them; None if they can."""
    if len(symbols) < 2 or len(set(symbols)) != len(symbols):
        return "expected at least two different letters or words"
    if not isinstance(symbols, str) and any(word != "".join(word.split()) or not word for word in symbols):
        return "expected words without white space"
    return None
