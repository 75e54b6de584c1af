"""Microsoft Presidio's analyzer as a detector, offline and without its logs.

What is found is what ``BatchAnalyzerEngine`` finds in the folded text (view.py) with the same spaCy pipeline, in texts of up
to a window. Differences on purpose: organisations count, which Presidio's settings leave out for their false positives;
Presidio fetches the public-suffix list to check e-mail domains, here the list that comes with tldextract is used; Presidio
logs matched text (at the level ERROR for an IBAN), here nothing; Presidio goes on without the matches of a pattern that
timed out, here the record has the status "timeout"; a piece of a number stands for all of it (number_runs.py). Of
another language than English every recognizer is used that Presidio has for it, those too that are off by default; where no
spaCy pipeline of it is installed, entities that patterns find can still be asked for by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from taciturn.errors import MissingExtra, UsageError, nearest
from taciturn.screening.policies import pipelines, windows
from taciturn.screening.policies.base import CLEAN
from taciturn.screening.policies.family_options import checked, split
from taciturn.screening.policies.finder import Detector
from taciturn.screening.policies.pipelines import Pipeline
from taciturn.screening.policies.presidio_engine import NAMES, Engine, Heard, engine, known_entities, languages, muted
from taciturn.screening.policies.view import View
from taciturn.text.spans import Detection, Span, Status

# Code points.
WINDOW, OVERLAP = 20_000, 1_000


@dataclass(frozen=True, slots=True)
class Presidio:
    """entities: what to look for; empty for those of Presidio's default recognizers. threshold: lowest score that counts.
    language: ISO 639 code, of Presidio's recognizers."""

    pipeline: Pipeline
    entities: tuple[str, ...]
    threshold: float
    name: str
    language: str = "en"

    def definition(self) -> Mapping[str, object]:
        packages = ("presidio-analyzer", "phonenumbers", "tldextract")
        return {
            "kind": "presidio",
            "entities": sorted(self.entities),
            "threshold": self.threshold,
            "window": [WINDOW, OVERLAP],
            "packages": {package: version(package) for package in packages},
            **({} if self.language == "en" else {"language": self.language}),
            **self.pipeline.definition(),
        }

    def find(self, views: Sequence[View]) -> list[Detection]:
        """A text with a lone surrogate has the status "error", one on which a pattern ran out of time "timeout"."""
        found = windows.find([view.shadow for view in views], self._find, WINDOW, OVERLAP)
        return [
            Detection(
                tuple(Span(*view.original(s.start, s.end), s.label, s.score, s.detector) for s in d.spans), d.status
            )
            if view.folded is not None and d.spans
            else d
            for view, d in zip(views, found, strict=True)
        ]

    def local(self, view: View) -> bool:  # noqa: ARG002  a model reads the context
        return False

    def _find(self, texts: Sequence[str]) -> list[Detection]:
        with muted() as heard:
            parts = engine(self.pipeline, self.entities, self.language)
            with pipelines.zone(parts.nlp):
                return [d for batch in pipelines.batches(texts) for d in self._batch(parts, batch, heard)]

    def _batch(self, parts: Engine, texts: Sequence[str], heard: Heard) -> Iterator[Detection]:
        taken = [text for text in texts if pipelines.readable(text)]
        docs = list(parts.nlp.pipe(taken, disable=parts.late, batch_size=pipelines.BATCH))
        matches: list[list[Any]] = []
        statuses: list[Status] = []
        for text in taken:
            matches.append(parts.matches(text))
            statuses.append("timeout" if heard.timeouts() else "ok")
        parts.enhance(taken, docs, matches)
        answers = iter(zip(docs, matches, statuses, strict=True))
        for text in texts:
            yield self._detection(parts, *next(answers)) if pipelines.readable(text) else Detection(status="error")

    def _detection(self, parts: Engine, doc: Any, matches: Sequence[Any], status: Status) -> Detection:
        results = [r for r in (*matches, *parts.names(doc)) if r.score >= self.threshold]
        spans = (Span(r.start, r.end, r.entity_type, float(r.score), self.name) for r in parts.unique(results))
        return Detection(tuple(spans), status) if results or status != "ok" else CLEAN


class _Options(BaseModel):
    """threshold: lowest score that counts (0, as in Presidio: every pattern, weak ones too). pipeline: spaCy's."""

    model_config = ConfigDict(extra="forbid")

    threshold: float = Field(default=0.0, ge=0.0, le=1.0)
    pipeline: str = ""
    labels: list[str] = []


OPTIONS = frozenset(_Options.model_fields)


def named(argument: str, options: Mapping[str, object]) -> list[Detector]:
    """``presidio``, ``presidio:ENTITY,ENTITY`` or either with ``@LANGUAGE``. A named entity may be one of a single country
    that Presidio leaves out by default.

    Raises UsageError (unknown entity, option, language or pipeline, naming the nearest), MissingExtra (no Presidio).
    """
    try:
        version("presidio-analyzer")
    except PackageNotFoundError:
        raise MissingExtra("presidio-analyzer", "presidio") from None
    chosen = checked(_Options, options, "presidio")
    wanted, _, named_language = argument.partition("@")
    language = named_language.strip() or "en"
    if language not in languages():
        raise UsageError(f"presidio: unknown language '{language}'; there are: {', '.join(languages())}")
    entities = tuple(sorted({*split(wanted), *chosen.labels}))
    known = known_entities(language) if entities else frozenset()
    for entity in entities:
        if entity not in known:
            raise UsageError(
                f"presidio: unknown entity '{entity}'{_elsewhere(entity, language)}; {nearest(entity, known)}"
            )
    pipeline = _pipeline(chosen.pipeline, language, entities)
    name = f"presidio:{argument}" if argument else "presidio"
    return [Presidio(pipeline, entities, chosen.threshold, name, language)]


def _pipeline(name: str, language: str, entities: Sequence[str]) -> Pipeline:
    """The pipeline named or installed; entities of patterns alone need none."""
    if language == "en" or name or pipelines.default(language):
        return pipelines.pipeline(name, language)
    if entities and not NAMES & {*entities}:
        return Pipeline(language, "", None, ())
    patterns = sorted(known_entities(language) - NAMES)
    there = f"spacy download {pipelines.small(language)}, or " if language in pipelines.LANGUAGES else ""
    raise UsageError(
        f"presidio@{language}: names take a spaCy pipeline of the language, and none is installed: {there}"
        f"name what needs none: presidio:{','.join(patterns)}@{language}"
    )


def _elsewhere(entity: str, language: str) -> str:
    """The language in which an entity is known, for an error."""
    other = next((each for each in languages() if each != language and entity in known_entities(each)), None)
    return f" of the language '{language}', but presidio:{entity}@{other} is known" if other else ""
