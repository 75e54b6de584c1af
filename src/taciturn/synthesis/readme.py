"""README.md of a synthetic corpus: what is promised of it, in the certificate's words, and how it was made."""

from __future__ import annotations

from collections.abc import Iterator

from taciturn.privacy.guarantees.guarantee import EMPTY
from taciturn.synthesis.claims import CHOSEN, Claims
from taciturn.synthesis.corpus import Manifest


def render(manifest: Manifest, claims: Claims) -> str:
    """Markdown, with the head that hubs of data sets read."""
    suffix = manifest.settings["format"]
    head = (
        f"---\nconfigs:\n- config_name: default\n  data_files: data/*.{suffix}\ntags:\n- synthetic\n- taciturn\n---\n"
    )
    return "\n".join([head, "# Synthetic text\n", *_made(manifest), *_promised(claims), *_check(claims)]) + "\n"


def _made(manifest: Manifest) -> Iterator[str]:
    counts, settings = manifest.counts, manifest.settings
    yield (
        f"{manifest.number:,} texts that a language model wrote, with taciturn {manifest.taciturn}. Nobody said or wrote "
        "them: what they state may be false.\n"
    )
    yield (
        f"{counts.drawn:,} texts were drawn (seed {settings['seed']}, temperature {settings['temperature']:g}, top_p "
        f"{settings['top_p']:g}, at most {settings['max_tokens']} tokens); left out: {counts.copies:,} copies of earlier "
        f"ones, {counts.marked:,} that a policy marked, {counts.empty:,} empty.\n"
    )
    if settings["policy"]:
        yield f"Texts in which the policy {_plain(settings['policy'])} marks anything were left out.\n"
    if settings["labels"]:
        yield f"Labels, equally often drawn: {', '.join(map(_plain, settings['labels']))}.\n"


def _promised(claims: Claims) -> Iterator[str]:
    yield "## What is promised\n"
    if claims.reasons:
        yield "**Not for release.**\n"
        yield from (f"- {_plain(reason)}" for reason in claims.reasons)
        yield ""
    if not claims.statements:
        yield "Nothing.\n"
        return
    yield (
        "These texts are a function of the model, a seed and the settings in manifest.json. Who has them has no more than "
        "who has the model, so each statement about the model holds for them: same unit, neighbours, ε and δ. Where it says "
        "*who sees the model*, read: who sees these texts, any number of further ones, and the model.\n"
    )
    for each in claims.statements:
        yield f"- **{each.status}**: {_plain(each.words())}"
        if each.status not in EMPTY and (kept := [a.text for a in each.assumptions if a.enforced]):
            yield f"  - kept by the code: {_plain('; '.join(kept))}"
    yield f"\n{CHOSEN}\n"


def _check(claims: Claims) -> Iterator[str]:
    if claims.certified:
        yield "## How to check it\n"
        yield (
            "`taciturn verify certificate.json --without-weights` computes every ε again from the files beside it. That "
            "these texts are that model's is for whoever has the model to check: the same seed writes the same texts.\n"
        )


def _plain(text: str) -> str:
    for mark in "\\`*_[]|":
        text = text.replace(mark, "\\" + mark)
    return text.replace("<", "&lt;").replace("\n", " ")
