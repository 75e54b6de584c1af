"""Rich text (.rtf), through striprtf."""

from __future__ import annotations

import re
from collections.abc import Iterator

from taciturn.errors import MissingExtra
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.charsets import UNDECODABLE
from taciturn.text.readers.files import content
from taciturn.text.readers.formats import Item
from taciturn.text.readers.held import File
from taciturn.text.readers.items import BadRecord, Blank, Quarantined, Row

_APART = re.compile(r"\{(?<!\\\{)(?:\\\*)?\\(?:header|footer|footnote|annotation)[lrf]?(?![a-z])")
"""Groups that striprtf would drop. Named as paragraphs, they are read where they stand."""
_DROPPED = re.compile(r"\{(?<!\\\{)(?:\\\*)?\\(?:(pict)|(object)|(shptxt))(?![a-z])")
_KINDS = ("image", "embedded file", "text box")


def rtf(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """The text with headers, footers, notes and comments where they stand; images and text boxes are counted."""
    try:
        from striprtf.striprtf import rtf_to_text
    except ImportError:
        raise MissingExtra("striprtf", "documents") from None
    private = None
    try:
        data = content(path, name)
        if not data.lstrip().startswith(b"{\\rtf"):
            raise BadRecord("no rich text: it does not begin with {\\rtf")
        source = _APART.sub(r"{\\par ", data.decode("latin-1"))
        try:
            text = rtf_to_text(source)
        except UnicodeDecodeError:
            if options.encoding_errors == "strict":
                raise BadRecord(
                    "holds bytes that its code page does not have; encoding_errors='replace' keeps it"
                ) from None
            text, private = rtf_to_text(source, errors="replace"), f"the text {UNDECODABLE}"
    except BadRecord as bad:
        yield Quarantined(name, "line 1", bad.reason)
        return
    except MemoryError:
        raise
    except Exception as error:  # see ``spreadsheets.xlsx``
        yield Quarantined(name, "line 1", f"damaged rich text ({type(error).__name__}); open and save it again")
        return
    for found in _DROPPED.finditer(source):
        yield Blank(name, "line 1", _KINDS[(found.lastindex or 1) - 1])
    yield Row(1, "line 1", {options.text: text}, private)
