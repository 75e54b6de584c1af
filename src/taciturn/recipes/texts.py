"""Documents as most recipes use them: each one record, all of them private, and what redaction leaves of their words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taciturn.screening.corpus.screened import ScreenedCorpus
    from taciturn.screening.policies import Policy
    from taciturn.text.document import Document, Record


def screen(documents: Sequence[Document], policy: Policy, conservative: str = "all-private") -> ScreenedCorpus:
    """One record a document, none removed; no skeletons, as nobody reads them."""
    import taciturn as tt
    from taciturn.text.readers import Corpus

    corpus, wide = Corpus.from_documents(list(documents)), tt.policy(conservative)
    return tt.screen(corpus, policy, wide, unit="document", dedup="none", skeletons=False)


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
