"""CustomerSim: customer-service dialogues about a parcel, from an agenda and templates, with every secret annotated.

In the spirit of the corpus of Shi et al. (2021) that Zhao, Li and Wang (2022, section 5) train on; agenda, sentences and
people are our own, the distribution of turns, lengths and slots follows theirs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from random import Random

import orjson

from taciturn.data import phrases
from taciturn.data.people import SHARES, Customer, customer
from taciturn.errors import UsageError, nearest
from taciturn.text.atomic import write_bytes
from taciturn.text.document import Document, Turn
from taciturn.text.spans import Span

SYSTEM, USER = "SYS", "USR"
VERIFY = ("order_number", "phone_number", "address")
SIZES = (10_000, 1_000, 1_000)

BOTH_AT_ONCE = 0.011  # the system asks for the name and a second slot in one turn
NAME_AGAIN = 0.010  # the user repeats the name with the second slot
NOT_SATISFIED = 0.021  # the user repeats a slot after the tracking number, and gets it once more
GOODBYE = 0.5  # the system has the last word

Utterance = tuple[str, str]
"""Who speaks, and a template with ``{slot}`` fields."""


def simulate(n: int, seed: int, split: str = "train") -> list[Document]:
    """``n`` dialogues of a split; the same for the same arguments anywhere, and the first of a longer run.

    Splits draw people from disjoint sets (``people.SHARES``), so that no full name of one is in another. Raises
    UsageError for a split that is not train, valid or test.
    """
    if split not in SHARES:
        raise UsageError(f"unknown split {split!r}; {nearest(split, SHARES)}")
    if n < 0:
        raise UsageError(f"cannot simulate {n} dialogues")
    rng = Random(f"customersim/{split}/{seed}")  # a text seed goes through SHA-512, not through hash()
    return [_document(f"{split}-{i}", rng, customer(rng, split)) for i in range(n)]


def write(folder: Path, sizes: Sequence[int] = SIZES, seed: int = 0) -> list[Path]:
    """Write train.jsonl, valid.jsonl and test.jsonl in the nested layout that ``taciturn.text.readers`` reads back."""
    if len(sizes) != len(SHARES):
        raise UsageError(f"sizes needs one number for each of {', '.join(SHARES)}, got {len(sizes)}")
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for split, size in zip(SHARES, sizes, strict=True):
        paths.append(folder / f"{split}.jsonl")
        write_bytes(paths[-1], b"".join(orjson.dumps(_nested(d)) + b"\n" for d in simulate(size, seed, split)))
    return paths


def agenda(rng: Random) -> Iterator[Utterance]:
    """One conversation: greet, request, verify who is asking, tell the tracking number, close."""
    say = rng.choice
    second = say(VERIFY)
    yield SYSTEM, say(phrases.GREET)
    hello, request = say(phrases.HELLO), say(phrases.REQUEST)
    yield USER, f"{hello} {request if hello.endswith(',') else request[0].upper() + request[1:]}"
    if rng.random() < BOTH_AT_ONCE:
        yield SYSTEM, f"{say(phrases.ASK['name'])} {say(phrases.ASK[second])}"
        yield USER, f"{_sentence(say(phrases.INFORM['name']))} {say(phrases.INFORM[second])}"
    else:
        yield SYSTEM, say(phrases.ASK["name"])
        yield USER, say(phrases.INFORM["name"])
        yield SYSTEM, say(phrases.ASK[second])
        told = say(phrases.INFORM[second])
        again = rng.random() < NAME_AGAIN
        yield USER, f"{_sentence(told)} {say(phrases.INFORM['name'])}" if again else told
    yield SYSTEM, f"{say(phrases.INFORM['tracking_number'])} {say(phrases.MORE)}"
    if rng.random() < NOT_SATISFIED:
        yield USER, say(phrases.INFORM[say(("name", second))])
        yield SYSTEM, f"{say(phrases.INFORM['tracking_number'])} {say(phrases.MORE)}"
    yield USER, f"{say(phrases.DONE)} {say(phrases.THANKS)}".strip()
    if rng.random() < GOODBYE:
        yield SYSTEM, say(phrases.BYE)


def _sentence(template: str) -> str:
    return template if template.endswith(".") else f"{template}."


def _document(name: str, rng: Random, who: Customer) -> Document:
    secrets = asdict(who)
    filler = {"item": rng.choice(phrases.ITEMS), "when": rng.choice(phrases.WHEN)}
    text = ""
    turns: list[Turn] = []
    gold: list[Span] = []
    for speaker, template in agenda(rng):
        begin = len(text)
        for literal, slot in _parts(template):
            text += literal
            if slot in secrets:
                gold.append(Span(len(text), len(text) + len(secrets[slot]), slot, 1.0, "gold"))
                text += secrets[slot]
            elif slot:
                text += filler[slot]
        text += "\n"
        turns.append(Turn(begin, len(text), speaker))
    return Document(name, text, turns=tuple(turns), gold=tuple(gold))


@cache
def _parts(template: str) -> tuple[tuple[str, str], ...]:
    """(literal, slot after it or "") pieces of a template."""
    pieces = [*re.split(r"\{(\w+)\}", template), ""]
    return tuple(zip(pieces[::2], pieces[1::2], strict=True))


def _nested(document: Document) -> dict[str, object]:
    turns: list[dict[str, object]] = []
    for turn in document.turns:
        text = document.text[turn.start : turn.end - 1]
        spans = [
            {"start": start, "end": end, "value": text[start:end], "slot": span.label}
            for span in document.gold
            if turn.start <= span.start < turn.end
            for start, end in [(span.start - turn.start, span.end - turn.start)]
        ]
        turns.append({"speaker": turn.speaker, "text": text, "spans": spans})
    return {"dialogue_id": document.id, "turns": turns}


@dataclass(frozen=True, slots=True)
class Statistics:
    """What two corpora of dialogues are compared by. Means are per dialogue; turns: share of dialogues by turn count."""

    dialogues: int
    mean_turns: float
    turns: dict[int, float]
    mean_characters: float
    mean_words: float
    mean_tokens: float
    slots: dict[str, float]


def statistics(documents: Iterable[Document]) -> Statistics:
    """Words are runs between white space; tokens are words and single punctuation marks, line ends not counted."""
    dialogues = characters = words = tokens = 0
    turns: Counter[int] = Counter()
    slots: Counter[str] = Counter()
    for document in documents:
        dialogues += 1
        turns[len(document.turns)] += 1
        characters += len(document.text)
        words += len(document.text.split())
        tokens += len(re.findall(r"\w+|[^\w\s]", document.text))
        slots.update(span.label for span in document.gold)
    if not dialogues:
        raise UsageError("no dialogues to take statistics of")
    return Statistics(
        dialogues,
        sum(count * share for count, share in turns.items()) / dialogues,
        {count: share / dialogues for count, share in sorted(turns.items())},
        characters / dialogues,
        words / dialogues,
        tokens / dialogues,
        {slot: count / dialogues for slot, count in sorted(slots.items())},
    )
