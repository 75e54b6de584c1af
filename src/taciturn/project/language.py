"""Which language a text is in, by py3langid: naive Bayes over the bytes of 140 languages (Lui and Baldwin 2012); and
whether it has capitals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from functools import cache
from typing import Any

from taciturn.screening.policies.rare_words import common_words, languages

SURE = 0.75
"""Least probability of the language. A sentence or two of most languages reach it; lists of names and numbers do not."""
MOST = 100_000
"""Characters looked at."""
_NONE = ("und", "zxx")  # ISO 639: undetermined, which is below SURE; no linguistic content


FEW = 10
"""Different common words of a language by which a form, which has no sentences, is told."""
_WORD = re.compile(r"[^\W\d_]{2,}")


def language(text: str) -> str | None:
    """An ISO 639 code, of two letters where there is one, or None: too little text, or nothing that resembles a language.

    Where the text as it is leaves doubt, its words alone are looked at, without numbers and capitals; and where that does
    too, as in forms, the likeliest language that has a word list, if half of the different words are common in it.

    >>> language("the parcel that you sent me is not here and I would like to know where it is")
    'en'
    """
    text = text[:MOST]
    words = _WORD.findall(text.lower())
    for each in (text, " ".join(words)):
        code, _ = _identifier().classify(each)
        if code not in _NONE:
            return str(code)
    different = {*words}
    return _of_form(different) if len(different) >= FEW else None


def _of_form(words: Set[str]) -> str | None:
    listed = {*languages()}
    code = next(str(code) for code, _ in _identifier().rank(" ".join(sorted(words))) if code in listed)
    common = words & common_words(3.0, code)
    return code if len(common) >= FEW and 2 * len(common) >= len(words) else None


def language_of_texts(texts: Sequence[str]) -> str | None:
    """The language of many texts, told from some that are spread over all of them."""
    return language("\n".join(spread(texts, MOST)))


def lower_case(texts: Sequence[str]) -> bool:
    """Whether at least half of the texts of five words and more have no capital but that of "I"."""
    told = [words for text in texts if len(words := _WORD.findall(text)) >= 5]
    return 2 * sum(all(word == word.lower() for word in words) for words in told) >= len(told) > 0


def spread(texts: Sequence[str], most: int) -> Iterator[str]:
    """Texts spread over the whole, until there are enough characters."""
    step = max(1, len(texts) // 500)
    seen = 0
    for text in texts[::step]:
        if seen >= most:
            return
        seen += len(text)
        yield text


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # unpacks 4.6 MB in half a second

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True, min_confidence=SURE)
