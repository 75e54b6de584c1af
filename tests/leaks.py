"""Whether a secret is told, in tests that look for one in what was written."""

from __future__ import annotations

import re


def told(secret: str, where: str | bytes) -> bool:
    """`secret` stands in `where`; one of digits alone: not inside a digest, a time or a longer number, where any six
    digits turn up by chance (among a thousand numbers of 17 digits once in a hundred times)."""
    text = where.decode("utf-8", "replace") if isinstance(where, bytes) else where
    if not re.fullmatch("[0-9a-f]+", secret):
        return secret in text
    return re.search(f"(?<![0-9a-f.]){secret}(?![0-9a-f])", text) is not None
