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

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from taciturn.errors import MissingExtra, UsageError, nearest
from taciturn.screening.policies import pipelines, windows
from taciturn.screening.policies.base import CLEAN
from taciturn.screening.policies.family_options import checked, split
from taciturn.screening.policies.finder import Detector
from taciturn.screening.policies.pipelines import NEVER, Pipeline
from taciturn.screening.policies.view import View
from taciturn.text.spans import Detection, Span, Status

_LOGGERS = ("presidio-analyzer", "decision_process")
_NAMES = frozenset({"PERSON", "LOCATION", "ORGANIZATION", "NRP", "DATE_TIME"})  # of the language model
# What Presidio's settings do not map: labels of pipelines of other languages.
_LABELS = {label: kind for kind, labels in pipelines.KINDS.items() for label in labels} | {"time": "DATE_TIME"}

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
        with _muted() as heard:
            engine = _engine(self.pipeline, self.entities, self.language)
            with pipelines.zone(engine.nlp):
                return [d for batch in pipelines.batches(texts) for d in self._batch(engine, batch, heard)]

    def _batch(self, engine: _Engine, texts: Sequence[str], heard: _Heard) -> Iterator[Detection]:
        taken = [text for text in texts if pipelines.readable(text)]
        docs = list(engine.nlp.pipe(taken, disable=engine.late, batch_size=pipelines.BATCH))
        matches: list[list[Any]] = []
        statuses: list[Status] = []
        for text in taken:
            matches.append(engine.matches(text))
            statuses.append("timeout" if heard.timeouts() else "ok")
        engine.enhance(taken, docs, matches)
        answers = iter(zip(docs, matches, statuses, strict=True))
        for text in texts:
            yield self._detection(engine, *next(answers)) if pipelines.readable(text) else Detection(status="error")

    def _detection(self, engine: _Engine, doc: Any, matches: Sequence[Any], status: Status) -> Detection:
        results = [r for r in (*matches, *engine.names(doc)) if r.score >= self.threshold]
        spans = (Span(r.start, r.end, r.entity_type, float(r.score), self.name) for r in engine.unique(results))
        return Detection(tuple(spans), status) if results or status != "ok" else CLEAN


@dataclass(frozen=True, slots=True, eq=False)
class _Engine:
    """Presidio's parts in Presidio's order (``AnalyzerEngine.analyze``). Lemmas serve only to raise the scores of patterns
    that have words beside them, so the pipes that make lemmas run only on texts in which a pattern matched.

    language: of the recognizers. nlp: the pipeline. late: its pipes that make lemmas; without any, words stand for them.
    model: Presidio's wrapper of it. patterns: recognizers that need no pipeline. entities: what counts. enhancer:
    Presidio's.
    """

    language: str
    nlp: Any
    late: list[str]
    model: Any
    patterns: list[Any]
    entities: frozenset[str]
    enhancer: Any

    def matches(self, text: str) -> list[Any]:
        found = [r for p in self.patterns for r in p.analyze(text, list(self.entities), None)]
        return [r for r in found if r.entity_type in self.entities]

    def enhance(self, texts: Sequence[str], docs: Sequence[Any], matches: list[list[Any]]) -> None:
        """Scores of matches raised in place for the words beside them."""
        from presidio_analyzer.nlp_engine import NlpArtifacts

        places = [i for i, found in enumerate(matches) if found]
        others = [name for name in self.nlp.pipe_names if name not in self.late]
        lemmatised = self.nlp.pipe((docs[i] for i in places), disable=others, batch_size=pipelines.BATCH)
        for i, doc in zip(places, lemmatised, strict=True):
            lemmas = [token.lemma_ or token.lower_ for token in doc]
            artifacts = NlpArtifacts([], doc, [token.idx for token in doc], lemmas, self.model, self.language)
            matches[i] = self.enhancer.enhance_using_context(texts[i], matches[i], artifacts, self.patterns)

    def names(self, doc: Any) -> Iterator[Any]:
        from presidio_analyzer import RecognizerResult

        settings = self.model.ner_model_configuration
        for entity in doc.ents:
            kind = settings.model_to_presidio_entity_mapping.get(entity.label_, entity.label_)
            if kind in self.entities and not {kind, entity.label_} & {*settings.labels_to_ignore}:
                yield RecognizerResult(kind, entity.start_char, entity.end_char, settings.default_score)

    def unique(self, results: list[Any]) -> list[Any]:
        from presidio_analyzer import EntityRecognizer

        return list(EntityRecognizer.remove_duplicates(results)) if len(results) > 1 else results


@lru_cache(maxsize=4)
def _engine(pipeline: Pipeline, wanted: tuple[str, ...], language: str) -> _Engine:
    from presidio_analyzer.context_aware_enhancers import LemmaContextAwareEnhancer

    nlp = pipelines.loaded(pipeline, NEVER)
    model = _model(language)
    model.nlp = {language: nlp}
    patterns = _registry(extra=bool(wanted), language=language).recognizers
    named = {entity for recognizer in patterns for entity in recognizer.supported_entities}
    entities = frozenset(wanted) or frozenset(named | {*model.get_supported_entities()} & _NAMES)
    kept = [r for r in patterns if entities & {*r.supported_entities}]
    return _Engine(language, nlp, pipelines.lemma_pipes(nlp), model, kept, entities, LemmaContextAwareEnhancer())


