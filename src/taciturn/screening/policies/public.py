"""Values that are public anyway (a catalogue, a list of places, a timetable): what π_c need not mark (guarantees.md §3.1).

A value is compared whole, as ``key`` writes it. That is a function of the value's own text, so it says nothing of any other
part of a record.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from taciturn.errors import DataError, UsageError, nearest
from taciturn.screening.policies.public_kinds import FORMS, KINDS, LONGEST, SAID, Kind, piece
from taciturn.text.document import MASK

LONGEST_VALUE = 128
"""Code points. Well below what checks of long records look at around a word (redact.REACH), so that the end of such a look
never makes a public value of a piece of a longer span."""

OUTER = " .,;:!?…\"'“”‘’«»()[]{}"
"""Set aside around a value. No sign, currency, "#", "@" or hyphen: these make another value of it."""

_MOST = 4 * LONGEST_VALUE + 8  # bytes of a line, byte order mark and line end included


def key(text: str) -> str:
    """How a value is compared: without regard to case, the kind and number of blanks, and punctuation around it.

    >>> key(' The  Copper Kettle"'), key("(17:30)."), key("#5")
    ('the copper kettle', '17:30', '#5')
    """
    return " ".join(text.casefold().split()).strip(OUTER)


@dataclass(frozen=True)
class Public:
    """What may stay unmarked. values: keys of values; kinds: see public_kinds.py.

    files: (name, SHA-256) of the files that the values are from, so that a file of the corpus itself is refused.
    """

    values: frozenset[str] = field(default=frozenset(), repr=False)
    kinds: tuple[Kind, ...] = ()
    files: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, values: Iterable[str] = (), kinds: Iterable[str] = ()) -> Public:
        """From values as they may be written. What no span can be (empty, with a mask, longer than ``LONGEST_VALUE``) is
        left out, which is safe. Raises UsageError for an unknown kind."""
        kept = frozenset(key(value) for value in values if not _unfit(value))
        return cls(kept, _kinds(kinds))

    @classmethod
    def read(cls, paths: Sequence[str | os.PathLike[str]] = (), kinds: Iterable[str] = ()) -> Public | None:
        """The values of files, one a line, UTF-8, and kinds; None without either.

        Warns of lines that are left out, by number. Raises DataError: a file that cannot be read, or has no value in it;
        UsageError: an unknown kind.
        """
        if not (chosen := _kinds(kinds)) and not paths:
            return None
        values: set[str] = set()
        files: list[tuple[str, str]] = []
        for path in map(Path, paths):
            found, left_out, digest = _file(path)
            if not found:
                raise DataError(f"public values: no value in {path.name}, expected one a line; {_said(left_out)}")
            if left_out:
                warnings.warn(f"public values: {path.name}: {_said(left_out)}", stacklevel=2)
            values |= found
            files.append((path.name, digest))
        return cls(frozenset(values), chosen, tuple(files))

    @cached_property
    def digest(self) -> str:
        """32 hex digits of the set of values; "" without any. It is no secret: nor are they."""
        if not self.values:
            return ""
        listed = "\n".join(sorted(self.values)).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(listed, digest_size=16, person=b"public-values").hexdigest()

    @property
    def said(self) -> str:
        """For the name of a policy.

        >>> Public.of(["Ely", "ely."], ["time"]).said
        'without 1 public value, time'
        """
        values = f"{len(self.values)} public value{'s' * (len(self.values) != 1)}" if self.values else ""
        return f"without {', '.join(filter(None, (values, *self.kinds)))}"

    def definition(self) -> Mapping[str, object]:
        return {"values": self.digest, "kinds": {kind: FORMS[kind].pattern for kind in self.kinds}, "outer": OUTER}

    @cached_property
    def longest(self) -> int:
        """Tokens in the longest value."""
        return max(
            1, max((n for each in self._lengths.values() for n in each), default=1), LONGEST if self.kinds else 1
        )

    def ends(self, low: int, words: Sequence[str]) -> Iterator[int]:
        """Where runs of ``words`` (keys of tokens) may end that begin at ``low`` and are a value."""
        lengths = {*self._lengths.get(words[low], ()), *(range(1, LONGEST + 1) if self.kinds else ())}
        yield from sorted(low + n - 1 for n in lengths if low + n <= len(words))

    def has(self, value: str) -> bool:
        """Whether a key is one of the values, or of one of the kinds."""
        return value in self.values or any(FORMS[kind].fullmatch(value) for kind in self.kinds)

    def may_hold(self, token: str) -> bool:
        """Whether a token (a key) may stand in a value; True of more tokens than that."""
        return token in self._tokens or (bool(self.kinds) and piece(token))

    def apart_from(self, inputs: Mapping[str, str]) -> Public:
        """Itself. Raises UsageError if one of its files is one of these (name, SHA-256): a list of the private corpus's own
        text would be learned from it."""
        own = set(inputs.values())
        for name, digest in self.files:
            if digest in own:
                raise UsageError(
                    f"public values: {name} is one of the files to screen, which are private; expected a list that was "
                    "public before, such as a catalogue, and that nobody made from this corpus"
                )
        return self

    @cached_property
    def _lengths(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, set[int]] = {}
        for value in self.values:
            tokens = value.split(" ")
            found.setdefault(key(tokens[0]), set()).add(len(tokens))
        return {token: tuple(sorted(lengths)) for token, lengths in found.items()}

    @cached_property
    def _tokens(self) -> frozenset[str]:
        return frozenset(key(token) for value in self.values for token in value.split(" "))


def said_kinds(kinds: Iterable[Kind]) -> str:
    """Kinds in words: "a time of day or an amount of money below 10,000"."""
    return " or ".join(SAID[kind] for kind in kinds)


def _kinds(names: Iterable[str]) -> tuple[Kind, ...]:
    asked = list(names)
    for name in asked:
        if name not in KINDS:
            raise UsageError(f"public kinds: '{name}' is none; {nearest(name, KINDS)}")
    return tuple(kind for kind in KINDS if kind in asked)


def _unfit(value: str) -> str:
    """Why a line is no value; "" if it is one."""
    if len(value) > LONGEST_VALUE:
        return f"longer than {LONGEST_VALUE} characters"
    if MASK in value:
        return f"with {MASK}"
    if "\x1e" in value or "\x1f" in value:
        return "with the border of a message"
    return "" if any(map(str.isalnum, key(value))) else "empty, or without a letter and a digit"


def _file(path: Path) -> tuple[set[str], Counter[str], str]:
    """(keys, lines left out by reason, SHA-256), in a pass that holds one block and the values."""
    found: set[str] = set()
    left_out: Counter[str] = Counter()
    digest = hashlib.sha256()
    try:
        for line in _lines(path, digest.update):
            reason = _unfit(line)
            if not reason:
                found.add(key(line))
            elif line.strip():
                left_out[reason] += 1
    except UnicodeDecodeError:
        raise DataError(f"public values: {path.name} is not UTF-8; convert it (iconv -t UTF-8)") from None
    except OSError as error:
        raise DataError(
            f"public values: {path.name} cannot be read ({type(error).__name__}); expected a text file, one value a line"
        ) from None
    return found, left_out, digest.hexdigest()


def _lines(path: Path, see: Callable[[bytes], object]) -> Iterator[str]:
    """Lines, without their LF or CRLF and the file's byte order mark; of one that is too long only that it is."""
    with path.open("rb") as file:
        first = True
        while raw := file.readline(_MOST):
            see(raw)
            cut = raw
            while len(cut) == _MOST and not cut.endswith(b"\n"):
                see(cut := file.readline(_MOST))
            if cut is not raw:
                raw = b"?" * _MOST
            yield raw.removeprefix(codecs.BOM_UTF8 if first else b"").decode().removesuffix("\n").removesuffix("\r")
            first = False


def _said(left_out: Mapping[str, int]) -> str:
    told = ", ".join(f"{count} {reason}" for reason, count in sorted(left_out.items()))
    return f"lines left out: {told}" if told else "it is empty"
