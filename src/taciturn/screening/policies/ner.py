"""spaCy's names and grammar as detectors: the four levels of JFT (Shi et al. 2022, section 4), for any spaCy pipeline.

low-entity: persons, organisations, dates, locations. high-entity: every entity label of the pipeline (18 for English).
low-contextual: also proper nouns, pronouns, subjects and objects. high-contextual: also verbs. Each level marks what the one
before it marks.

These are the levels as the paper states them. Its code leaves LOC out of low-entity and takes any dependency label that
contains "subj" or "obj"; here the labels are listed. What a name is, is the model's opinion of the words around it: results
hold for a pipeline and a version, both of which are in the definition, and no span is certain to be found again once another
is masked (``local`` is always False). spaCy computes a text to the same bits whatever it is batched with (on a CPU; tested).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from taciturn.errors import UsageError, nearest
from taciturn.screening.policies import pipelines, windows
from taciturn.screening.policies.base import CLEAN
from taciturn.screening.policies.family_options import checked
from taciturn.screening.policies.finder import Detector
from taciturn.screening.policies.pipelines import GRAMMAR, LEMMAS, NEVER, Pipeline
from taciturn.screening.policies.view import View
from taciturn.text.spans import Detection, Span

LEVELS = ("low-entity", "high-entity", "low-contextual", "high-contextual")

_LOW = frozenset(label for labels in pipelines.KINDS.values() for label in labels)

# spaCy's English labels (ClearNLP) and those of Universal Dependencies, a subtype such as nsubj:pass cut off. No object:
# attr and oprd (predicates), agent (a preposition). An oblique noun of UD is ClearNLP's object of a preposition.
_SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass"})
_OBJECTS = frozenset({"dobj", "obj", "iobj", "pobj", "dative", "obl"})

# Code points. spaCy needs up to 10 kB of memory a code point while it works on a text.
WINDOW, OVERLAP = 20_000, 1_000


@dataclass(frozen=True, slots=True)
class SpacyLevel:
    """One level with one pipeline. labels: the entity labels that count."""

    level: str
    pipeline: Pipeline
    labels: tuple[str, ...]
    name: str

    def definition(self) -> Mapping[str, object]:
        return {
            "kind": "spacy",
            "level": self.level,
            "labels": sorted(self.labels),
            "window": [WINDOW, OVERLAP],
            **self.pipeline.definition(),
        }

    def find(self, views: Sequence[View]) -> list[Detection]:
        """A text with a lone surrogate, which spaCy does not take, has the status "error"."""
        return windows.find([view.text for view in views], self._find, WINDOW, OVERLAP)

    def local(self, view: View) -> bool:  # noqa: ARG002  a model reads the context
        return False

    def _find(self, texts: Sequence[str]) -> list[Detection]:
        contextual = self.level.endswith("contextual")
        dropped = NEVER | LEMMAS if contextual else NEVER | LEMMAS | GRAMMAR
        reader = _Reader(self.name, frozenset(self.labels), contextual, self.level == "high-contextual")
        found = pipelines.analyse(pipelines.loaded(self.pipeline, dropped), texts, reader)
        return [Detection(status="error") if spans is None else Detection(spans) if spans else CLEAN for spans in found]


@dataclass(frozen=True, slots=True)
class _Reader:
    """Spans of an analysed text."""

    name: str
    labels: frozenset[str]
    contextual: bool
    verbs: bool

    def __call__(self, doc: Any) -> tuple[Span, ...]:
        return tuple(self._spans(doc))

    def _spans(self, doc: Any) -> Iterator[Span]:
        for entity in doc.ents:
            if entity.label_ in self.labels:
                yield Span(entity.start_char, entity.end_char, entity.label_, 1.0, self.name)
        if self.contextual:
            for token in doc:
                if role := self._role(token):
                    yield Span(token.idx, token.idx + len(token), role, 1.0, self.name)

    def _role(self, token: Any) -> str:
        part, relation = token.pos_, token.dep_.partition(":")[0]
        if part in ("PROPN", "PRON") or (self.verbs and part == "VERB"):
            return str(part)
        if relation in _SUBJECTS:
            return "subject"
        # "gave it to her": ClearNLP calls "to" a dative, and "her" its object.
        return "object" if relation in _OBJECTS and part != "ADP" else ""


class _Options(BaseModel):
    """labels: the entity labels that count, instead of the level's."""

    model_config = ConfigDict(extra="forbid", strict=True)

    labels: list[str] = Field(default=[], min_length=1)


OPTIONS = frozenset(_Options.model_fields)


def named(argument: str, options: Mapping[str, object]) -> list[Detector]:
    """``spacy:LEVEL`` or ``spacy:LEVEL@PIPELINE`` (a pipeline package or folder; without it a small English one).

    Raises UsageError (unknown level, pipeline, option or label, naming the nearest), MissingExtra (no spaCy).
    """
    level, _, wanted = argument.partition("@")
    if level not in LEVELS:
        raise UsageError(f"spacy: unknown level '{level}'; {nearest(level, LEVELS)}")
    found = pipelines.pipeline(wanted)
    entities = found.assigns("ner")
    if not entities:
        raise UsageError(f"spacy: the pipeline '{found.name}' has no named entities; choose one with a 'ner' pipe")
    if level.endswith("contextual"):
        relations = {label.partition(":")[0] for label in found.assigns("parser")}
        if not (relations & _SUBJECTS and relations & _OBJECTS):
            raise UsageError(
                f"spacy: the pipeline '{found.name}' has no parser whose subjects and objects are known here (English and "
                "Universal Dependencies are); choose an entity level or another pipeline"
            )
    labels = checked(_Options, options, "spacy").labels
    for label in labels:
        if label not in entities:
            raise UsageError(f"spacy: '{found.name}' has no label '{label}'; {nearest(label, entities)}")
    level_labels = [label for label in entities if label in _LOW] if level == "low-entity" else entities
    if not level_labels:
        raise UsageError(
            f"spacy: '{found.name}' names neither persons, places, organisations nor dates as other pipelines do; say which "
            f"of its labels count: labels = [...] in a policy file; it has {', '.join(entities)}"
        )
    return [SpacyLevel(level, found, tuple(labels or level_labels), f"spacy:{argument}")]
