"""Which annotated secrets a screening missed: read again from its input, as a screened corpus keeps no annotations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from taciturn.errors import MismatchError
from taciturn.screening.corpus.gold import missed
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.measuring.evaluate import batches
from taciturn.screening.measuring.preview import of_corpus
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.derived import Missing
from taciturn.screening.policies.finder import Finder
from taciturn.screening.policies.public import Public
from taciturn.screening.rows import Local
from taciturn.screening.sparing import Sparing
from taciturn.text.readers import Corpus


def misses_of(
    screened: ScreenedCorpus, corpus: Corpus, pi: Policy, conservative: Policy, public: Public | None = None
) -> Iterator[dict[str, Any]]:
    """The secrets that both policies miss with skeletons (``gold.missed``), in corpus order. corpus, pi, conservative,
    public: what ``screened`` was made of. Records with annotations are screened again, those of documents that cleaning left
    out, too; ids are those of the input.

    Raises MismatchError if ``corpus`` is another input.
    """
    manifest = screened.manifest
    if dict(corpus.digests()) != {each.name: each.digest for each in manifest.inputs}:
        raise MismatchError("these are not the files this corpus was screened from; name the same files")
    finder: Finder = Missing(pi, manifest.miss_rate, manifest.miss_seed) if manifest.miss_rate else pi
    local = Local.of(finder, Sparing.of(pi, conservative, public), manifest.skeletons, manifest.bridge)
    records = of_corpus(corpus, manifest.unit, manifest.counts.quarantined)  # type: ignore[arg-type]
    for some in batches(record for record in records if record.gold):
        for row in local.rows(some):
            yield from missed(row)
