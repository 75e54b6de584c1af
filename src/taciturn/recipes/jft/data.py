"""The texts of the recipes of Just Fine-tune Twice, and how many of them: made up, of the user's folder, or of the hub.
No test text stands in the training text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from taciturn.recipes import simulated_news, texts
from taciturn.recipes.jft.paper import Task
from taciturn.recipes.recipe import Inputs

if TYPE_CHECKING:
    from taciturn.screening.corpus.screened import ScreenedCorpus
    from taciturn.text.document import Document

    Split = tuple[Document, ...]

QUICK = {
    "press": Task("press", simulated_news.TOPICS, 800, 64, 4, 1e-5),
    "customersim": Task("customersim", (), 800, 64, 4, 1e-5),
}
"""Made-up text: topics of news, and what customers say."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """train, test: documents at most. epochs, batch_size: of noiseless phases. second_lr: of jft's second phase."""

    train: int
    test: int
    epochs: int
    batch_size: int
    public_lr: float
    private_lr: float
    second_lr: float
    max_length: int


def sizes(inputs: Inputs, task: Task) -> Sizes:
    """Of a run of that size."""
    if inputs.quick:
        lr = 3e-3 if inputs.model is None else 5e-4
        return Sizes(inputs.pick(24, 200, 200), inputs.pick(12, 80, 80), inputs.pick(1, 4, 4), 16, lr, lr, lr / 3, 64)
    return Sizes(10**9, 10**9, 3, 16, 5e-5, 5e-4, 5e-4, 128 if task.classifies else 512)


def made_up(task: Task, inputs: Inputs, sizes: Sizes) -> tuple[Split, Split, str]:
    """Texts of a task of QUICK to train on and to test on, and what they are."""
    train = _written(task.name, inputs.seed, "train", sizes.train)
    test, note = texts.unseen(_written(task.name, inputs.seed, "test", 4 * sizes.test), train, sizes.test)
    return train, test, f"made-up text; {note}"


def _written(name: str, seed: int, split: str, most: int) -> Split:
    if name == "press":
        return tuple(simulated_news.write(math.ceil(most / 20), 20, seed, split)[:most])
    from taciturn.data.customersim import simulate

    return tuple(turns_as_documents(simulate(math.ceil(most / 7), seed, split)))[:most]


def turns_as_documents(dialogues: Sequence[Document]) -> list[Document]:
    """Each turn a document of its own, its annotations with it."""
    from taciturn.text.document import Document
    from taciturn.text.segment import split

    return [
        Document(r.id, r.body, user=r.user, gold=tuple(replace(s) for s in r.gold))
        for dialogue in dialogues
        for r in split(dialogue, "turn")
        if r.body.strip()
    ]


def loaded(task: Task, inputs: Inputs, sizes: Sizes) -> tuple[Split, Split, str]:
    """The same of a data folder or of the hub, thinned. Raises UsageError for what is on no hub without a folder."""
    from taciturn.data.loaders import load
    from taciturn.errors import UsageError

    if inputs.data is None and not task.hub:
        raise UsageError(
            f"{task.name} is not on the hub: give --data FOLDER with it, or run it with --quick on made-up text"
        )
    source: Any = "hf:" if inputs.data is None else inputs.data
    parts, notes = [], []
    for split, most in zip(task.splits, (sizes.train, sizes.test), strict=True):
        found = load(task.name, source, split)
        documents = list(found.corpus.documents())
        if documents and documents[0].turns:
            documents = turns_as_documents(documents)
        parts.append(tuple(documents[:: max(1, len(documents) // most)][:most]))
        notes.append(found.note)
    test, seen = texts.unseen(parts[1], parts[0])
    return parts[0], test, f"{' '.join(dict.fromkeys(notes))} {seen}"


@cache
def screened(documents: Split, policy: str) -> ScreenedCorpus:
    """Every record private and none removed: jft reads redacted and original text, and splits nothing."""
    import taciturn as tt

    return texts.screen(documents, tt.policy(policy))
