"""Policies with a known recall: what is annotated, some of it, and canaries that a detector is made to see or to miss."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taciturn.screening.policies.base import Policy
    from taciturn.screening.policies.view import View
    from taciturn.text.document import Document
    from taciturn.text.spans import Detection, Span

SALT = "00" * 16
"""Of corrections: what they mark is simulated or published text."""


def annotated(documents: Sequence[Document], wanted: Callable[[Document, Span], bool] = lambda _, __: True) -> Policy:
    """Marks the annotated spans of these texts that are ``wanted``, and nothing else."""
    from dataclasses import replace

    import taciturn as tt
    from taciturn.screening.policies.corrections import Correction, Corrections
    from taciturn.screening.policies.view import View

    marked = [
        Correction(View.of(d.text).text, tuple(replace(s) for s in sorted(found)))
        for d in documents
        if (found := [s for s in d.gold if wanted(d, s)])
    ]
    return tt.policy(Corrections(tuple(marked), SALT), name="annotated")


@dataclass(frozen=True, slots=True)
class Rigged:
    """A detector that on given texts says what one tells it, and elsewhere what ``inner`` finds.

    told: the spans to mark in a text; none at all for one that the detector is made to miss (JFT 6.4).
    """

    inner: Any
    told: Mapping[str, tuple[Span, ...]] = field(repr=False)
    name: str = "rigged"

    def definition(self) -> Mapping[str, object]:
        texts = "\n".join(f"{text}\t{[(s.start, s.end) for s in spans]}" for text, spans in sorted(self.told.items()))
        digest = hashlib.blake2b(texts.encode(), digest_size=16).hexdigest()
        return {"kind": "rigged", "inner": dict(self.inner.definition()), "told": digest}

    def find(self, views: Sequence[View]) -> list[Detection]:
        from taciturn.text.spans import Detection

        found: list[Detection] = self.inner.find(views)
        return [
            Detection(self.told[view.text]) if view.text in self.told else each
            for view, each in zip(views, found, strict=True)
        ]

    def local(self, view: View) -> bool:  # noqa: ARG002  inner may read the context
        return False
