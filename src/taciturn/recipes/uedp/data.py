"""The texts of the recipes of UeDP, screened for one category of entities: what is annotated, or what spaCy finds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from taciturn.recipes import rigged_policies, texts
from taciturn.recipes.recipe import Inputs, Size
from taciturn.recipes.uedp.paper import Annotated, Published

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
TURNS: Mapping[Size, tuple[int, int]] = {
    "smoke": (60, 20), "quick": (800, 200), "medium": (20_000, 500), "full": (10**9, 10**9)
}  # fmt: skip
"""The same of dialogues, whose turns are shorter."""


def loaded(published: Published | Annotated, inputs: Inputs) -> tuple[Sentences, Sentences, str]:
    """A set to train on and to test on, or as much of the user's copy as a size reads, and what it is."""
    from taciturn.data.loaders import load
    from taciturn.errors import UsageError

    if inputs.data is None:
        raise UsageError(f"{published.name}: give --data FOLDER with {published.loader}, or --quick for made-up news")
    given, tests = (load(published.loader, inputs.data, split) for split in ("train", "test"))
    if published.user:
        most, tested = TURNS[inputs.size]
        others, seen = texts.unseen(tests.corpus.documents(), given.corpus.documents())
        train, test = (turns(each, published.user) for each in (given.corpus.documents(), others))
        note = "Turns of dialogues, of the customer whom a dialogue names. " + given.note
        return train[:most], test[:tested], f"{note} {seen.replace('texts', 'dialogues', 1)}"
    most, tested = SENTENCES[inputs.size]
    train, note = sentences(given, most)
    test, seen = texts.unseen(sentences(tests, tested)[0], train)
    return train, test, f"{note} {seen}"


def turns(dialogues: Iterable[Document], label: str) -> Sentences:
    """Turns of dialogues, each of the user whom the first span of the label names; without those of dialogues that name
    nobody."""
    from taciturn.text.document import Document
    from taciturn.text.segment import split

    found: list[Document] = []
    for each in dialogues:
        user = next((each.text[s.start : s.end] for s in each.gold if s.label.upper() == label), None)
        if user is not None:
            records = (record for record in split(each, "turn") if record.body.strip())
            found += (Document(record.id, record.body, user=user, gold=record.gold) for record in records)
    return tuple(found)


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
def screened(documents: Sentences, category: str, published: Published | Annotated | None) -> ScreenedCorpus:
    """Every sentence private and none removed."""
    return texts.screen(documents, detector(documents, category, published))


def detector(documents: Sentences, category: str, published: Published | Annotated | None) -> Policy:
    """A policy that marks the entities of a category, or of ``all``: what is annotated, or what spaCy finds."""
    import taciturn as tt
    from taciturn.screening.policies.registry import resolve

    if published is None:
        return rigged_policies.annotated(documents, lambda _, span: category in ("all", span.label))
    names = published.categories if category == "all" else (category,)
    if any(d.gold for d in documents):
        labels = {label for each in names for label in published.labels.get(each, ())}
        return rigged_policies.annotated(documents, lambda _, span: span.label.upper() in labels)
    return tt.policy(*resolve("spacy:high-entity", {"labels": sorted({x for each in names for x in SPACY[each]})}))
