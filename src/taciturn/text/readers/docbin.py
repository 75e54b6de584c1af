"""Annotated texts as spaCy stores them (.spacy, a DocBin)."""

from __future__ import annotations

from collections.abc import Iterator

from taciturn.errors import MissingExtra
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.files import content
from taciturn.text.readers.formats import Item
from taciturn.text.readers.held import File
from taciturn.text.readers.items import BadRecord, Quarantined, Row


def spacy(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """A text is a document; its entities and the spans of its groups are annotations."""
    try:
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab
    except ImportError:
        raise MissingExtra("spacy", "spacy") from None
    try:
        found = [
            {
                options.text: doc.text,
                options.spans: [
                    {"start": span.start_char, "end": span.end_char, "label": span.label_}
                    for spans in (doc.ents, *doc.spans.values())
                    for span in spans
                ],
            }
            for doc in DocBin().from_bytes(content(path, name)).get_docs(Vocab())
        ]
    except BadRecord as bad:
        yield Quarantined(name, "row 1", bad.reason)
        return
    except MemoryError:
        raise
    except Exception as error:  # see ``spreadsheets.xlsx``
        yield Quarantined(name, "row 1", f"damaged, or no DocBin ({type(error).__name__}); write it again with to_disk")
        return
    for number, value in enumerate(found, 1):
        yield Row(number, f"row {number}", value)
