"""Canaries: random secrets in a fixed template, planted in a corpus to see whether a model learns them.

Carlini et al. 2019, section 4; CRT section 5.1 uses "My ID is: <6 digits>", 10 secrets × 20 copies.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taciturn.errors import DataError, UsageError
from taciturn.text.document import Document
from taciturn.text.spans import Span


@dataclass(frozen=True, slots=True)
class Template:
    """A text with one ``{}`` that stands for ``length`` letters of ``alphabet``; |R| = ``size`` candidates.

    >>> t = Template("My ID is: {}")
    >>> t.size, t.fill("000123"), t.index("000123"), t.secret(123)
    (1000000, 'My ID is: 000123', 123, '000123')
    """

    text: str = "My ID is: {}"
    alphabet: str = "0123456789"
    length: int = 6

    def __post_init__(self) -> None:
        if self.text.count("{}") != 1 or "\n" in self.text:
            raise UsageError("canary template: expected one line with exactly one {} for the secret")
        if len(set(self.alphabet)) != len(self.alphabet) or len(self.alphabet) < 2 or self.length < 1:
            raise UsageError("canary template: expected at least two different letters and a length of at least 1")

    @property
    def size(self) -> int:
        """|R|, the number of candidates."""
        return int(len(self.alphabet) ** self.length)

    @property
    def prefix(self) -> str:
        return self.text.partition("{}")[0]

    @property
    def suffix(self) -> str:
        return self.text.partition("{}")[2]

    def fill(self, secret: str) -> str:
        """The canary: the template with the secret in it."""
        return f"{self.prefix}{secret}{self.suffix}"

    def index(self, secret: str) -> int:
        """Position of a secret among all candidates in alphabet order. Raises UsageError (never quoting the secret)."""
        if len(secret) != self.length or not set(secret) <= set(self.alphabet):
            raise UsageError(
                f"a secret is not a candidate of its template: expected {self.length} letters of an alphabet of "
                f"{len(self.alphabet)}, found {len(secret)} letters, {len(set(secret) - set(self.alphabet))} foreign"
            )
        i = 0
        for letter in secret:
            i = i * len(self.alphabet) + self.alphabet.index(letter)
        return i

    def secret(self, index: int) -> str:
        """The candidate at ``index``; inverse of :meth:`index`."""
        letters = []
        for _ in range(self.length):
            index, letter = divmod(index, len(self.alphabet))
            letters.append(self.alphabet[letter])
        return "".join(reversed(letters))


def draw(template: Template, n: int, seed: int, without: Sequence[str] = ()) -> list[str]:
    """``n`` different secrets, uniform over the candidates not in ``without``."""
    taken = {template.index(secret) for secret in without}
    if n > template.size - len(taken):
        raise UsageError(f"{n} different secrets asked of a template with {template.size - len(taken)} left")
    drawn = random.Random(f"taciturn canaries {seed}").sample(range(template.size), n + len(taken))
    return [template.secret(i) for i in drawn if i not in taken][:n]


def plant(
    documents: Sequence[Document], template: Template, secrets: Sequence[str], copies: int, seed: int
) -> list[Document]:
    """The corpus with every canary inserted ``copies`` times, each as a document of its own at a random place.

    Copy j of canary i has the id ``canary-i-j`` and a gold span labelled "canary" over its secret. The order of
    ``documents`` is kept.
    """
    rng = random.Random(f"taciturn plant {seed}")
    planted = [_canary(template, secret, f"canary-{i}-{j}") for i, secret in enumerate(secrets) for j in range(copies)]
    rng.shuffle(planted)
    gaps = sorted(rng.randint(0, len(documents)) for _ in planted)
    out: list[Document] = []
    start = 0
    for gap, canary in zip(gaps, planted, strict=True):
        out += documents[start:gap]
        out.append(canary)
        start = gap
    return [*out, *documents[start:]]


def _canary(template: Template, secret: str, name: str) -> Document:
    start = len(template.prefix)
    span = Span(start, start + len(secret), "canary", detector="planted")
    return Document(id=name, text=template.fill(secret), gold=(span,))


@dataclass(frozen=True, slots=True)
class Planted:
    """What an exposure audit needs to know about a corpus. Holds the secrets: it is kept outside the run folder."""

    template: Template
    secrets: tuple[str, ...] = field(repr=False)
    copies: int = 1

    def __post_init__(self) -> None:
        for secret in self.secrets:
            self.template.index(secret)
        if not self.secrets or len(set(self.secrets)) != len(self.secrets) or self.copies < 1:
            raise UsageError(
                "planted canaries: expected at least one secret, all different, each planted at least once"
            )

    def write(self, path: Path) -> None:
        """Write ``canaries.json``, readable by its owner only (mode 0600)."""
        data = {
            "template": self.template.text,
            "alphabet": self.template.alphabet,
            "secrets": list(self.secrets),
            "copies": self.copies,
        }
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(data, file)

    @classmethod
    def read(cls, path: Path) -> Planted:
        """Read ``canaries.json``: template, secrets, copies, and alphabet (digits when absent)."""
        try:
            data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            secrets = tuple(str(s) for s in data["secrets"])
            template = Template(data["template"], data.get("alphabet", "0123456789"), len(secrets[0]))
            return cls(template, secrets, int(data.get("copies", 1)))
        except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise DataError(
                f"{path.name}: expected an object with template, secrets and copies ({type(error).__name__})"
            ) from None  # a decoder's message may quote the file
