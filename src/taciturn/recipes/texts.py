"""Documents as most recipes use them: each one record, all private; tests apart from what was trained on; words redacted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from taciturn.screening.corpus.screened import ScreenedCorpus
    from taciturn.screening.policies import Policy
    from taciturn.text.document import Document, Record


class _HasText(Protocol):
    @property
    def text(self) -> str: ...


T = TypeVar("T", bound=_HasText)


def unseen(test: Iterable[T], train: Iterable[_HasText], most: int | None = None) -> tuple[tuple[T, ...], str]:
    """The first ``most`` test texts that do not stand in the training text, and a note that says how many do; white space
    and case aside. Raises DataError where all do: then a score would be of what the model has read."""
    from taciturn.errors import DataError

    test = tuple(test)
    known = {_folded(each) for each in train}
    kept = tuple(each for each in test if _folded(each) not in known)
    if test and not kept:
        raise DataError(f"all {len(test):,} test texts stand in the training text; give a test split of other texts")
    seen = len(test) - len(kept)
    return kept[:most], f"{seen:,} of {len(test):,} test texts stand in the training text and are left out"


def _folded(each: _HasText) -> str:
    return " ".join(each.text.split()).casefold()


def screen(
    documents: Sequence[Document], policy: Policy | str, conservative: str = "all-private", out: Path | None = None
) -> ScreenedCorpus:
    """One record a document, none removed; no skeletons, as nobody reads them. out: a folder to keep it in."""
    import taciturn as tt
    from taciturn.screening import pipeline
    from taciturn.text.readers import Corpus

    corpus, wide = Corpus.from_documents(list(documents)), tt.policy(conservative)
    narrow = tt.policy(policy) if isinstance(policy, str) else policy
    return pipeline.screen(corpus, narrow, wide, unit="document", dedup="none", skeletons=False, out=out)


def records(documents: Sequence[Document]) -> tuple[Record, ...]:
    """The same records, unscreened, to test on."""
    from taciturn.text.segment import split

    return tuple(record for document in documents for record in split(document, "document"))


def redacted_share(screened: ScreenedCorpus) -> float:
    """Share of the words that redaction took away; a word that is masked in part is gone."""
    from taciturn.text.document import MASK

    before = sum(len(text.split()) for text in screened.texts("original"))
    left = sum(MASK not in word for text in screened.texts("redacted") for word in text.split())
    return 1 - left / before
