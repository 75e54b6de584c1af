"""Whether a corpus and its policies speak one language: counted on a sample and told to the person who chooses.

Only shares come out, never a text. A policy that somebody chooses by them is chosen with a look at the corpus, as every
suggestion of ``taciturn init`` is, and no ε covers that choice (docs/guarantees.md §2).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from taciturn.errors import DataError
from taciturn.project.language import language
from taciturn.screening.policies import policy
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.conservative import LEVELS
from taciturn.screening.policies.finder import Finder
from taciturn.screening.policies.rare_words import languages
from taciturn.screening.policies.view import WORD
from taciturn.text.document import Document
from taciturn.text.readers import Corpus
from taciturn.text.readers.tally import Tally
from taciturn.text.spans import merge

FILES, DOCUMENTS, WINDOW, WINDOWS, MARKED = 20, 200, 1000, 300, 50
"""Looked at: files spread over the corpus, the first documents of each, stretches of so many characters, so many in all;
marks are counted in so many of these."""
LEAST, LEAST_SHARE = 500, 0.2
"""Characters, and share of the sample, from which on another language is worth a word."""
_CONSERVATIVE = re.compile(r"conservative(:\w+)?(@\w+)?(?![\w:@])")


@dataclass(frozen=True, slots=True)
class Speech:
    """language: an ISO 639 code, None: not recognised. share: of the sample's characters. texts: its stretches."""

    language: str | None
    share: float
    texts: tuple[str, ...]

    @property
    def characters(self) -> int:
        return sum(map(len, self.texts))


def notes(corpus: Corpus, *policies: Policy) -> list[str]:
    """A sentence for each language of a corpus that a policy does not know: how much of the text, how much of it the policy
    marks, and what to use. Empty where they agree, or where no policy has words or recognisers of a language."""
    speaking = {each.identity: each for each in policies if spoken(each)}
    found = speech(sample(corpus)) if speaking else []
    heard = [
        each for each in found if each.language is not None and each.share >= LEAST_SHARE and each.characters >= LEAST
    ]
    return [
        _note(each, chosen, mixed=any(other.language in spoken(chosen) for other in heard))
        for chosen in speaking.values()
        for each in heard
        if each.language not in spoken(chosen)
    ]


def _note(each: Speech, chosen: Policy, mixed: bool) -> str:
    some = _spread(each.texts, MARKED)
    start = (
        f"{100 * each.share:.0f} % of a sample of the text reads as '{each.language}', and the policy `{chosen.name}` is "
        f"made for {_quoted(spoken(chosen))}: it marks {marked(chosen, some):.2f} of the words there"
    )
    level = _CONSERVATIVE.search(chosen.name)
    if level is None:
        return f"{start}; take a recogniser of that language (docs/how-to/choose-policies.md, Languages)"
    if each.language not in languages():
        return f"{start}; there is no list of words of that language: measure what is missed (taciturn recall)"
    better = f"conservative{level[1] or ''}" + (f"@{each.language}" if each.language != "en" else "")
    apart = "screen the languages apart, and " if mixed else ""
    return f"{start}; {apart}use `{better}`, which marks {marked(policy(better), some):.2f}"


def spoken(chosen: Policy) -> frozenset[str]:
    """The languages that the word lists and recognisers of a policy are made for."""
    inner = [getattr(detector, "detector", detector) for detector in chosen.detectors]
    pipelines = (p.name.split("_")[0] for d in inner if (p := getattr(d, "pipeline", None)) and "_core_" in p.name)
    return frozenset({*(str(d.language) for d in inner if hasattr(d, "language")), *pipelines} - {"xx"})


def speech(texts: Sequence[str]) -> list[Speech]:
    """A sample by language, the largest share first."""
    by: dict[str | None, list[str]] = {}
    for text in texts:
        by.setdefault(language(text), []).append(text)
    whole = max(sum(map(len, texts)), 1)
    found = [Speech(code, sum(map(len, some)) / whole, tuple(some)) for code, some in by.items()]
    return sorted(found, key=lambda each: -each.share)


def marked(chosen: Finder, texts: Sequence[str]) -> float:
    """The share of the words of some texts that a policy marks, at least in part."""
    words = touched = 0
    for text, found in zip(texts, chosen.find(texts), strict=True):
        spans = iter(merge(found.spans))
        span = next(spans, None)
        for word in WORD.finditer(text):
            words += 1
            while span is not None and span[1] <= word.start():
                span = next(spans, None)
            touched += span is not None and span[0] < word.end()
    return touched / words if words else 0.0


def levels(texts: Sequence[str], code: str | None) -> tuple[tuple[str, float], ...]:
    """The levels of π_c in a language (English where it has no words of it), weakest first, and the share of words that
    each marks."""
    at = f"@{code}" if code in languages() and code != "en" else ""
    return tuple((f"{level}{at}", marked(policy(f"{level}{at}"), texts)) for level in LEVELS)


def sample(corpus: Corpus) -> list[str]:
    """Stretches of text, at most ``WINDOWS``, spread over files and documents; what cannot be read is left out."""
    pieces = corpus.whole()
    chosen = pieces[:: max(1, -(-len(pieces) // FILES))]
    stretches: list[str] = []
    for piece in chosen:
        try:
            items = (item for _, item in corpus.read(piece, Tally()) if isinstance(item, Document))
            texts = [item.text for item in islice(items, DOCUMENTS)]
        except DataError:
            continue
        stretches += _spread(list(_stretches(texts)), WINDOWS // len(chosen))
    return stretches


def _stretches(texts: Sequence[str]) -> Iterator[str]:
    """Long texts cut, short ones joined."""
    held = ""
    for text in texts:
        if len(text) >= WINDOW:
            step = max(WINDOW, len(text) // WINDOWS)
            yield from (text[at : at + WINDOW] for at in range(0, len(text) - WINDOW + 1, step))
            continue
        held = f"{held}\n{text}" if held else text
        if len(held) >= WINDOW:
            yield held
            held = ""
    if held.strip():
        yield held


def _spread(stretches: Sequence[str], most: int) -> Sequence[str]:
    return stretches[:: max(1, -(-len(stretches) // max(most, 1)))]


def _quoted(codes: frozenset[str]) -> str:
    return " and ".join(f"'{code}'" for code in sorted(codes))
