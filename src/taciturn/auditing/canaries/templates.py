"""Canaries: random secrets in a fixed template, planted in a corpus to see whether a model learns them.

Carlini et al. 2019, section 4; CRT section 5.1 uses "My ID is: <6 digits>", 10 secrets × 20 copies.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from taciturn.auditing.canaries.alphabets import NAMED, Alphabet, alphabet_problem
from taciturn.errors import DataError, UsageError, nearest
from taciturn.text.document import Document
from taciturn.text.spans import CANARY, Span

Kind = Literal["", "missed", "caught"]
"""Whether π misses a canary's secret or marks all of it; "" where nobody said."""


@dataclass(frozen=True, slots=True)
class Template:
    """A text with one ``{}`` that stands for ``length`` letters, or words, of ``alphabet``; |R| = ``size`` candidates.

    >>> t = Template("My ID is: {}")
    >>> t.size, t.fill("000123"), t.index("000123"), t.secret(123)
    (1000000, 'My ID is: 000123', 123, '000123')
    >>> Template("say {}", ("red", "blue", "green"), 2).secret(5)
    'blue green'
    """

    text: str = "My ID is: {}"
    alphabet: Alphabet = NAMED["digits"]
    length: int = 6

    def __post_init__(self) -> None:
        if self.text.count("{}") != 1 or "\n" in self.text:
            raise UsageError("canary template: expected one line with exactly one {} for the secret")
        if self.length < 1:
            raise UsageError(f"canary template: expected a length of at least 1, found {self.length}")
        if wrong := alphabet_problem(self.alphabet):
            raise UsageError(f"canary template, alphabet: {wrong}")

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

    @property
    def joint(self) -> str:
        """What stands between two symbols of a secret."""
        return "" if isinstance(self.alphabet, str) else " "

    def fill(self, secret: str) -> str:
        """The canary: the template with the secret in it."""
        return f"{self.prefix}{secret}{self.suffix}"

    def index(self, secret: str) -> int:
        """Position of a secret among all candidates in alphabet order. Raises UsageError (never quoting the secret)."""
        places = _places(self.alphabet)
        symbols = list(secret) if isinstance(self.alphabet, str) else secret.split(" ")
        foreign = len(set(symbols) - places.keys())
        if len(symbols) != self.length or foreign:
            what = "letters" if isinstance(self.alphabet, str) else "words"
            raise UsageError(
                f"a secret is not a candidate of its template: expected {self.length} {what} of an alphabet of "
                f"{len(self.alphabet)}, found {len(symbols)} {what}, {foreign} foreign"
            )
        i = 0
        for symbol in symbols:
            i = i * len(self.alphabet) + places[symbol]
        return i

    def secret(self, index: int) -> str:
        """The candidate at ``index``; inverse of :meth:`index`."""
        symbols = []
        for _ in range(self.length):
            index, symbol = divmod(index, len(self.alphabet))
            symbols.append(self.alphabet[symbol])
        return self.joint.join(reversed(symbols))


@lru_cache(maxsize=8)
def _places(alphabet: Alphabet) -> dict[str, int]:
    return {symbol: i for i, symbol in enumerate(alphabet)}


def draw(template: Template, n: int, seed: int, without: Sequence[str] = ()) -> list[str]:
    """``n`` different secrets, uniform over the candidates not in ``without``."""
    taken = {template.index(secret) for secret in without}
    if n > template.size - len(taken):
        raise UsageError(f"{n} different secrets asked of a template with {template.size - len(taken)} left")
    rng = random.Random(f"taciturn canaries {seed}")
    if template.size <= sys.maxsize:
        drawn = rng.sample(range(template.size), n + len(taken))
    else:  # a range this long cannot be sampled from
        drawn = list(dict.fromkeys(rng.randrange(template.size) for _ in range(2 * (n + len(taken)))))
    return [template.secret(i) for i in drawn if i not in taken][:n]


def plant(
    documents: Sequence[Document], template: Template, secrets: Sequence[str], copies: int, seed: int
) -> list[Document]:
    """The corpus with every canary inserted ``copies`` times, each as a document of its own at a random place.

    Copy j of canary i has the id ``canary-i-j`` and a gold span labelled "canary" over its secret. The order of
    ``documents`` is kept. Screening does not count these spans as labelled secrets, which stand for those of the text.
    """
    out: list[Document] = []
    start = 0
    for gap, canary in placed(len(documents), template, secrets, copies, seed):
        out += documents[start:gap]
        out.append(canary)
        start = gap
    return [*out, *documents[start:]]


