"""A detector with fewer labels, a higher bar, or another name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from taciturn.errors import UsageError, nearest
from taciturn.screening.policies.base import CLEAN
from taciturn.screening.policies.finder import Detector
from taciturn.screening.policies.view import View
from taciturn.text.spans import Detection


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What ``detector`` finds with one of ``labels`` (none: any) and a score of at least ``threshold``.

    A status passes through: what failed, failed. Raises UsageError: a threshold outside [0, 1], or a label that the detector
    says it does not have.
    """

    detector: Detector
    name: str
    labels: tuple[str, ...] = ()
    threshold: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.threshold <= 1.0:
            raise UsageError(f"detector '{self.name}': threshold must lie in [0, 1], found {self.threshold:g}")
        known = labels_of(self.detector)
        for label in self.labels:
            if known is not None and label not in known:
                raise UsageError(f"detector '{self.name}': unknown label '{label}'; {nearest(label, known)}")

    def definition(self) -> Mapping[str, object]:
        return {
            "kind": "narrowed",
            "name": self.name,
            "labels": sorted(self.labels),
            "threshold": self.threshold,
            "detector": dict(self.detector.definition()),
        }

    def find(self, views: Sequence[View]) -> list[Detection]:
        return [self._narrow(d) for d in self.detector.find(views)]

    def local(self, view: View) -> bool:  # noqa: ARG002  masking may change labels and scores
        return False

    def _narrow(self, found: Detection) -> Detection:
        kept = tuple(
            s for s in found.spans if s.score >= self.threshold and (not self.labels or s.label in self.labels)
        )
        return Detection(kept, found.status) if kept or found.status != "ok" else CLEAN


def labels_of(detector: Detector) -> tuple[str, ...] | None:
    """The labels a detector can give; None when it does not say."""
    labels = getattr(detector, "labels", None)
    if labels:
        return tuple(labels)
    label = getattr(detector, "label", None)
    return None if label is None else (label or detector.name,)
