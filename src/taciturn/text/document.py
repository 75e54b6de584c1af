"""Documents as read, and the records (privacy units) they are split into."""

from __future__ import annotations

from dataclasses import dataclass, field

from taciturn.text.spans import Span

MASK = "<MASK>"
"""The one mask: redaction, deduplication and a literal occurrence in the input all look the same (CRT A.6, item 4)."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a dialogue: ``document.text[start:end]``, the line end that closes it included."""

    start: int
    end: int
    speaker: str | None = None


# Nothing changes a document or a record once it is made; to freeze them takes five times as long as to make them.
@dataclass(slots=True, unsafe_hash=True)
class Document:
    """One input document.

    user: who it belongs to, where the input says so. turns: empty unless the input was a dialogue; they cover the text
    without gaps. gold: annotated spans, offsets into ``text``. private_because: why every record of this document must be
    private whatever the policies say (undecodable bytes, NUL, ...), else None. label: its class, where it has one; labels
    are part of the schema, and nothing hides them. The text of a conversation or a pair is laid out as in
    ``taciturn.text.chat``.
    """

    id: str
    text: str = field(repr=False)  # a traceback or a log line that shows a document must not show its text
    user: str | None = None
    turns: tuple[Turn, ...] = ()
    gold: tuple[Span, ...] = ()
    private_because: str | None = None
    label: str | None = None


@dataclass(slots=True, unsafe_hash=True)
class Record:
    """The unit of confidentiality: a whole sentence, turn or document.

    text == document.text[start:end]; the records of a document, in order, join back to its text. gold: annotated spans,
    offsets into this record's ``text``. The line end that closes a record is in ``text`` but not in ``body``.
    """

    id: str
    document_id: str
    start: int
    end: int
    text: str = field(repr=False)
    user: str | None = None
    gold: tuple[Span, ...] = field(default=())
    private_because: str | None = None
    label: str | None = None

    @property
    def body(self) -> str:
        """The text without the line ends (LF, CRLF) that close it: what is screened, deduplicated and trained on."""
        return body(self.text)


def body(text: str) -> str:
    """``text`` without closing line ends. Only LF and CRLF end a line.

    >>> body("Hello.\\r\\n\\n"), body("Hello.\\r")
    ('Hello.', 'Hello.\\r')
    """
    while text.endswith("\n"):
        text = text[:-2] if text.endswith("\r\n") else text[:-1]
    return text
