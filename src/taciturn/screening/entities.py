"""Entity ids of a record: who or what its sensitive sentences are about (UeDP, V.A and Definition 2).

Two mentions are one entity if their labels are equal and their values are, after normalisation. Nothing is looked up and no
names are resolved: "Dana Vale" and "Dana" are two entities.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable

from taciturn.text.fold import fold
from taciturn.text.spans import Span

# A label with one of these words in it names something that is written with and without blanks and dashes.
_COMPACT = frozenset(
    """
    account bank bic card code codes iban id identifier ids imei imsi isbn key licence license mac mrn national nhs nif
    number numbers order passport phone pin plate postal postcode record ref reference routing serial ssn swift tax telephone
    tracking vat vin wallet zip
    """.split()  # noqa: SIM905
)
_LABEL_WORD = re.compile(r"[a-z]+")
_EDGE = re.compile(r"^[\W_]+|[\W_]+$")
_JOINTS = re.compile(r"[\W_]+")


def entities(text: str, spans: Iterable[Span]) -> tuple[str, ...]:
    """The distinct entities of one text, each as "label:value", sorted.

    spans: what a policy marked, in any order. Of spans that overlap the longest stands, then the leftmost, then the one
    whose label comes first, so that one mention is one entity. A span without a label takes its detector's name.

    >>> text = "Dana  Vale, 020 7946-0958; DANA VALE, 02079460958"
    >>> entities(text, [Span(0, 10, "name"), Span(12, 25, "phone"), Span(27, 36, "name"), Span(38, 49, "phone")])
    ('name:dana vale', 'phone:02079460958')
    """
    found = set()
    for span in _apart(spans):
        label = span.label or span.detector
        value = normal(text[span.start : span.end], label)
        if value:
            found.add(f"{label}:{value}")
    return tuple(sorted(found))


def normal(value: str, label: str = "") -> str:
    """A value without what does not tell entities apart: Unicode variants and dashes (text/fold.py), case, white space,
    punctuation around it, and all of it inside when the label names a number or a code. "" if nothing is left.

    >>> normal("  Vale\\u2010Ott,\\n Dana. "), normal("GB82 WEST 1234", "iban"), normal("CB2-1SJ", "POST_CODE")
    ('vale-ott, dana', 'gb82west1234', 'cb21sj')
    """
    plain = unicodedata.normalize("NFC", fold(value).text.casefold())
    if not _COMPACT.isdisjoint(_LABEL_WORD.findall(label.lower())):
        compact = _JOINTS.sub("", plain)
        if compact:
            return compact
    plain = " ".join(plain.split())
    return _EDGE.sub("", plain) or plain


def _apart(spans: Iterable[Span]) -> list[Span]:
    """The spans that stand where several overlap, by place."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start - s.end, s.start, s.label, s.detector)):
        at = bisect_left(kept, span.start, key=lambda s: s.start)
        before_it = at == 0 or kept[at - 1].end <= span.start
        after_it = at == len(kept) or span.end <= kept[at].start
        if span.end > span.start and before_it and after_it:
            kept.insert(at, span)
    return kept