def placed(
    documents: int, template: Template, secrets: Sequence[str], copies: int, seed: int, name: str = "canary"
) -> Iterator[tuple[int, Document]]:
    """The canaries in corpus order, each with the number of documents before it; ids begin with ``name``."""
    rng = random.Random(f"taciturn plant {seed}")
    planted = [_canary(template, secret, f"{name}-{i}-{j}") for i, secret in enumerate(secrets) for j in range(copies)]
    rng.shuffle(planted)
    gaps = sorted(rng.randint(0, documents) for _ in planted)
    yield from zip(gaps, planted, strict=True)


def _canary(template: Template, secret: str, name: str) -> Document:
    start = len(template.prefix)
    span = Span(start, start + len(secret), CANARY, detector="planted")
    return Document(id=name, text=template.fill(secret), gold=(span,))


@dataclass(frozen=True, slots=True)
class Planted:
    """What an exposure audit needs to know about a corpus. Holds the secrets: it is kept outside the run folder.

    copies: records that hold one secret. kind: what π does to the secrets.
    """

    template: Template
    secrets: tuple[str, ...] = field(repr=False)
    copies: int = 1
    kind: Kind = ""

    def __post_init__(self) -> None:
        for secret in self.secrets:
            self.template.index(secret)
        if not self.secrets or len(set(self.secrets)) != len(self.secrets) or self.copies < 1:
            raise UsageError(
                "planted canaries: expected at least one secret, all different, each planted at least once"
            )
        if self.kind not in get_args(Kind):
            raise UsageError(f"planted canaries, kind {self.kind!r}: {nearest(self.kind, get_args(Kind))}")

    def write(self, path: Path) -> None:
        """Write ``canaries.json``, readable by its owner only (mode 0600)."""
        write_plantings(path, [self])

    @classmethod
    def read(cls, path: Path) -> Planted:
        """Read a ``canaries.json`` of one planting; see :func:`read_plantings`."""
        found = read_plantings(path)
        if len(found) != 1:
            raise DataError(f"{path.name}: expected one planting, found {len(found)}; read it with read_plantings")
        return found[0]

    def _json(self) -> dict[str, Any]:
        symbols = self.template.alphabet
        data = {
            "template": self.template.text,
            "alphabet": symbols if isinstance(symbols, str) else list(symbols),
            "length": self.template.length,
            "secrets": list(self.secrets),
            "copies": self.copies,
        }
        return data | {"kind": self.kind} if self.kind else data

    @classmethod
    def _of(cls, data: Any) -> Planted:
        secrets = tuple(str(s) for s in data["secrets"])
        symbols = data.get("alphabet", NAMED["digits"])
        symbols = symbols if isinstance(symbols, str) else tuple(map(str, symbols))
        length = data.get("length", len(secrets[0]) if isinstance(symbols, str) else len(secrets[0].split(" ")))
        kind: Any = data.get("kind", "")
        return cls(Template(data["template"], symbols, int(length)), secrets, int(data.get("copies", 1)), kind)


def write_plantings(path: Path, plantings: Sequence[Planted]) -> None:
    """Write ``canaries.json``, readable by its owner only (mode 0600): one planting as an object, several as a list."""
    rows = [each._json() for each in plantings]
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(rows[0] if len(rows) == 1 else rows, file)


def read_plantings(path: Path) -> tuple[Planted, ...]:
    """Read ``canaries.json``, an object or a list of them: template, secrets, copies, alphabet (digits when absent; a
    string of letters or a list of words), length (the secrets' when absent), kind ("missed" or "caught", if any)."""
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        found = tuple(Planted._of(each) for each in (data if isinstance(data, list) else [data]))
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path.name}: expected an object with template, secrets and copies, or a list of such "
            f"({type(error).__name__})"
        ) from None  # a decoder's message may quote the file
    if not found:
        raise DataError(f"{path.name}: expected an object with template, secrets and copies, found an empty list")
    return found
