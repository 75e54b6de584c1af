"""What a person marked in particular records, as a detector (JFT, "selective manual screening").

A correction belongs to one text: there its spans are marked, beside whatever else π finds. So that "detected means ε = 0"
holds for them as for any span (Redact(s(x)) = Redact(s(<MASK>)), guarantees.md §2.1), it also belongs to that text with any
whole words replaced by ``<MASK>``, and to long fragments of a long text (the checks look at those): what is left of its
spans is marked there, too. The detector looks at one text at a time and knows nothing of the others: it is record-local.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from taciturn.errors import DataError, UsageError, nearest
from taciturn.screening.labels import read
from taciturn.screening.policies.base import CLEAN
from taciturn.screening.policies.finder import Detector
from taciturn.screening.policies.view import View
from taciturn.text.document import MASK
from taciturn.text.spans import Detection, Span

_WORD = re.compile(r"\w+")
_LONG, _FRAGMENT = 1024, 256
"""``redact.neighbours`` looks at fragments of at least 256 code points of records of more than 1,024."""


@dataclass(frozen=True, slots=True)
class Correction:
    """Spans a person marked in ``text`` (masks blanked as in a View)."""

    text: str = field(repr=False)
    spans: tuple[Span, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Corrections:
    """Marks in each corrected text, whole or partly masked, what a person marked there.

    salt: random, stored with the corrections: the definition is keyed with it, so that nobody can confirm a guessed text
    by the policy's identity.
    """

    corrections: tuple[Correction, ...] = field(repr=False)
    salt: str
    name: str = "corrections"
    _by_text: dict[str, Correction] = field(init=False, repr=False, compare=False, default_factory=dict)
    _by_word: dict[str, list[int]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for number, each in enumerate(self.corrections):
            self._by_text[each.text] = each
            for word in {word for s in each.spans for word in _WORD.findall(each.text[s.start : s.end])}:
                self._by_word.setdefault(word, []).append(number)

    @classmethod
    def read(cls, path: Path) -> Corrections:
        """From a file that `taciturn corrections export` wrote and a person corrected; lines that are not done are left
        out. Raises DataError."""
        lines = [line for line in read(path) if line.label_status == "done"]
        if not lines:
            raise DataError(f'{path.name}: no line has "label_status": "done"; set it on each line that was looked at')
        salts = {line.salt for line in lines}
        salt = salts.pop() if len(salts) == 1 else None
        if salt is None:
            raise DataError(f"{path.name}: lines without their salt; correct a file of: taciturn corrections export")
        return cls(
            tuple(
                Correction(View.of(line.text).text, tuple(Span(s.start, s.end, s.label) for s in line.spans))
                for line in lines
            ),
            salt,
        )

    def definition(self) -> Mapping[str, object]:
        keyed = hashlib.blake2b(digest_size=16, key=bytes.fromhex(self.salt), person=b"corrections")
        for each in sorted(self.corrections, key=lambda c: c.text):
            spans = [(s.start, s.end, s.label) for s in sorted(each.spans)]
            keyed.update(orjson.dumps([each.text, spans]) + b"\n")
        return {"kind": "corrections", "records": len(self.corrections), "digest": keyed.hexdigest()}

    def find(self, views: Sequence[View]) -> list[Detection]:
        return [Detection(spans) if (spans := tuple(self._spans(view))) else CLEAN for view in views]

    def local(self, view: View) -> bool:
        """A text without a word that someone marked is none of ours, however much of it is masked."""
        return self._by_word.keys().isdisjoint(_WORD.findall(view.text))

    def _spans(self, view: View) -> Iterator[Span]:
        exact = self._by_text.get(view.text)
        if exact is not None:
            yield from (Span(s.start, s.end, s.label, 1.0, self.name) for s in exact.spans)
        else:
            for each, whole in self._candidates(view):
                for at, there, length in alignment(view, each.text, whole) or ():
                    yield from self._left(each, at, there, length)

    def _candidates(self, view: View) -> Iterator[tuple[Correction, bool]]:
        """Corrections the view may be masked from, and whether from the whole of their text: a marked word is left in it."""
        masked, long = bool(view.masks), len(view.text) >= _FRAGMENT
        words = self._by_word.keys() & _WORD.findall(view.text) if masked or long else ()
        if not words:
            return
        head, tail = (view.text[: view.masks[0]], view.text[view.masks[-1] + len(MASK) :]) if masked else ("", "")
        for number in sorted({number for word in words for number in self._by_word[word]}):
            each = self.corrections[number]
            if masked and each.text.startswith(head) and each.text.endswith(tail):
                yield each, True
            if long and len(each.text) > _LONG:
                yield each, False

    def _left(self, each: Correction, at: int, there: int, length: int) -> Iterator[Span]:
        """What is left of the correction's spans in a piece that stands at ``at`` in the view and ``there`` in its text."""
        for s in each.spans:
            start, end = max(s.start, there), min(s.end, there + length)
            if start < end and _WORD.search(each.text, start, end):
                yield Span(start - there + at, end - there + at, s.label, 1.0, self.name)


def alignment(view: View, text: str, whole: bool = True) -> list[tuple[int, int, int]] | None:
    """Where the pieces between the view's masks stand in ``text``: (start in the view, start in the text, length) of each.

    None if the view is not ``text`` (or, unless ``whole``, a fragment of it) with whole words masked. Of several ways the
    leftmost is taken.
    """
    starts = [0, *(mask + len(MASK) for mask in view.masks)]
    stops = [*view.masks, len(view.text)]
    found: list[tuple[int, int, int]] = []
    end = -1  # of the piece before, in text; a mask stands for at least one character
    for number, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        piece = view.text[start:stop]
        first, last = number == 0, number == len(starts) - 1
        place = text.find(piece, end + 1)
        if first and whole:
            place = 0 if text.startswith(piece) else -1
        if last and whole:
            at = len(text) - len(piece)
            place = at if end < at and text.endswith(piece) and (not first or at == 0) else -1
        while place >= 0 and not ((first or _edge(text, place)) and (last or _edge(text, place + len(piece)))):
            place = -1 if whole and (first or last) else text.find(piece, place + 1)
        if place < 0:
            return None
        found.append((start, place, len(piece)))
        end = place + len(piece)
    return found


def _edge(text: str, at: int) -> bool:
    """Whether no word goes on across ``at``."""
    return at in (0, len(text)) or not (_WORD.match(text[at - 1]) and _WORD.match(text[at]))


def named(argument: str, options: Mapping[str, object]) -> list[Detector]:
    """``corrections:FILE``. Raises UsageError for a missing file or any option, DataError for a file that is none."""
    for option in options:
        raise UsageError(f"corrections: unknown option '{option}'; {nearest(option, ['use'])}")
    if not argument or not Path(argument).is_file():
        raise UsageError(
            f"corrections: no such file: '{argument}'; name the corrected file, as in corrections:done.jsonl"
        )
    return [Corrections.read(Path(argument))]
