"""Messages saved by Outlook (.msg), through olefile. extract-msg knows more of them, and its licence is the GPL."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from taciturn.errors import MissingExtra
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.charsets import decoded
from taciturn.text.readers.files import content
from taciturn.text.readers.formats import Item
from taciturn.text.readers.held import File
from taciturn.text.readers.items import BadRecord, Blank, Quarantined, Row
from taciturn.text.readers.markup import declared, text_of_html

_PROPERTY = "__substg1.0_"
_SUBJECT, _BODY, _HTML, _RICH = "0037", "1000", "1013", "1009"
_SENDER = ("5D01", "0C1F", "0C1A")  # SMTP address; address; name
_HEADERS = {"to": ("0E04",), "cc": ("0E03",), "message-id": ("1035",), "from": _SENDER}
"""MS-OXPROPS: PidTagSubject, PidTagBody, PidTagHtml, PidTagRtfCompressed, PidTagSenderSmtpAddress …"""


def msg(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """The fields that mail has (see ``mail.mail``): subject, body, text, from, to, cc, message-id. Attachments count."""
    try:
        import olefile
    except ImportError:
        raise MissingExtra("olefile", "documents") from None
    try:
        with olefile.OleFileIO(io.BytesIO(content(path, name))) as store:
            value, private = _message(store, options)
            attached = sum(each[-1].startswith("__attach_") for each in store.listdir(streams=False, storages=True))
    except BadRecord as bad:
        yield Quarantined(name, "message 1", bad.reason)
        return
    except MemoryError:
        raise
    except Exception as error:  # see ``spreadsheets.xlsx``
        yield Quarantined(
            name, "message 1", f"damaged, or no Outlook message ({type(error).__name__}); save it as .eml"
        )
        return
    for _ in range(attached):
        yield Blank(name, "message 1", "attachment (other)")
    yield Row(1, "message 1", value, private, id=value.get("message-id"), user=value.get("from"))


def _message(store: Any, options: ReadOptions) -> tuple[dict[str, str], str | None]:
    reasons: list[str | None] = []

    def text(tag: str) -> str:
        for kind, charset in (("001F", "utf-16-le"), ("001E", "cp1252")):
            if store.exists(stream := f"{_PROPERTY}{tag}{kind}"):
                found, private = decoded(
                    store.openstream(stream).read(), charset, "a property", options.encoding_errors
                )
                reasons.append(private)
                return found.rstrip("\0")
        return ""

    def html() -> str:
        if not store.exists(stream := f"{_PROPERTY}{_HTML}0102"):
            return text(_HTML)
        data = store.openstream(stream).read()
        found, private = decoded(data, declared(data), "the body", options.encoding_errors)
        reasons.append(private)
        return found.rstrip("\0")

    subject, body = text(_SUBJECT), text(_BODY) or text_of_html(html())
    if not body.strip() and store.exists(f"{_PROPERTY}{_RICH}0102"):
        raise BadRecord("its body is compressed rich text, which is not read; save it as .eml or with a plain body")
    value = {"text": f"{subject}\n\n{body}" if subject.strip() else body, "body": body, "subject": subject}
    for header, tags in _HEADERS.items():
        if found := next((found for tag in tags if (found := text(tag).strip())), ""):
            value[header] = found.lower() if header == "from" else found
    return value, next(filter(None, reasons), None)
