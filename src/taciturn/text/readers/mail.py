"""One mail message into a row: its subject, the text of its body, and the headers asked for by name.

The standard library takes the message apart under its older policy. The newer one parses every header it is asked for,
raises on some broken ones, and takes quadratic time on others (4 s for 40 kB); here headers are decoded by a few lines that
cannot fail, and each part in the charset it declares.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email import message_from_bytes
from email.errors import InvalidBase64LengthDefect
from email.message import Message
from typing import Any

from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.charsets import decoded
from taciturn.text.readers.items import BadRecord
from taciturn.text.readers.markup import declared, text_of_html

_DEEPEST = 50
_LONGEST_HEADER = 1 << 15
_ADDRESSES = frozenset({"from", "to", "cc", "bcc", "sender", "reply-to", "return-path", "delivered-to"})
_WORD = re.compile(r"=\?([!->@-~]{1,75})\?([bBqQ])\?([ ->@-~]*+)\?=")
_BREAKS = re.compile(r"\s*[\r\n]+\s*")
_QUOTED = re.compile(r'"[^"]*"')
_APART = re.compile(r"[\s<>(),;:\"\[\]]+")
_KINDS = frozenset({"application", "audio", "font", "image", "message", "model", "text", "video"})


@dataclass(slots=True)
class Mail:
    """What was read of one message. value: the row; left_out: kinds of the parts that were not read, in order."""

    value: dict[str, str] = field(default_factory=dict, repr=False)
    left_out: list[str] = field(default_factory=list)
    private: str | None = None


def mail(data: bytes, options: ReadOptions) -> Mail:
    """Raises BadRecord for a message that cannot be taken apart or decoded; nothing of it is cut.

    Fields: subject, body, text (subject, blank line, body), from, message-id, and any header that an option names, in lower
    case. Of a header with addresses the first address counts, in lower case.
    """
    try:
        message = message_from_bytes(data)
    except RecursionError:
        raise _too_deep() from None
    except Exception as error:  # the library promises not to raise on any input; broken mail finds the exceptions
        raise BadRecord(f"a message that cannot be taken apart ({type(error).__name__})") from None
    if not message.keys():
        raise BadRecord("a message without headers")
    read = Mail()
    headers = _Headers(message, read, options)
    texts = [text for text in _texts(message, read, options, 0) if text.strip()]
    body = "".join(texts if len(texts) < 2 else (_closed(text) for text in texts))
    subject = headers.get("subject") or ""
    read.value = {"text": f"{subject}\n\n{body}" if subject.strip() else body, "body": body, "subject": subject}
    asked = (*options.texts, options.user, options.id, options.label, options.text_pair, "from", "message-id")
    for name in asked:
        if name and name not in read.value and (content := headers.get(name)) is not None:
            read.value[name] = content
    return read


@dataclass(frozen=True, slots=True)
class _Headers:
    message: Message
    read: Mail
    options: ReadOptions

    def get(self, name: str) -> str | None:
        """The decoded content of a header on one line; None if it is not there, or names nobody."""
        raw = _raw(self.message, name)
        if raw is None:
            return None
        content = self._decoded(raw)
        return _address(content) if name.lower() in _ADDRESSES else content

    def _decoded(self, raw: str) -> str:
        """RFC 2047 words and plain bytes (RFC 6532: UTF-8) as text."""
        plain = self._text(raw.encode("ascii", "surrogateescape"), None)
        return _BREAKS.sub(" ", decoded_words(_BREAKS.sub(" ", plain).strip(), self._text))

    def _text(self, data: bytes, charset: str | None) -> str:
        text, private = decoded(data, charset, "a header", self.options.encoding_errors)
        self.read.private = self.read.private or private
        return text


def decoded_words(content: str, text: Callable[[bytes, str], str]) -> str:
    """Encoded words (RFC 2047) as text; what is none stays as it is.

    Neighbours in one charset are decoded together: programs cut words inside characters.

    >>> decoded_words("=?utf-8?q?caf=C3?= =?UTF-8?B?qQ==?= at =?x?b?!?=", lambda data, charset: data.decode(charset))
    'café at =?x?b?!?='
    """
    parts: list[str] = []
    held, charset, at = b"", "", 0
    for word in _WORD.finditer(content):
        data = _word(word[2].lower(), word[3])
        if data is None:
            continue
        between, own = content[at : word.start()], word[1].partition("*")[0].lower()
        if between.strip() or own != charset:
            if charset:
                parts.append(text(held, charset))
            if between.strip() or not charset:
                parts.append(between)
            held, charset = b"", own
        held += data
        at = word.end()
    if charset:
        parts.append(text(held, charset))
    return "".join(parts) + content[at:]


def _word(encoding: str, content: str) -> bytes | None:
    if encoding == "q":
        return binascii.a2b_qp(content, header=True)
    try:
        return binascii.a2b_base64(content + "=" * (-len(content) % 4), strict_mode=True)
    except binascii.Error:
        return None


def _raw(message: Message, name: str) -> str | None:
    """A header as it stands, bytes above ASCII as surrogates. Raises BadRecord for an absurdly long one."""
    for key, value in message.raw_items():
        if key.lower() == name.lower():
            if len(value) > _LONGEST_HEADER:
                raise BadRecord(f"a header of more than {_LONGEST_HEADER} bytes")
            return str(value)
    return None


def _address(content: str) -> str | None:
    """The first address, in lower case: the name beside it is no identity.

    >>> _address('"Roe, Ann" <Ann@Example.org>'), _address("undisclosed-recipients:;")
    ('ann@example.org', None)
    """
    for mailbox in _QUOTED.sub(" ", content).split(","):
        _, bracket, inside = mailbox.rpartition("<")
        for word in _APART.split(inside if bracket else mailbox):
            if "@" in word.strip("@"):
                return word.lower()
    return None


def _texts(part: Message, read: Mail, options: ReadOptions, depth: int) -> Iterator[str]:
    """The texts of a part and the parts in it. Of alternatives the plain one that says something, else the first that does.

    Attachments and whatever is not text are named in ``read.left_out``.
    """
    if depth > _DEEPEST:
        raise _too_deep()
    for name in ("content-type", "content-disposition", "content-transfer-encoding"):
        _raw(part, name)
    kind = part.get_content_type()
    main, _, sub = kind.partition("/")
    if depth and part.get_content_disposition() == "attachment":
        read.left_out.append(_named(main))
    elif part.is_multipart():
        inner = [each for each in _payload(part) if isinstance(each, Message)]
        if kind == "multipart/alternative":
            yield from _best(inner, read, options, depth + 1)
        else:
            for each in inner:
                if kind == "message/rfc822" and (subject := _Headers(each, read, options).get("subject")):
                    yield subject + "\n\n"
                yield from _texts(each, read, options, depth + 1)
    elif main == "multipart":
        raise BadRecord("a message whose parts cannot be found: their boundary is missing")
    elif main == "text":
        yield _text(part, sub, read, options)
    else:
        read.left_out.append(_named(main))


def _best(parts: list[Message], read: Mail, options: ReadOptions, depth: int) -> list[str]:
    chosen: list[str] = []
    for part in sorted(parts, key=lambda p: p.get_content_type() != "text/plain"):
        before = len(read.left_out)
        chosen = list(_texts(part, read, options, depth))
        if any(text.strip() for text in chosen):
            return chosen
        if part.get_content_maintype() == "text":
            del read.left_out[before:]
    return chosen


def _text(part: Message, sub: str, read: Mail, options: ReadOptions) -> str:
    data = _payload(part, decode=True)
    if not isinstance(data, bytes):
        return ""
    if any(isinstance(defect, InvalidBase64LengthDefect) for defect in part.defects):
        raise BadRecord("a part of the body is cut off: its base64 has no whole number of bytes")
    charset = part.get_content_charset()
    if charset is None and sub == "html":
        charset = declared(data)
    text, private = decoded(data, charset, "a part of the body", options.encoding_errors)
    read.private = read.private or private
    return text_of_html(text) if sub == "html" else text


def _payload(part: Message, decode: bool = False) -> Any:
    try:
        return part.get_payload(decode=True) if decode else part.get_payload()
    except Exception as error:  # see ``mail``
        raise BadRecord(f"a part of the body that cannot be unpacked ({type(error).__name__})") from None


def _closed(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _named(main: str) -> str:
    return f"attachment ({main if main in _KINDS else 'other'})"


def _too_deep() -> BadRecord:
    return BadRecord(f"a message nested more than {_DEEPEST} deep")
