"""A detector that marks all there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from taciturn.screening.policies.base import CLEAN
from taciturn.screening.policies.view import View
from taciturn.text.spans import Detection, Span


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
