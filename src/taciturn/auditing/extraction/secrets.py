"""Secrets an extraction attack knows, each with the text before it and decoys that could have stood in its place."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path

from taciturn.auditing.canaries.templates import Planted, draw
from taciturn.errors import DataError, UsageError

DECOYS = 199
"""Decoys for each secret, fewer when there are many secrets."""


@dataclass(frozen=True, slots=True)
class Known:
    """A secret and the text before it, as they stood in the training text. decoys: what could have stood in its place,
    none of it trained on; random strings of the same shape if there are none."""

    prefix: str = field(repr=False)
    secret: str = field(repr=False)
    decoys: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not self.secret or self.secret in self.decoys:
            raise UsageError("extraction: expected a secret of at least one letter that is none of its own decoys")


def of_canaries(planted: Planted, seed: int = 0) -> list[Known]:
    """Planted canaries, with decoys drawn as they were."""
    n = min(decoys_each(len(planted.secrets)), planted.template.size - len(planted.secrets))
    decoys = tuple(draw(planted.template, n, seed, without=planted.secrets))
    return [Known(planted.template.prefix, secret, decoys) for secret in planted.secrets]


def read_known(path: Path) -> list[Known]:
    """Secrets from JSON lines: prefix, secret, and perhaps decoys. DataError names the line, never its text."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            found.append(Known(str(row["prefix"]), str(row["secret"]), tuple(map(str, row.get("decoys", ())))))
        except (ValueError, KeyError, TypeError, AttributeError, UsageError):
            raise DataError(f"{path.name}, line {number}: expected an object with prefix and secret") from None
    return found


def decoys_each(secrets: int) -> int:
    """Decoys of each of so many secrets."""
    return max(9, min(DECOYS, 2000 // max(secrets, 1)))


def with_decoys(known: Known, n: int, seed: int) -> Known:
    """Random strings of the secret's shape: a digit for a digit, a letter for a letter, all else as it is."""
    rng = random.Random(f"taciturn decoys {seed}")
    kinds = ["0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]

    def letter(c: str) -> str:
        kind = kinds[0] if c.isdecimal() else kinds[1] if c.islower() else kinds[2] if c.isupper() else c
        return rng.choice(kind)

    drawn: dict[str, None] = {}
    for _ in range(20 * n):
        if len(drawn) == n:
            break
        decoy = "".join(map(letter, known.secret))
        if decoy != known.secret:
            drawn[decoy] = None
    if not drawn:
        raise UsageError(
            "extraction: a secret has neither digits nor letters, so no decoy has its shape; give it decoys"
        )
    return Known(known.prefix, known.secret, tuple(drawn))
