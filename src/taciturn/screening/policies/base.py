"""What a policy is: detectors joined by union, with an identity that changes when any of their definitions does."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Protocol

import orjson

from taciturn.screening.policies.view import View
from taciturn.text.document import MASK
from taciturn.text.spans import Detection, Span, Status

CLEAN = Detection()
_SEVERITY: dict[Status, int] = {"ok": 0, "truncated": 1, "timeout": 2, "error": 3}


class Detector(Protocol):
    """Finds one kind of thing. Record-local: what it returns for a view depends on that view and its own definition only."""

    @property
    def name(self) -> str: ...

    def definition(self) -> Mapping[str, object]:
        """Everything that decides what is found, as JSON values: it becomes part of the policy's identity."""

    def find(self, views: Sequence[View]) -> list[Detection]:
        """One detection a view, spans in offsets of the original text. May raise: the record is then private."""

    def local(self, view: View) -> bool:
        """Whether, in this text, masking any whole marked words leaves the marks on all other words as they are. True
        saves a check of that; False is always right."""


class Finder(Protocol):
    """What redaction needs of a policy: texts in, detections out."""

    @property
    def identity(self) -> str: ...

    def find(self, texts: Sequence[str]) -> list[Detection]: ...

    def local(self, texts: Sequence[str]) -> list[bool]: ...


@dataclass(frozen=True)
class Policy:
    """A union of detectors.

    name: for people. identity: 32 hex digits, a hash of all definitions; equal identities find the same spans.
    """

    detectors: tuple[Detector, ...]
    name: str

    @cached_property
    def identity(self) -> str:
        definitions = sorted(
            (dict(d.definition()) for d in self.detectors), key=lambda d: orjson.dumps(d, option=_SORTED)
        )
        return hashlib.blake2b(orjson.dumps(definitions, option=_SORTED), digest_size=16).hexdigest()

    @property
    def version(self) -> str:
        """The first eight digits of the identity, for tables."""
        return self.identity[:8]

    @property
    def covers_all(self) -> bool:
        """Whether every character of every text is marked, so that no secret can be missed."""
        return any(getattr(d, "covers_all", False) for d in self.detectors)

    def find(self, texts: Sequence[str]) -> list[Detection]:
        """The union of what the detectors find in each text.

        A ``<MASK>`` is never marked by itself. A detector that raises gives the status "error" (its message is dropped: it
        may quote the text); of several statuses the worst is kept.
        """
        views = [View.of(text) for text in texts]
        columns = [_guarded(detector, views) for detector in self.detectors]
        rows = zip(*columns, strict=True) if columns else ((),) * len(views)
        return [union(row, view) for row, view in zip(rows, views, strict=True)]

    def local(self, texts: Sequence[str]) -> list[bool]:
        """See Detector.local; of every detector."""
        return [all(d.local(view) for d in self.detectors) for view in map(View.of, texts)]


_SORTED = orjson.OPT_SORT_KEYS
_PLACE = attrgetter("start", "end")


def _guarded(detector: Detector, views: Sequence[View]) -> list[Detection]:
    """``detector.find``; when a batch raises, text by text, so that only the texts that fail are lost."""
    try:
        found = detector.find(views)
        if len(found) == len(views):
            return found
    except Exception:
        pass
    if len(views) == 1:
        return [Detection(status="error")]
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
    return Detection(tuple(spans), max((d.status for d in busy), key=_SEVERITY.__getitem__))


@dataclass(frozen=True, slots=True)
class Everything:
    """Marks the whole text: with it as π_c every record is private and no secret can be missed (plain DP-SGD on all)."""

    name: str = "all-private"
    covers_all: bool = field(default=True, init=False)

    def definition(self) -> Mapping[str, object]:
        return {"kind": "everything"}

    def find(self, views: Sequence[View]) -> list[Detection]:
        return [Detection((Span(0, len(v.text), "text", 1.0, self.name),)) if v.text else CLEAN for v in views]

    def local(self, view: View) -> bool:  # noqa: ARG002  there is nothing else to mark
        return True
