"""Policies by name: single detectors, presets of them, and families of detectors that take an argument after a colon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from taciturn.errors import MissingExtra, UsageError, nearest
from taciturn.screening.policies import denylists, patterns
from taciturn.screening.policies.everything import Everything
from taciturn.screening.policies.finder import Detector
from taciturn.screening.policies.patterns.countries import OTHER_NAMES


@dataclass(frozen=True, slots=True)
class Family:
    """module: whose ``named(argument, options)`` makes the detectors; imported when they are asked for. extra: what to
    install for it, "" for nothing. usage: how it is written. says: what it finds."""

    module: str
    extra: str
    usage: str
    says: str


FAMILIES: dict[str, Family] = {
    "spacy": Family(
        "ner", "spacy", "spacy:LEVEL[@PIPELINE]", "named entities: low-entity, high-entity; low-, high-contextual"
    ),
    "presidio": Family("presidio", "presidio", "presidio[:ENTITY,...][@LANGUAGE]", "what Presidio's analyser finds"),
    "tokens": Family("tokens", "train", "tokens:MODEL", "a token classifier of transformers, score at least .3 (π)"),
    "tokens-wide": Family("tokens_wide", "train", "tokens-wide:MODEL", "the same, any tag or plain below .9 (π_c)"),
    "gliner": Family("gliner", "gliner", "gliner:MODEL#LABEL,...", "whatever the labels say, with a GLiNER model"),
    "values": Family("values", "", "values:FILE[#COLUMN,...]", "the values of a table, such as your customers"),
    "wordlist": Family("wordlist", "", "wordlist:FILE", "the lines of a file"),
    "words": Family("rare_words", "", "words[:ZIPF]", "words with a capital or a digit, and rare ones (π_c)"),
    "conservative": Family(
        "conservative", "", "conservative[:LEVEL][@LANGUAGE]", "patterns and words (π_c): names, strict, paranoid"
    ),
    "corrections": Family("corrections", "", "corrections:FILE", "what people marked by hand"),
}
"""Prefix -> family."""

_SPECIAL = ("detect-secrets", "conservative", "all-private")
PRESETS = (*patterns.PRESETS, *_SPECIAL)


def names() -> list[str]:
    """Every name without an argument that ``policy`` knows: single detectors, then presets."""
    return [*patterns.names(), *PRESETS]


def split(texts: str | Iterable[str]) -> list[str]:
    """The names in the lists that a command line gives.

    A comma ends a name. A name with a colon takes everything up to the end of its list, commas and all, because arguments
    hold commas: it comes last, and what follows it goes into another list. A family refuses what it cannot read, so that a
    detector is never dropped without a word.

    >>> split("ssn, email,presidio:PERSON,PHONE_NUMBER"), split(["spacy:low-entity", "ssn"])
    (['ssn', 'email', 'presidio:PERSON,PHONE_NUMBER'], ['spacy:low-entity', 'ssn'])
    """
    found: list[str] = []
    for rest in [texts] if isinstance(texts, str) else texts:
        while rest:
            name, _, after = rest.partition(",")
            if ":" in name:
                name, after = rest, ""
            if name.strip():
                found.append(name.strip())
            rest = after
    return found


def resolve(name: str, options: Mapping[str, object] | None = None) -> list[Detector]:
    """The detectors of one name, ``prefix:argument`` included. options: a family's own.

    Raises UsageError: an unknown name, argument or option (naming the nearest), MissingExtra: a family's package is absent.
    """
    prefix, colon, argument = name.partition(":")
    whose, at, language = prefix.partition("@")
    if at and not colon and whose in ("conservative", "presidio"):  # conservative@fr
        prefix, argument = whose, f"@{language}"
    if prefix in FAMILIES:
        return _family(prefix, argument, options or {})
    if options:
        raise UsageError(
            f"'{name}': unknown option '{next(iter(options))}'; only families such as spacy:low-entity take any"
        )
    if name in patterns.PRESETS:
        return [patterns.detector(n) for n in patterns.PRESETS[name]]
    if name == "all-private":
        return [Everything()]
    if name == "detect-secrets":
        # The library's own detector of private keys marks the first line of one alone.
        return [*denylists.detect_secrets(), *map(patterns.detector, ("private-key", "private-key-file"))]
    if name in patterns.names():
        return [patterns.detector(name)]
    known = [f"{family}:" for family in FAMILIES] if colon else [*names(), *FAMILIES]
    raise UsageError(f"policy: unknown name '{name}'; {_hint(prefix + colon, known)}; `taciturn policies` lists them")


def family(prefix: str) -> ModuleType:
    """The module of a family."""
    return import_module(f"{__package__}.{FAMILIES[prefix].module}")


def options(prefix: str) -> frozenset[str]:
    """The options that a family says it takes."""
    return frozenset(getattr(family(prefix), "OPTIONS", ()))


def _family(prefix: str, argument: str, options: Mapping[str, object]) -> list[Detector]:
    try:
        found: list[Detector] = family(prefix).named(argument, options)
    except MissingExtra:
        raise
    except UsageError as error:
        also = [part.strip() for part in argument.split(",")[1:] if part.strip() in names()]
        if not also:
            raise
        raise UsageError(
            f"{error} ('{also[0]}' was read as part of '{prefix}:'; give it before that name, or in a list of its own)"
        ) from None
    return found


def _hint(word: str, known: Iterable[str]) -> str:
    plain = word.casefold().replace("_", "-").replace(" ", "-")
    head, dash, rest = plain.partition("-")
    right = OTHER_NAMES.get(head, head) + dash + rest
    choices = list(known)
    return f"did you mean '{right}'?" if right in choices else nearest(plain, choices)
