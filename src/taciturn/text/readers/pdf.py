"""PDF, its text layer, through pypdf."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from typing import Any

from taciturn.errors import MissingExtra
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.files import content
from taciturn.text.readers.formats import Item
from taciturn.text.readers.held import File
from taciturn.text.readers.items import BadRecord, Blank, Quarantined, Row


def pdf(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """The pages' text, a form feed between two, then notes and fields of forms. A page that shows something but has no text
    is quarantined, as a scan is; attached files are counted."""
    try:
        import pypdf
    except ImportError:
        raise MissingExtra("pypdf", "documents") from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns of damage that it mends, in the file's own words
    try:
        reader = pypdf.PdfReader(io.BytesIO(content(path, name)))
        if reader.is_encrypted and not reader.decrypt(""):
            raise BadRecord("encrypted with a password; remove it (qpdf --decrypt)")
        texts: list[str] = []
        scans: list[int] = []
        empty: list[int] = []
        for number, page in enumerate(reader.pages, 1):
            text = page.extract_text()
            texts.append(text)
            if not text.strip():
                (scans if _shows(page) else empty).append(number)
        noted = [note for page in reader.pages for note in _notes(page)]
        attached = len(list(reader.attachment_list))
    except BadRecord as bad:
        yield Quarantined(name, "line 1", bad.reason)
        return
    except MemoryError:
        raise
    except Exception as error:  # see ``spreadsheets.xlsx``; a cipher that needs another package ends here too
        yield Quarantined(
            name, "line 1", f"damaged, encrypted, or no PDF ({type(error).__name__}); print it to a new one"
        )
        return
    for number in scans:
        yield Quarantined(name, f"page {number}", "has no text layer, as a scan; recognise its text first (ocrmypdf)")
    for number in empty:
        yield Blank(name, f"page {number}")
    for _ in range(attached):
        yield Blank(name, "line 1", "attached file")
    yield Row(1, "line 1", {options.text: "\n".join(("\n\f".join(texts), *noted)).strip("\n\f")})


def _shows(page: Any) -> bool:
    contents = page.get_contents()
    return contents is not None and bool(contents.get_data().strip())


def _notes(page: Any) -> Iterator[str]:
    """Comments, and what was filled into a form."""
    for each in page.annotations or ():
        note = each.get_object()
        for key in ("/Contents", "/V"):
            value = note.get(key)
            if isinstance(value, str) and not value.startswith("/"):
                yield value
