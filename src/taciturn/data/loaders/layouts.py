"""Files as they lie to a corpus with the users, labels and gold spans that an experiment needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from taciturn.errors import DataError
from taciturn.text.document import Document, Turn
from taciturn.text.readers import Corpus, ReadOptions, read
from taciturn.text.readers.documents import document
from taciturn.text.readers.formats import jsonl
from taciturn.text.readers.items import BadRecord, Row
from taciturn.text.spans import Span

WHOLE = "all"
"""The split of a set without splits that holds every document."""


@dataclass(frozen=True, slots=True)
class Asked:
    """split: its name here. run: sentences a user, where a set names none. canaries: keep dialogues with a canary."""

    split: str
    run: int = 10
    canaries: bool = False


Found = tuple[Corpus, str]
"""A corpus, and what differs from the paper ("" for nothing)."""
Layout = Callable[[tuple[Path, ...], Asked], Found]


def rows(**options: Any) -> Layout:
    """What ``read`` reads by itself, streamed."""

    def layout(paths: tuple[Path, ...], _: Asked) -> Found:
        return read(*paths, **options), ""

    return layout


def built(values: Iterable[Mapping[str, Any]], stem: str, **options: Any) -> Corpus:
    """A corpus in memory of rows that no reader knows, made and checked like rows of a file. A row that holds
    "private_because" makes a private document.

    Raises DataError for a row that cannot be read, and when there is none.
    """
    chosen = ReadOptions.of(options)
    documents: list[Document] = []
    for number, value in enumerate(values, 1):
        try:
            made = document(Row(number, "", value, value.get("private_because")), f"{stem}:{number}", chosen)
        except BadRecord as bad:
            raise DataError(f"{stem}, record {number}: {bad.reason}") from None
        if made is not None:
            documents.append(made)
    if not documents:
        raise DataError(f"the corpus is empty: no document in {stem}")
    return Corpus((), chosen, tuple(documents))


def in_memory(corpus: Corpus, documents: Iterable[Document]) -> Corpus:
    """The documents in memory, under the options they were read with. Raises DataError when there is none."""
    kept = tuple(documents)
    if not kept:
        raise DataError("no document is left in this split; there are too few for it: ask for split 'all'")
    return Corpus((), corpus.options, kept)


def marked(layout: Layout, labels: Collection[str]) -> Layout:
    """Only gold spans whose label (after the last "-", in lower case) is one of ``labels``: the secrets of a set that also
    annotates other things."""

    def narrowed(paths: tuple[Path, ...], asked: Asked) -> Found:
        corpus, note = layout(paths, asked)
        documents = (replace(d, gold=tuple(s for s in d.gold if _plain(s) in labels)) for d in corpus.documents())
        return in_memory(corpus, documents), note

    return narrowed


def _plain(span: Span) -> str:
    return span.label.rpartition("-")[2].lower()


def in_runs(layout: Layout) -> Layout:
    """A document is a sentence; where the file does not say whose, each run of ``asked.run`` sentences is a user."""

    def grouped(paths: tuple[Path, ...], asked: Asked) -> Found:
        corpus, note = layout(paths, asked)
        documents = corpus.documents()
        if all(d.user is not None for d in documents):
            return corpus, note
        before: Counter[str] = Counter()
        users: list[Document] = []
        for each in documents:  # no run goes from one file into the next
            file = each.id.rpartition(":")[0]
            users.append(replace(each, user=f"{file}/run-{before[file] // asked.run}"))
            before[file] += 1
        return in_memory(corpus, users), f"{note} Users are runs of {asked.run} sentences: the file names none.".strip()

    return grouped


def cut(layout: Layout) -> Layout:
    """Splits of a set that has none, whole users each: of ten in a row, eight train, the ninth valid, the tenth test."""

    def part(paths: tuple[Path, ...], asked: Asked) -> Found:
        corpus, note = layout(paths, asked)
        if asked.split == WHOLE:
            return corpus, note
        order: dict[str | None, int] = {}
        kept = []
        for each in corpus.documents():
            place = order.setdefault(each.user, len(order)) % 10
            if {8: "valid", 9: "test"}.get(place, "train") == asked.split:
                kept.append(each)
        own = "The set has no splits; these are our own: of ten users in a row eight train, one valid, one test."
        return in_memory(corpus, kept), f"{note} {own}".strip()

    return part


def per_file(paths: tuple[Path, ...], _: Asked) -> Found:
    """Text files, each a document and a user (a contract and who owns it)."""
    corpus = read(*paths, format="text")
    return in_memory(corpus, (replace(d, user=d.id) for d in corpus.documents())), ""


def plain_dialogues(paths: tuple[Path, ...], asked: Asked) -> Found:
    """Dialogues without those that hold an inserted canary (id "canary-..."), unless asked for."""
    corpus = read(*paths)
    if asked.canaries:
        return corpus, ""
    documents = corpus.documents()
    kept = [d for d in documents if not d.id.startswith("canary")]
    if len(kept) == len(documents):
        return corpus, ""
    return in_memory(corpus, kept), f"{len(documents) - len(kept)} dialogues with a canary are left out."


def news(paths: tuple[Path, ...], _: Asked) -> Found:
    """AG News as JSON lines: its class, and its source as the user where the file has one."""
    first: Mapping[str, Any] = next(
        (i.value for i in jsonl(paths[0], paths[0].name, ReadOptions()) if isinstance(i, Row)), {}
    )
    label = "label_name" if "label_name" in first else "label"
    if "source" in first:
        return read(*paths, label=label, user="source"), ""
    return read(*paths, label=label), NO_SOURCE


NO_SOURCE = "The file names no source, so there are no users: UeDP's come from the full AG corpus."


def news_without_valid(paths: tuple[Path, ...], asked: Asked) -> Found:
    """The training subset without the rows of the validation file beside it, which lie inside it."""
    corpus, note = news(paths, asked)
    beside = [f for p in paths for f in p.parent.glob("train_subset_dev.jsonl*")]
    if not beside:
        return corpus, note
    valid = {d.text for d in read(*beside).documents()}
    documents = corpus.documents()
    kept = [d for d in documents if d.text not in valid]
    left = len(documents) - len(kept)
    return in_memory(corpus, kept), f"{note} {left} rows that are also in valid are left out.".strip()


def with_speakers(document: Document) -> Document:
    """The dialogue with "SPEAKER: " before each turn that names one; spans move along."""
    text, turns, gold = "", [], []
    for turn in document.turns:
        head = f"{turn.speaker}: " if turn.speaker else ""
        shift = len(text) + len(head) - turn.start
        gold += [replace(s, start=s.start + shift, end=s.end + shift) for s in _within(document, turn)]
        begin = len(text)
        text += head + document.text[turn.start : turn.end]
        turns.append(Turn(begin, len(text), turn.speaker))
    return replace(document, text=text, turns=tuple(turns), gold=tuple(gold)) if turns else document


def _within(document: Document, turn: Turn) -> list[Span]:
    return [s for s in document.gold if turn.start <= s.start < turn.end]
