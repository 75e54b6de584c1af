"""From a look at files to the settings of a project, and the words that explain them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from taciturn.mechanisms.registry import mechanism as mechanism_named
from taciturn.mechanisms.settings import ModelConfig
from taciturn.project.inspect_files import Look
from taciturn.project.left_out import FEW, SIDE, left_out, owners
from taciturn.project.settings import NOISELESS, Audit, Canaries, Plan, Read, Screen, Settings, Split
from taciturn.screening.policies.rare_words import languages

PACKS = {
    "en": ("us", "gb"), "de": ("de",), "fr": ("fr",), "es": ("es",), "hi": ("in",), "pl": ("pl",), "it": ("it",),
    "nl": ("nl",), "pt": ("pt", "br"), "sv": ("se",),
}  # fmt: skip
"""Language → national numbers to look for, beside ``pii``."""
CANARIES, COPIES = 10, 4
PUBLIC = (
    "A catalogue, a list of places or of branches that is public anyway frees its values of masks:",
    'public_values = ["catalogue.txt"]',
    "Never make it from the corpus itself. A secret that is one of its values is then not covered.",
)
"""What `public_values` may hold."""
KEPT = SIDE * 3 // 2
"""So many, where there are enough: texts that are on both sides, or twice on one, are not counted by an attack."""
MOST_HELD = 1 / 3
"""Share of users (or documents) that a split keeps out at most, so that there is something left to train on."""


def suggest(
    look: Look,
    paths: Sequence[str],
    folder: str,
    mechanism: str = "crt",
    model: str = "lstm",
    format: str = "auto",
    encoding: str | None = None,
    name: str | None = None,
) -> Settings:
    """Settings to begin with. δ is below one over ten times the number of documents; a batch of noised steps is at most a
    tenth of them, so that sampling still hides who was drawn."""
    read = Read(
        paths=tuple(paths),
        format=format,
        encoding=encoding,
        text=look.text or "text",
        user=look.user,
        label=look.label if model != "lstm" else None,
        chat=look.chat,
        duplicate_ids="error",
    )
    n = look.about
    canaries = CANARIES if n >= FEW else 0
    split = Split(held_out=_held_out(owners(look)))
    attacked = round(split.held_out * owners(look)) >= SIDE
    attacks = (*(("exposure",) if canaries else ()), *(("membership",) if attacked else ()))
    return Settings(
        folder=folder,
        name=name,
        read=read,
        split=split,
        canaries=Canaries(number=canaries, copies=COPIES),
        screen=Screen(
            policy=("pii", *PACKS.get(look.language or "", ())), conservative=(_conservative(look),), unit=unit(look)
        ),
        plan=Plan(
            mechanism=mechanism,
            epsilon=None if mechanism in NOISELESS else 3.0,  # no noise, no target
            delta=delta(n),
            model=_model(model, look, mechanism),
            options=_options(mechanism, n),
        ),
        audit=Audit(attacks=attacks),
    )


def _held_out(number: int) -> float:
    """Of so many users or documents: a twentieth, more where a membership attack needs it, and a tenth, to measure utility,
    where that would be more than ``MOST_HELD``.

    >>> _held_out(4000), _held_out(120), _held_out(60), _held_out(59), _held_out(19)
    (0.05, 0.25, 0.334, 0.1, 0.0)
    """
    if number < SIDE / MOST_HELD:
        return 0.1 if number >= 20 else 0.0
    return max(0.05, math.ceil(1000 * min(KEPT / number, MOST_HELD)) / 1000)


def unit(look: Look) -> str:
    """A conversation or pair is never cut; a dialogue is by turns; else sentences, the finest that a secret fits in."""
    return "document" if look.chat else "turn" if look.turns or "whatsapp" in look.formats else "sentence"


def delta(documents: int) -> float:
    """A power of ten below 1/(10 n), and at most 1e-5.

    >>> delta(60), delta(800_000)
    (1e-05, 1e-07)
    """
    return min(1e-5, 10.0 ** -math.ceil(math.log10(10 * max(documents, 1))))


def suggested_comments(look: Look, settings: Settings) -> Mapping[str, Sequence[str]]:
    """What was seen, as comments by table."""
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(look.formats.items()))
    seen = f"{look.documents:,} documents" + ("" if look.whole else f", the first of about {look.about:,}")
    read = [f"Seen: {kinds} file{'s' if sum(look.formats.values()) > 1 else ''}; {seen}; {look.bytes / 1e6:,.1f} MB."]
    if look.users is not None:
        read.append(f"{look.users:,} users; one with many records: user_dp promises something about the whole of them.")
    if look.user is None and (look.turns or {"whatsapp", "slack"} & set(look.formats)):
        read.append('user = "speaker" (or as the turns have it) makes each turn a document of who said it.')
    read += [f"Not readable: {name}" for name, _ in look.unreadable[:3]]
    without = left_out(look, settings)
    return without | {
        "read": [*read, *without.get("read", ())],
        "screen": [_language(look), *([_lower(look)] if look.lower else []), *PUBLIC],
        "plan": [_mechanism_note(settings), *_table_note(settings)],
    }


MOST_MARKED = 0.5
"""Share of words that π_c may mark in text without capitals."""


def _conservative(look: Look) -> str:
    """The words of the language; of text without capitals, in which names look like words, the strongest level that leaves
    half of the words."""
    if look.lower and look.levels:
        return next((name for name, share in reversed(look.levels) if share <= MOST_MARKED), look.levels[0][0])
    other = look.language not in (None, "en") and look.language in languages()
    return f"conservative@{look.language}" if other else "conservative"


def language_note(look: Look) -> str:
    """What the language, and that there are no capitals, means for the policies."""
    return _language(look) + (f" {_lower(look)}" if look.lower else "")


def _lower(look: Look) -> str:
    shares = ", ".join(f"{name.partition('@')[0]} {share:.2f}" for name, share in look.levels)
    return (
        f"No capitals: names look like words, so π_c is the strongest level that marks at most half of them ({shares})."
    )


def _language(look: Look) -> str:
    if look.language is None:
        return "Language: not recognised; π has no national numbers, and π_c is made for English."
    if look.language == "en":
        return "Language: en. Names and places take a recogniser: add spacy:low-entity to policy."
    if look.language in languages():
        return f"Language: {look.language}. π_c has its words; names take a recogniser of it: spacy:LEVEL@PIPELINE."
    return f"Language: {look.language}. There is no list of its words; π_c is made for English: measure what it misses."


def _table_note(settings: Settings) -> list[str]:
    if settings.plan.options.get("fill") != "learned":
        return []
    return [
        "fill = learned: what some forty records share goes into a table that is released (values.json), whoever wrote it,",
        "and is learned without noise. What one user repeats counts once if read.user is set. fill = none: no table.",
    ]


def _mechanism_note(settings: Settings) -> str:
    return f"{settings.plan.mechanism}: {mechanism_named(settings.plan.mechanism).SUMMARY}."


ALL_NOISED = ("dpsgd", "uedp", "uedp-published", "user_dp")
"""Mechanisms that protect public records too, so that no vocabulary may be learned from these (docs/guarantees.md §2)."""


def _model(name: str, look: Look, mechanism: str) -> ModelConfig:
    if name in ("lstm", "awd-lstm"):
        learned = look.about >= FEW and mechanism not in ALL_NOISED
        return ModelConfig(name=name, tokenizer="bpe:2048" if learned else "bytes")
    return ModelConfig(name=name)


def _options(mechanism: str, documents: int) -> dict[str, object]:
    """A batch that is small beside the corpus; values for the masks of crt where enough records can share one."""
    fields = mechanism_named(mechanism).Config.model_fields
    batch = min(256, max(8, documents // 10))
    if "private" in fields:
        fill = {"fill": "learned"} if mechanism == "crt" and documents >= FEW else {}
        return {**fill, "private": {"batch": batch, **({"clip": 0.1} if mechanism == "jft" else {})}}
    return {"batch": batch} if "batch" in fields else {}
