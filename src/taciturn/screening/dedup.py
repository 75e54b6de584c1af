"""Exact deduplication of redacted texts: the first stays, later copies become ``<MASK>`` (guarantees.md §2.2).

A record is its text and its label: equal texts with different labels both stay. The private records as a multiset change
by at most one element when one record changes, in every scope, because a record in scope is there once and each further
copy is the same ``<MASK>``, without a label. Public and private copies are looked up apart, so that no private record
decides which public ones stay. Scope "private" is the one in which k copies of a secret always cost as much as one: in
scope "suspicious" the masked copies may be unsuspicious, and then all of them stay.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Literal, get_args

from taciturn.text.document import MASK

Scope = Literal["suspicious", "private", "all", "none"]
SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(slots=True)
class Dedup:
    """Ask once per record, in corpus order. Keeps 16 bytes a distinct text, under a key drawn for this object and never
    stored: unkeyed hashes of short sentences can be guessed."""

    scope: Scope
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _seen: set[bytes] = field(default_factory=set, repr=False)

    def is_copy(self, text: str, private: bool, suspicious: bool, label: str | None = None) -> bool:
        """Whether an equal text with this label came before, in scope. suspicious: π_c still marks something in it."""
        inside = {"suspicious": private and suspicious, "private": private, "all": True, "none": False}[self.scope]
        if not inside or text == MASK:
            return False
        whole = f"-{text}" if label is None else f"{len(label)}:{label}{text}"
        digest = hashlib.blake2b(
            whole.encode("utf-8", "surrogatepass"), digest_size=16, key=self._key, salt=b"p" * private
        ).digest()
        if digest in self._seen:
            return True
        self._seen.add(digest)
        return False
