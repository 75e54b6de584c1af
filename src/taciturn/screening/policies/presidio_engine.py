"""Presidio's parts in Presidio's order, without its logs: recognizers of a language, names, the words beside a match."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from taciturn.screening.policies import pipelines
from taciturn.screening.policies.pipelines import NEVER, Pipeline

LOGGERS = ("presidio-analyzer", "decision_process")
NAMES = frozenset({"PERSON", "LOCATION", "ORGANIZATION", "NRP", "DATE_TIME"})  # of the language model
_OTHER_WORDS = frozenset({"ja", "ko", "kr", "th", "zh"})
# What Presidio's settings do not map: labels of pipelines of other languages.
_LABELS = {label: kind for kind, labels in pipelines.KINDS.items() for label in labels} | {"time": "DATE_TIME"}


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
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
def engine(pipeline: Pipeline, wanted: tuple[str, ...], language: str) -> Engine:
    from presidio_analyzer.context_aware_enhancers import LemmaContextAwareEnhancer

    nlp = pipelines.loaded(pipeline, NEVER)
    model = _model(language)
    model.nlp = {language: nlp}
    patterns = registry(extra=bool(wanted), language=language).recognizers
    named = {entity for recognizer in patterns for entity in recognizer.supported_entities}
    entities = frozenset(wanted) or frozenset(named | {*model.get_supported_entities()} & NAMES)
    kept = [r for r in patterns if entities & {*r.supported_entities}]
    return Engine(language, nlp, pipelines.lemma_pipes(nlp), model, kept, entities, LemmaContextAwareEnhancer())


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


def registry(extra: bool, language: str = "en") -> Any:
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
    found = RecognizerRegistryProvider(registry_configuration=configuration).create_recognizer_registry()

    suffixes = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)

    class Email(EmailRecognizer):  # type: ignore[misc]
        def validate_result(self, pattern_text: str) -> bool:
            return bool(suffixes(pattern_text).fqdn)

    found.recognizers = [r for r in found.recognizers if not isinstance(r, EmailRecognizer)]
    found.add_recognizer(Email(supported_language=language))
    return found


def _spoken(entry: Mapping[str, Any]) -> list[str]:
    """Languages of an entry of Presidio's list of recognizers; one that names none is for all, and in English words."""
    named = entry.get("supported_languages") or ["en"]
    return [each["language"] if isinstance(each, Mapping) else str(each) for each in named]


@cache
def languages() -> tuple[str, ...]:
    """Those that Presidio has recognizers for, or spaCy pipelines: its words take no further package."""
    from presidio_analyzer.recognizer_registry.recognizers_loader_utils import RecognizerConfigurationLoader

    entries = RecognizerConfigurationLoader.get()["recognizers"]
    return tuple(sorted({*pipelines.LANGUAGES, *(each for entry in entries for each in _spoken(entry))} - _OTHER_WORDS))


@lru_cache(maxsize=32)
def known_entities(language: str = "en") -> frozenset[str]:
    """Every entity that can be asked for by name."""
    with muted():
        known = registry(extra=True, language=language).recognizers
        return NAMES | {entity for r in known for entity in r.supported_entities}


@dataclass(slots=True)
class Heard(logging.Filter):
    """Drops every record of a logger and keeps count of patterns that timed out since it was last asked."""

    count: int = field(default=0, init=False)

    def filter(self, record: logging.LogRecord) -> bool:
        self.count += "timed out" in str(record.msg)
        return False

    def timeouts(self) -> int:
        count, self.count = self.count, 0
        return count


@contextmanager
def muted() -> Iterator[Heard]:
    """Presidio's loggers dropped, whatever the levels and handlers of the process."""
    heard = Heard()
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addFilter(heard)
    try:
        yield heard
    finally:
        for logger in loggers:
            logger.removeFilter(heard)
