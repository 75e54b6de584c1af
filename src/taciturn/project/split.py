"""What a project trains on and what it keeps out: one random split of the documents, and the canaries among the first."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from taciturn.auditing.canaries.templates import Planted, plant
from taciturn.errors import DataError
from taciturn.project.settings import Project
from taciturn.screening.pipeline import screen
from taciturn.text.document import Document, Record
from taciturn.text.readers import Corpus, Quarantined
from taciturn.text.segment import Unit, split


@dataclass(frozen=True, slots=True)
class Texts:
    """corpus: to be screened, canaries in it. inside, outside: documents on either side of the split (no canaries); empty
    when the corpus streams from its files because there is neither a split nor a canary."""

    corpus: Corpus
    planted: Planted | None
    inside: tuple[Document, ...] = field(default=(), repr=False)
    outside: tuple[Document, ...] = field(default=(), repr=False)


def texts(project: Project) -> Texts:
    """Read the files. With a split or canaries, all documents are held in memory.

    Raises DataError for more unreadable items than screen.max_bad, and for a split that leaves a side empty.
    """
    chosen = project.settings
    files = chosen.read.corpus(project.base)
    planted = chosen.canaries.planted()
    if planted is None and not chosen.split.held_out:
        return Texts(files, None)
    documents, bad = [], 0
    for item in files.items():
        if isinstance(item, Document):
            documents.append(item)
        elif isinstance(item, Quarantined):
            bad += 1
            if bad > chosen.screen.max_bad:
                raise DataError(
                    f"{item.source}, {item.location}: {item.reason}; mend it, or raise screen.max_bad to leave it out"
                )
    inside, outside = divided(documents, chosen.split.held_out, chosen.split.seed)
    held = list(inside)
    if planted is not None:
        held = plant(inside, planted.template, planted.secrets, planted.copies, chosen.canaries.seed)
    return Texts(Corpus((), files.options, tuple(held)), planted, tuple(inside), tuple(outside))


def divided(documents: Sequence[Document], share: float, seed: int) -> tuple[list[Document], list[Document]]:
    """(trained on, kept out), each in corpus order. A user is on one side with all documents, so that nothing a person
    wrote is on both; documents without a user are on their own."""
    if not share:
        return list(documents), []
    owners = [_owner(each) for each in documents]
    names = sorted(set(owners))
    out = set(random.Random(f"taciturn split {seed}").sample(names, round(share * len(names))))
    if not 0 < len(out) < len(names):
        raise DataError(
            f"split.held_out = {share:g} of {len(names)} users or documents leaves one side empty: choose another share"
        )
    sides: tuple[list[Document], list[Document]] = ([], [])
    for document, owner in zip(documents, owners, strict=True):
        sides[owner in out].append(document)
    return sides


def records(documents: Sequence[Document], unit: Unit) -> list[Record]:
    """All records of documents."""
    return [record for document in documents for record in split(document, unit)]


def members_and_nonmembers(found: Texts, unit: Unit, most: int, seed: int) -> tuple[list[Document], list[Document]]:
    """Members and non-members for an attack, as documents of one record each: one random record of a user (or document)
    on either side, equally many, at most ``most``. More records of one user would count one coin of the split several
    times."""
    chosen = []
    for side, documents in (("inside", found.inside), ("outside", found.outside)):
        rng = random.Random(f"taciturn {side} {seed}")
        by_owner: dict[str, list[Document]] = {}
        for document in documents:
            by_owner.setdefault(_owner(document), []).append(document)
        picked = [rng.choice(split(rng.choice(each), unit)) for each in by_owner.values()]
        rng.shuffle(picked)
        chosen.append([Document(each.id, each.body, each.user) for each in picked if each.body.strip()])
    n = min(most, *map(len, chosen))
    return chosen[0][:n], chosen[1][:n]


def redacted(documents: Sequence[Document], project: Project) -> list[str]:
    """What π leaves of them, as training on redacted text reads it."""
    pi, wide = project.settings.screen.policies(project.base)
    options = project.settings.read.corpus(project.base).options
    made = screen(Corpus((), options, tuple(documents)), pi, wide, unit="document", dedup="none", keep_originals=False)
    return made.texts("redacted")


def _owner(document: Document) -> str:
    return f"user {document.user}" if document.user is not None else f"document {document.id}"
