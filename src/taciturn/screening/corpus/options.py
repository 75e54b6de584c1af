"""How to screen, and the key that says what a screened corpus is a function of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal, get_args

import orjson

from taciturn.errors import UsageError, nearest
from taciturn.screening.bridges import BRIDGES, Bridge
from taciturn.screening.cleaning.clean import CLEAN, Clean
from taciturn.screening.corpus.manifest import Input
from taciturn.screening.dedup import SCOPES, Scope
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.finder import Named
from taciturn.text.readers import Corpus
from taciturn.text.segment import Unit

Order = Literal["redact-first", "as-published"]
ORDERS: tuple[Order, ...] = ("redact-first", "as-published")


@dataclass(frozen=True, slots=True)
class Options:
    """How to screen; every field is part of the content key."""

    unit: Unit = "sentence"
    dedup: Scope = "suspicious"
    order: Order = "redact-first"
    skeletons: bool = True
    miss_rate: float = 0.0
    miss_seed: int = 0
    keep_originals: bool = True
    clean: Clean = "none"
    bridge: Bridge = "particles"

    def __post_init__(self) -> None:
        for what, value, known in (
            ("unit", self.unit, get_args(Unit)),
            ("dedup", self.dedup, SCOPES),
            ("order", self.order, ORDERS),
            ("clean", self.clean, CLEAN),
            ("bridge", self.bridge, BRIDGES),
        ):
            if value not in known:
                raise UsageError(f"{what} '{value}' is unknown; {nearest(value, known)}")


def content_key(options: Options, policies: tuple[Policy, Named], corpus: Corpus, inputs: Sequence[Input]) -> str:
    """32 hex digits: a hash of the input digests, the reading options, both policies, the options and the code."""
    parts = {
        "inputs": [(i.name, i.digest) for i in inputs],
        "reading": asdict(corpus.options),
        "policies": [policy.identity for policy in policies],
        "options": [getattr(options, name) for name in options.__slots__],
        "code": code_digest(),
    }
    return hashlib.blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()


@cache
def code_digest() -> str:
    """A hash of the code that decides what a screened corpus is: an edited pattern or rule gives another key."""
    digest = hashlib.blake2b(digest_size=16)
    for package in ("taciturn.text", "taciturn.screening"):
        for name, source in sorted(_sources(files(package), package)):
            digest.update(name.encode() + b"\0" + source + b"\0")
    return digest.hexdigest()


def _sources(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name.endswith(".py"):
            yield f"{name}/{entry.name}", entry.read_bytes()
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry, f"{name}/{entry.name}")
