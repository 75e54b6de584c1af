"""What a policy is: detectors joined by union, with an identity that changes when any of their definitions does."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

import orjson

from taciturn.screening.policies.deadline import Late, deadline
from taciturn.screening.policies.finder import Detector, Patterned
from taciturn.screening.policies.prefilter import Prefilter
from taciturn.screening.policies.relax import consumes
from taciturn.screening.policies.view import BLANK, View
from taciturn.text.chat import heads
from taciturn.text.decode import CODED, VERSION, Decoded, decode, mixed
from taciturn.text.document import MASK
from taciturn.text.spans import Detection, Status

CLEAN = Detection()
_SEVERITY: dict[Status, int] = {"ok": 0, "truncated": 1, "timeout": 2, "error": 3}


@dataclass(frozen=True)
class Policy:
    """A union of detectors.

    name: for people. identity: 32 hex digits, a hash of all definitions; equal identities find the same spans.
    """

    detectors: tuple[Detector, ...]
    name: str

    @cached_property
    def identity(self) -> str:
        each = [*(dict(d.definition()) for d in self.detectors), {"kind": "decoded", "version": VERSION}]
        definitions = sorted(each, key=lambda d: orjson.dumps(d, option=_SORTED))
        return hashlib.blake2b(orjson.dumps(definitions, option=_SORTED), digest_size=16).hexdigest()

    @property
    def version(self) -> str:
        """The first eight digits of the identity, for tables."""
        return self.identity[:8]

    @cached_property
    def covers_all(self) -> bool:
        """Whether every character of every text is marked, so that no secret can be missed."""
        return any(getattr(d, "covers_all", False) for d in self.detectors)

    def find(self, texts: Sequence[str]) -> list[Detection]:
        """The union of what the detectors find in each text.

        A ``<MASK>`` is never marked by itself, and the head of a message never at all: it is the form of the record, and a
        role such as "first" is a word to a recogniser. A detector that raises gives the status "error" (its message is
        dropped: it may quote the text), one that takes too long "timeout"; of several statuses the worst is kept.
        Detectors with a pattern look only at texts that the prefilter lets through. A text that holds encodings is looked
        at as it stands and as it reads without them (text/decode.py).
        """
        found, coded = self._seen(texts)
        read = {i: decoded for i in coded if (decoded := decode(texts[i])).layers} if not self.covers_all else {}
        inside, _ = self._seen([decoded.text for decoded in read.values()])
        for place, (i, decoded) in enumerate(read.items()):
            known = {(span.start, span.end, span.detector) for each in found.get(i, ()) for span in each.spans}
            found.setdefault(i, []).extend(_outside(each, decoded, known) for each in inside.get(place, ()))
        return self._joined(texts, found)

    def words(self, texts: Sequence[str]) -> list[Detection]:
        """What is found without patterns: word by word, in a text that is ``apart``."""
        return self._joined(texts, self._unpatterned(texts, {}))

    def patterns(self, texts: Sequence[str]) -> list[Detection]:
        """All that may be found in a stretch of a text that is ``apart`` and not in the text: what patterns find."""
        return self._joined(texts, self._patterned(texts, self._candidates(texts)))

    def _seen(self, texts: Sequence[str]) -> tuple[dict[int, list[Detection]], list[int]]:
        """By text what each detector finds in it as it stands, and the texts that may hold encodings."""
        candidates = self._candidates(texts)
        coded = candidates.get(self._coded, [])
        found = self._unpatterned(texts, self._patterned(texts, candidates))
        return found, sorted({*coded, *(i for i, text in enumerate(texts) if mixed(text))})

    def _patterned(self, texts: Sequence[str], candidates: Mapping[int, list[int]]) -> dict[int, list[Detection]]:
        found: dict[int, list[Detection]] = {}
        for number, places in candidates.items():
            if number != self._coded:
                _keep(found, places, _guarded(self._patterns[number], [View.of(texts[i]) for i in places]))
        return found

    def _unpatterned(self, texts: Sequence[str], found: dict[int, list[Detection]]) -> dict[int, list[Detection]]:
        if self._others:
            views = [View.of(text) for text in texts]
            for detector in self._others:
                _keep(found, range(len(texts)), _guarded(detector, views))
        return found

    def _joined(self, texts: Sequence[str], found: Mapping[int, Sequence[Detection]]) -> list[Detection]:
        answers = [CLEAN] * len(texts)
        for i, detections in found.items():
            text = texts[i]
            both = union(detections, View.of(text) if MASK in text else None)
            answers[i] = both if self.covers_all else _beside(both, heads(text))
        return answers

    @cached_property
    def _others(self) -> tuple[Detector, ...]:
        return tuple(d for d in self.detectors if not isinstance(d, Patterned))

    @cached_property
    def _patterns(self) -> tuple[Patterned, ...]:
        return tuple(d for d in self.detectors if isinstance(d, Patterned))

    @cached_property
    def _prefilter(self) -> Prefilter:
        return Prefilter.of((*((d.pattern, d.ignore_case) for d in self._patterns), (CODED, False)))

    @property
    def _coded(self) -> int:
        """The number of encodings in the prefilter, behind those of patterns."""
        return len(self._patterns)

    def __reduce__(self) -> tuple[type[Policy], tuple[tuple[Detector, ...], str]]:
        return Policy, (self.detectors, self.name)  # a compiled set cannot travel to another process

    def local(self, texts: Sequence[str]) -> list[bool]:
        """See Detector.local; of every detector.

        A pattern that never takes in a mask's blanks matches a masked text only inside what was left of the original, and
        there its relaxed form matched before. So where that does not match, no masking makes the pattern match. (Unless a
        combining mark is parted from its letter, which changes the letter.) An encoding may be cut by a mask and read
        otherwise: a text that holds one is not local.
        """
        return self._unless(texts, lambda number: number not in self._sighted)

    def apart(self, texts: Sequence[str]) -> list[bool]:
        """Whether, in this text and in all its maskings, what is found in L<MASK>R is what is found in L<MASK> and in
        <MASK>R. A detector says so of itself by an attribute ``apart``; a local one has nothing to find but single words."""
        return self._unless(
            texts,
            lambda number: (
                number == self._coded
                or (number not in self._sighted and not getattr(self._patterns[number], "apart", False))
            ),
        )

    def _unless(self, texts: Sequence[str], hinders: Callable[[int], bool]) -> list[bool]:
        """Of each text: no pattern whose number ``hinders`` may match in a masking, and the other detectors are local."""
        moved = {i for number, places in self._candidates(texts).items() if hinders(number) for i in places}
        rest = [*(self._patterns[number] for number in self._sighted), *self._others]
        return [i not in moved and _still(View.of(text), rest) for i, text in enumerate(texts)]

    def _candidates(self, texts: Sequence[str]) -> dict[int, list[int]]:
        """``Prefilter.candidates`` of the shadows, with those of recent short texts remembered: ``local`` and ``apart`` ask
        about texts in which something was found."""
        memory = self._scanned
        numbers = {text: memory.get(text) for text in texts}
        new = [text for text, known in numbers.items() if known is None]
        if new:
            scanned: dict[str, tuple[int, ...]] = dict.fromkeys(new, ())
            shadows = [text if MASK not in text and text.isascii() else View.of(text).shadow for text in new]
            for number, places in self._prefilter.candidates(shadows).items():
                for i in places:
                    scanned[new[i]] += (number,)
            numbers |= scanned
            if len(memory) + len(new) > KEPT:
                memory.clear()
            memory.update({text: its for text, its in scanned.items() if len(text) <= LONGEST})
        found: dict[int, list[int]] = {}
        for i, text in enumerate(texts):
            for number in numbers[text] or ():
                found.setdefault(number, []).append(i)
        return found

    @cached_property
    def _scanned(self) -> dict[str, tuple[int, ...]]:
        return {}

    @cached_property
    def _sighted(self) -> tuple[int, ...]:
        """Numbers of the patterns whose matches may reach over a mask."""
        return tuple(n for n, d in enumerate(self._patterns) if consumes(d.pattern, BLANK, d.ignore_case))


def _still(view: View, detectors: Sequence[Detector]) -> bool:
    """Whether what these find stays as it is, and so does the shadow."""
    for detector in detectors:
        if not detector.local(view):
            return False
    return not _composes(view.text) and not mixed(view.text)


def _composes(text: str) -> bool:
    """Whether a cut between words may change the folded shadow of what is left."""
    return not text.isascii() and any(map(unicodedata.combining, text))


def _beside(detection: Detection, heads: Sequence[tuple[int, int]]) -> Detection:
    """What is left of the spans outside the heads of messages."""
    if not heads or not detection.spans:
        return detection
    spans = []
    for span in detection.spans:
        at = span.start
        for start, end in heads:
            if start < span.end and at < end:
                if at < start:
                    spans.append(replace(span, start=at, end=start))
                at = max(at, end)
        if at < span.end:
            spans.append(replace(span, start=at))
    return replace(detection, spans=tuple(sorted(spans, key=_PLACE)))


def _outside(detection: Detection, decoded: Decoded, known: set[tuple[int, int, str]]) -> Detection:
    """What was found in a decoded text and not before, in offsets of the text itself."""
    spans = [span for span in detection.spans if span.end > span.start]
    places = [decoded.original(span.start, span.end) for span in spans]
    moved = [
        replace(s, start=a, end=b) for s, (a, b) in zip(spans, places, strict=True) if (a, b, s.detector) not in known
    ]
    return replace(detection, spans=tuple(moved))


def worst(*statuses: Status) -> Status:
    """The least finished of them."""
    return "ok" if statuses == ("ok", "ok") else max(statuses, key=_SEVERITY.__getitem__)


# Processor seconds a call may take, and seconds a code point: of models, of patterns.
_PATIENCE = {False: (120.0, 0.01), True: (10.0, 2e-5)}
KEPT, LONGEST = 1 << 15, 4096
"""Texts that are remembered, and of how many code points at most."""
_SORTED = orjson.OPT_SORT_KEYS
_PLACE = attrgetter("start", "end")


def _keep(found: dict[int, list[Detection]], places: Sequence[int], detections: Sequence[Detection]) -> None:
    for place, detection in zip(places, detections, strict=True):
        if detection is not CLEAN:
            found.setdefault(place, []).append(detection)


def _guarded(detector: Detector, views: Sequence[View]) -> list[Detection]:
    """``detector.find``; when a batch fails or takes too long, text by text, so that only the texts to blame are lost."""
    base, each = _PATIENCE[isinstance(detector, Patterned)]
    status: Status = "error"
    try:
        with deadline(base + each * sum(len(view.text) for view in views)):
            found = detector.find(views)
        if len(found) == len(views):
            return found
    except Exception:
        pass
    except Late:
        status = "timeout"
    if len(views) == 1:
        return [Detection(status=status)]
    return [_guarded(detector, [view])[0] for view in views]


def union(detections: Sequence[Detection], view: View | None = None) -> Detection:
    """All spans (those wholly inside a ``<MASK>`` of the view dropped) and the worst status."""
    busy = [d for d in detections if d is not CLEAN and (d.spans or d.status != "ok")]
    if not busy:
        return CLEAN
    spans = [s for d in busy for s in d.spans if s.end > s.start]
    if view is not None and view.masks:
        spans = [s for s in spans if not any(start <= s.start and s.end <= start + len(MASK) for start in view.masks)]
    spans.sort(key=_PLACE)
    return Detection(tuple(spans), worst(*(d.status for d in busy)))
