"""The texts of the recipes of UeDP, screened for one category of entities: what is annotated, or what spaCy finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from taciturn.recipes import rigged_policies, texts
from taciturn.recipes.recipe import Inputs, Size
from taciturn.recipes.uedp.paper import Published

if TYPE_CHECKING:
    from taciturn.screening.corpus.screened import ScreenedCorpus
    from taciturn.screening.policies import Policy
    from taciturn.text.document import Document

    Sentences = tuple[Document, ...]

SPACY = {"Org": ("ORG",), "Loc": ("LOC",), "GPE": ("GPE",), "PII": ("PERSON", "LOC", "GPE"), "Person": ("PERSON",),
         "Misc": ("NORP", "EVENT", "WORK_OF_ART", "LANGUAGE", "PRODUCT")}  # fmt: skip
SENTENCES: Mapping[Size, tuple[int, int]] = {
    "smoke": (60, 20), "quick": (800, 200), "medium": (5_000, 500), "full": (10**9, 10**9)
}  # fmt: skip
"""To train on and to test on, at most."""
ANNOTATED = {"Org": ("ORG",), "Loc": ("LOC",), "Person": ("PER", "PERSON"), "Misc": ("MISC",)}
"""Labels of a category: spaCy's, and CoNLL-2003's own."""


def loaded(published: Published, inputs: Inputs) -> tuple[Sentences, Sentences, str]:
    """A set of Table II to train on and to test on, or as much of the user's copy as a quick run reads, and what it is."""
    from taciturn.data.loaders import load
    from taciturn.errors import UsageError

    if inputs.data is None:
        raise UsageError(f"{published.name}: give --data FOLDER with {published.loader}, or --quick for made-up news")
    most, tested = SENTENCES[inputs.size]
    train, note = sentences(load(published.loader, inputs.data, "train"), most)
    test, seen = texts.unseen(sentences(load(published.loader, inputs.data, "test"), tested)[0], train)
    return train, test, f"{note} {seen}"


def sentences(loaded: Any, most: int) -> tuple[Sentences, str]:
    """Documents cut into sentences where they are long; of users who have none, runs of ten."""
    from taciturn.text.document import Document
    from taciturn.text.segment import split

    whole = [
        Document(r.id, r.body, user=r.user, gold=r.gold, label=d.label)
        for d in loaded.corpus.documents()
        for r in split(d, "sentence" if len(d.text) > 2000 else "document")
        if r.body.strip()
    ][:most]
    if all(d.user is None for d in whole):
        whole = [replace(d, user=f"run-{at // 10}") for at, d in enumerate(whole)]
    return tuple(whole), loaded.note


@cache
def screened(documents: Sentences, category: str, published: Published | None) -> ScreenedCorpus:
    """Every sentence private and none removed."""
    return texts.screen(documents, detector(documents, category, published))


def detector(documents: Sentences, category: str, published: Published | None) -> Policy:
    """A policy that marks the entities of a category, or of ``all``: what is annotated, or what spaCy finds."""
    import taciturn as tt
    from taciturn.screening.policies.registry import resolve

    if published is None:
        return rigged_policies.annotated(documents, lambda _, span: category in ("all", span.label))
    names = [each for each in published.sensitive if each != "All"] if category == "all" else [category]
    if any(d.gold for d in documents):
        labels = {label for each in names for label in ANNOTATED.get(each, ())}
        return rigged_policies.annotated(documents, lambda _, span: span.label.upper() in labels)
    return tt.policy(*resolve("spacy:high-entity", {"labels": sorted({x for each in names for x in SPACY[each]})}))
