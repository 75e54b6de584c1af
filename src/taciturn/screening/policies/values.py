"""``values:customers.csv#name,phone`` and ``wordlist:names.txt``: what a table or a list says is secret, wherever it stands.

The file is secret itself: none of its values appears in an error, a name or a definition. A definition does hold a digest of
the set of values, a function of secrets: who can list all the sets a table may hold can test them against it.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from taciturn.errors import DataError, UsageError, nearest
from taciturn.screening.policies import columns
from taciturn.screening.policies.base import CLEAN
from taciturn.screening.policies.family_options import checked, split
from taciturn.screening.policies.finder import Detector
from taciturn.screening.policies.lexicon import Key, Lexicon, Matching, key
from taciturn.screening.policies.rare_words import common_words, excused
from taciturn.screening.policies.rare_words import names as people
from taciturn.screening.policies.view import View
from taciturn.text.document import MASK
from taciturn.text.spans import Detection, Span

LONGEST = 256
"""Longer values (code points) are taken for prose and left out."""

_COMMON = 5.0
_EXAMPLES = 5


class Options(BaseModel):
    """match: "folded" (Unicode variants, case, punctuation between words, grouping of digits do not count) or "exact".
    accents: whether they count, when folded. min_length: shorter values are left out (by default than two letters, or than
    three characters with a digit); a letter of a script without blanks counts as two. common: what becomes of single words
    like "the": "skip" or "keep". label: of the spans, by column if it is a table; the name of the column or the list
    otherwise."""

    model_config = ConfigDict(extra="forbid", strict=True)

    match: Literal["exact", "folded"] = "folded"
    accents: bool = True
    min_length: int | None = Field(default=None, ge=1)
    common: Literal["skip", "keep"] = "skip"
    label: str | dict[str, str] = ""


OPTIONS = tuple(Options.model_fields)


@dataclass(frozen=True, slots=True)
class Source:
    """Where values come from and which of them count. columns: empty for a list."""

    path: Path
    columns: tuple[str, ...]
    labels: tuple[str, ...]
    matching: Matching
    min_length: int | None
    keep_common: bool


@dataclass(frozen=True, slots=True)
class Loaded:
    """left_out: how many values, by reason. examples: a few values as they stand in the file."""

    lexicon: Lexicon
    left_out: Mapping[str, int]
    examples: tuple[str, ...] = field(repr=False)


@lru_cache(maxsize=4)
def load(source: Source) -> Loaded:
    """Read and indexed; once in a process. Raises DataError: the file cannot be read, or no value is left."""
    tally: Counter[str] = Counter()
    examples: list[str] = []

    def keys() -> Iterator[tuple[int, Key]]:
        for number, cell in (
            columns.cells(source.path, source.columns) if source.columns else columns.lines(source.path)
        ):
            found = key(cell, source.matching) if len(cell) <= LONGEST else None
            reason = _refused(cell, found, source)
            if reason is None and found is not None:
                if len(examples) < _EXAMPLES:
                    examples.append(cell)
                yield number, found
            elif reason:
                tally[reason] += 1

    lexicon = Lexicon.of(keys(), source.matching)
    if not len(lexicon):
        raise DataError(f"{source.path.name}: no value is left to look for; left out: {_reasons(tally)}")
    return Loaded(lexicon, dict(tally), tuple(examples))


def _refused(cell: str, found: Key | None, source: Source) -> str | None:
    """Why a value is left out: None if it is not, "" for an empty one."""
    if found is None:
        return "" if not cell.strip() else "longer than 256" if len(cell) > LONGEST else "no letter or digit"
    if MASK in cell:
        return f"with {MASK}"
    least = source.min_length or (3 if any(map(str.isdigit, cell)) else 2)
    if found.size < least:
        return f"shorter than {least}"
    if not source.keep_common and len(found.words) == 1 and found.words[0].casefold() in _ordinary():
        return "common words"
    return None


@cache
def _ordinary() -> frozenset[str]:
    # Of two letters only function words: most of the others are names as well (al, ed, jo).
    return frozenset(({w for w in common_words(_COMMON) if len(w) > 2} | excused()) - people())


def _reasons(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(left_out.items())) or "none"


@dataclass(frozen=True, slots=True)
class Values:
    """Every occurrence of every value, as whole words. Of two that overlap both are marked; one inside another is not.

    A worker process gets the name of the file and reads it again: digest says that it is the same.
    """

    source: Source
    digest: str
    name: str

    @classmethod
    def of(cls, source: Source, name: str) -> Values:
        """Reads the file, tries a few of its values, and warns of those left out, by number.

        Raises DataError: the file cannot be read or has nothing to look for. UsageError: a value is not found in itself.
        """
        loaded = load(source)
        detector = cls(source, loaded.lexicon.digest, name)
        for found in detector.find([View.of(f"({example})") for example in loaded.examples]):
            if not found.spans:
                raise UsageError(f"detector '{name}': one of the first {_EXAMPLES} values is not found by itself")
        if loaded.left_out:
            warnings.warn(f"detector '{name}': left out {_reasons(loaded.left_out)}", stacklevel=2)
        return detector

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.source.labels))

    def definition(self) -> Mapping[str, object]:
        return {
            "kind": "values",
            "matching": asdict(self.source.matching),
            "labels": list(self.source.labels),
            "digest": self.digest,
        }

    def find(self, views: Sequence[View]) -> list[Detection]:
        lexicon, labels = self._lexicon(), self.source.labels
        folded = self.source.matching.folded
        found = []
        for view in views:
            hits = lexicon.find(view.shadow if folded else view.text)
            found.append(
                Detection(
                    tuple(
                        Span(*(view.original(start, end) if folded else (start, end)), labels[label], 1.0, self.name)
                        for start, end, label in hits
                    )
                )
                if hits
                else CLEAN
            )
        return found

    def local(self, view: View) -> bool:
        """Single words are marked by what they are; a part of a longer value is not."""
        return self._lexicon().single(view.shadow if self.source.matching.folded else view.text)

    def _lexicon(self) -> Lexicon:
        lexicon = load(self.source).lexicon
        if lexicon.digest != self.digest:
            raise DataError(f"{self.source.path.name} is not the file that detector '{self.name}' was made from")
        return lexicon


def named(argument: str, options: Mapping[str, object]) -> list[Detector]:
    """The detector of ``values:FILE#column,...``: CSV, TSV, Parquet or JSON lines; every column with text if none is named.

    Raises UsageError: a column or an option there is not; DataError: see ``Values.of``.
    """
    chosen = checked(Options, options, "values")
    path, wanted = _parts(argument)
    used = columns.names(path, wanted)
    if isinstance(chosen.label, dict):
        for column in chosen.label:
            if column not in used:
                raise UsageError(f"values: label for a column '{column}' that is not used; {nearest(column, used)}")
        labels = tuple(chosen.label.get(column, column) for column in used)
    else:
        labels = tuple(chosen.label or column for column in used)
    shown = f"values:{path.name}" + (f"#{','.join(wanted)}" if wanted else "")
    return [Values.of(_source(path, used, labels, chosen), shown)]


def wordlist(argument: str, options: Mapping[str, object]) -> list[Detector]:
    """The detector of ``wordlist:FILE``, one value a line."""
    chosen = checked(Options, options, "wordlist")
    if isinstance(chosen.label, dict):
        raise UsageError("wordlist: a list has no columns; label is one word")
    path = Path(argument).resolve()
    return [Values.of(_source(path, (), (chosen.label or path.stem,), chosen), f"wordlist:{path.name}")]


def _source(path: Path, used: tuple[str, ...], labels: tuple[str, ...], options: Options) -> Source:
    matching = Matching(options.match == "folded", options.accents)
    return Source(path, used, labels, matching, options.min_length, options.common == "keep")


def _parts(argument: str) -> tuple[Path, tuple[str, ...]]:
    if not argument:
        raise UsageError("values: name a file, as in values:customers.csv#name,phone")
    file, hash_, wanted = argument.rpartition("#")
    if not hash_ or Path(argument).exists():  # a file may have a '#' in its name
        return Path(argument).resolve(), ()
    return Path(file).resolve(), split(wanted)