def _model(language: str = "en") -> Any:
    """Presidio's wrapper of a spaCy pipeline with its default settings, but for organisations; no pipeline in it yet."""
    from presidio_analyzer.nlp_engine import NerModelConfiguration, NlpEngineProvider, SpacyNlpEngine

    settings = NlpEngineProvider().nlp_configuration["ner_model_configuration"]
    ignored = {*settings["labels_to_ignore"]} - {"ORG", "ORGANIZATION", None}
    labels = {**_LABELS, **settings["model_to_presidio_entity_mapping"]}
    configuration = NerModelConfiguration.from_dict(
        {**settings, "model_to_presidio_entity_mapping": labels, "labels_to_ignore": sorted(ignored)}
    )
    return SpacyNlpEngine(models=[{"lang_code": language, "model_name": ""}], ner_model_configuration=configuration)


def _registry(extra: bool, language: str = "en") -> Any:
    """Presidio's recognizers of a language: its default ones and, where ``extra`` or the language is not English, those of
    all countries that are off by default."""
    import tldextract
    from presidio_analyzer.predefined_recognizers import EmailRecognizer
    from presidio_analyzer.recognizer_registry import RecognizerRegistryProvider
    from presidio_analyzer.recognizer_registry.recognizers_loader_utils import RecognizerConfigurationLoader

    configuration = RecognizerConfigurationLoader.get(registry_configuration={"supported_languages": [language]})
    for entry in configuration["recognizers"]:
        if (extra or language != "en") and entry.get("country_code") and language in _spoken(entry):
            entry["enabled"] = True
    registry = RecognizerRegistryProvider(registry_configuration=configuration).create_recognizer_registry()

    suffixes = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)

    class Email(EmailRecognizer):  # type: ignore[misc]
        def validate_result(self, pattern_text: str) -> bool:
            return bool(suffixes(pattern_text).fqdn)

    registry.recognizers = [r for r in registry.recognizers if not isinstance(r, EmailRecognizer)]
    registry.add_recognizer(Email(supported_language=language))
    return registry


def _spoken(entry: Mapping[str, Any]) -> list[str]:
    """Languages of an entry of Presidio's list of recognizers; one that names none is for all, and in English words."""
    named = entry.get("supported_languages") or ["en"]
    return [each["language"] if isinstance(each, Mapping) else str(each) for each in named]


@dataclass(slots=True)
class _Heard(logging.Filter):
    """Drops every record of a logger and keeps count of patterns that timed out since it was last asked."""

    count: int = field(default=0, init=False)

    def filter(self, record: logging.LogRecord) -> bool:
        self.count += "timed out" in str(record.msg)
        return False

    def timeouts(self) -> int:
        count, self.count = self.count, 0
        return count


@contextmanager
def _muted() -> Iterator[_Heard]:
    """Presidio's loggers dropped, whatever the levels and handlers of the process."""
    heard = _Heard()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(heard)
    try:
        yield heard
    finally:
        for logger in loggers:
            logger.removeFilter(heard)


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
    if entities and not _NAMES & {*entities}:
        return Pipeline(language, "", None, ())
    patterns = sorted(known_entities(language) - _NAMES)
    there = f"spacy download {pipelines.small(language)}, or " if language in pipelines.LANGUAGES else ""
    raise UsageError(
        f"presidio@{language}: names take a spaCy pipeline of the language, and none is installed: {there}"
        f"name what needs none: presidio:{','.join(patterns)}@{language}"
    )


def _elsewhere(entity: str, language: str) -> str:
    """The language in which an entity is known, for an error."""
    other = next((each for each in languages() if each != language and entity in known_entities(each)), None)
    return f" of the language '{language}', but presidio:{entity}@{other} is known" if other else ""


@cache
def languages() -> tuple[str, ...]:
    """Those that Presidio has recognizers for, or spaCy pipelines: its words take no further package."""
    from presidio_analyzer.recognizer_registry.recognizers_loader_utils import RecognizerConfigurationLoader

    entries = RecognizerConfigurationLoader.get()["recognizers"]
    return tuple(sorted({*pipelines.LANGUAGES, *(each for entry in entries for each in _spoken(entry))} - _OTHER_WORDS))


_OTHER_WORDS = frozenset({"ja", "ko", "kr", "th", "zh"})


@lru_cache(maxsize=32)
def known_entities(language: str = "en") -> frozenset[str]:
    """Every entity that can be asked for by name."""
    with _muted():
        found = _registry(extra=True, language=language).recognizers
        return _NAMES | {entity for r in found for entity in r.supported_entities}
