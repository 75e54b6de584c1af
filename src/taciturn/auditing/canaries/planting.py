"""Canaries planted in any corpus before it is screened, and what π does to them.

"missed": π marks no character of a secret. "caught": π marks all of it. "dialled": π marks all of it and is then made to
miss a share γ, as ``taciturn screen --miss-rate`` does; the secrets are told apart by their coins.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import orjson

from taciturn.auditing.canaries.templates import Kind, Planted, Template, draw, placed
from taciturn.errors import DataError, UsageError, nearest
from taciturn.screening.policies.derived import Missing
from taciturn.screening.policies.finder import Finder
from taciturn.screening.redact import ADJACENT, maximal
from taciturn.text.document import Document
from taciturn.text.readers import Corpus, Quarantined
from taciturn.text.segment import Unit, split

Wanted = Literal["missed", "caught", "dialled"]


@dataclass(frozen=True, slots=True)
class Dial:
    """γ and the seed of the coins, as given to screening."""

    rate: float
    seed: int = 0


def choose(
    template: Template,
    n: int,
    copies: int,
    kind: Wanted,
    *,
    pi: Finder | None = None,
    dial: Dial | None = None,
    unit: Unit = "sentence",
    seed: int = 0,
    without: Sequence[str] = (),
) -> tuple[Planted, ...]:
    """Draw ``n`` secrets that are not in ``without`` and check that π does to them what ``kind`` says.

    One planting; two, by the coins of ``dial``, if the secrets are dialled and neither kind is empty. Without ``pi``
    nothing is checked. Secrets are never drawn again until they fit: then they would no longer be uniform. Raises
    UsageError when π does something else to any of them.
    """
    if kind not in get_args(Wanted):
        raise UsageError(f"kind {kind!r}: {nearest(kind, get_args(Wanted))}")
    if n < 1 or copies < 1:
        raise UsageError(f"planting: expected at least one canary and one copy of each, found {n} and {copies}")
    if (kind == "dialled") != (dial is not None) or (dial is not None and pi is None):
        raise UsageError(
            "kind 'dialled', and only it, needs a policy (-p) and the share π is made to miss (--miss-rate)"
        )
    drawn = draw(template, n, seed, without)
    wanted: Kind = "caught" if kind == "dialled" else kind
    if pi is not None:
        found = policy_outcomes(template, drawn, pi, unit)
        if wrong := sum(each != wanted for each in found):
            raise UsageError(
                f"planting: π treats {wrong} of {n} canaries otherwise than {kind!r} asks ({found.count('missed')} missed, "
                f"{found.count('caught')} caught, {found.count('partly')} partly marked): choose another template, "
                "alphabet or policy"
            )
    if dial is None or pi is None:
        return (Planted(template, tuple(drawn), copies, wanted),)
    coins = policy_outcomes(template, drawn, Missing(pi, dial.rate, dial.seed), unit)
    if "partly" in coins:
        raise UsageError(
            "planting: π marks a secret in several pieces, each with a coin of its own: it cannot be dialled"
        )
    kinds: tuple[Kind, ...] = ("missed", "caught")
    by_coin = [(each, tuple(s for s, coin in zip(drawn, coins, strict=True) if coin == each)) for each in kinds]
    return tuple(Planted(template, some, copies, each) for each, some in by_coin if some)


def policy_outcomes(template: Template, secrets: Sequence[str], pi: Finder, unit: Unit = "sentence") -> list[str]:
    """What π does to each secret in its canary, as screening would: "missed", "caught" or "partly"."""
    canaries = [canary for _, canary in sorted(placed(0, template, secrets, 1, 0), key=lambda each: _number(each[1]))]
    return [_treated(canary, pi, unit) for canary in canaries]


def _number(canary: Document) -> int:
    return int(canary.id.split("-")[1])


def _treated(canary: Document, pi: Finder, unit: Unit) -> str:
    records = [record for record in split(canary, unit) if record.gold]
    found = pi.find([record.body for record in records])
    told = set[str]()
    for record, detection in zip(records, found, strict=True):
        masked = maximal(record.body, detection.spans, ADJACENT)
        for gold in record.gold:
            if any(start <= gold.start and gold.end <= end for start, end in masked):
                told.add("caught")
            else:
                told.add("partly" if any(start < gold.end and gold.start < end for start, end in masked) else "missed")
    return told.pop() if len(told) == 1 else "partly"


@dataclass(frozen=True, slots=True)
class Written:
    """Documents of the corpus, and canary records among them."""

    documents: int
    canaries: int


def write(corpus: Corpus, plantings: Sequence[Planted], out: Path, seed: int = 0, name: str = "canary") -> Written:
    """Write the corpus as JSON lines with the canaries of ``plantings``, all of one template, at random places.

    Fields: id, text (of a dialogue: turns), user, label, spans. A canary has an id that begins with ``name``; in a corpus
    with users each secret has a user of its own, in one with labels each copy has one of theirs. Two passes, so that memory
    does not grow with the corpus. The file is written whole or not at all, readable by its owner only. Raises DataError
    for a document that cannot be read or written back as it is.
    """
    if corpus.options.structured:
        raise UsageError(
            "plant: conversations (--chat) and pairs (--text-pair) have no place for a canary; plant in texts"
        )
    template, copies = plantings[0].template, plantings[0].copies
    secrets = [secret for planted in plantings for secret in planted.secrets]
    total, users, labels = 0, False, set[str]()
    for document in _documents(corpus):
        total += 1
        users = users or document.user is not None
        labels |= {document.label} - {None} if document.label is not None else set()
    rng = random.Random(f"taciturn plant labels {seed}")
    canaries = list(placed(total, template, secrets, copies, seed, name))
    partial = out.with_name(out.name + ".partial")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        at = 0
        for number, document in enumerate(_documents(corpus)):
            at = _canaries_before(file, canaries, at, number, users, sorted(labels), rng)
            file.write(_line(document))
        _canaries_before(file, canaries, at, total, users, sorted(labels), rng)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(out)
    return Written(total, len(canaries))


def _canaries_before(
    file: Any,
    canaries: Sequence[tuple[int, Document]],
    at: int,
    number: int,
    users: bool,
    labels: Sequence[str],
    rng: random.Random,
) -> int:
    """Write the canaries that stand before document ``number``, from the ``at``-th on; the first one not written."""
    while at < len(canaries) and canaries[at][0] <= number:
        canary = canaries[at][1]
        user = canary.id.rpartition("-")[0] if users else None
        file.write(_line(replace(canary, user=user, label=rng.choice(labels) if labels else None)))
        at += 1
    return at


def _documents(corpus: Corpus) -> Iterator[Document]:
    for item in corpus.items():
        if isinstance(item, Quarantined):
            raise DataError(f"{item.source}, {item.location}: {item.reason}; mend it before planting")
        if isinstance(item, Document):
            if item.private_because is not None and "\0" not in item.text:
                raise DataError(
                    f"document '{item.id}' is private whatever a policy says, which JSON lines cannot keep; mend it or "
                    "leave it out"
                )
            yield item


def _line(document: Document) -> bytes:
    row: dict[str, Any] = {"id": document.id}
    if document.turns:
        row["turns"] = [
            {
                "text": document.text[turn.start : turn.end].removesuffix("\n"),
                **({"speaker": turn.speaker} if turn.speaker is not None else {}),
                "spans": _spans(document, turn.start, turn.end),
            }
            for turn in document.turns
        ]
    else:
        row |= {"text": document.text, "spans": _spans(document, 0, len(document.text))}
    row |= {key: value for key in ("user", "label") if (value := getattr(document, key)) is not None}
    return orjson.dumps(row) + b"\n"


def _spans(document: Document, start: int, end: int) -> list[dict[str, Any]]:
    inside = [span for span in document.gold if start <= span.start < end]
    return [{"start": s.start - start, "end": min(s.end, end) - start, "label": s.label} for s in inside]
