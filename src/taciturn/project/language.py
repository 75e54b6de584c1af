"""Which language a text is in, by py3langid: naive Bayes over the bytes of 140 languages (Lui and Baldwin 2012)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

SURE = 0.75
"""Least probability of the language. A sentence or two of most languages reach it; lists of names and numbers do not."""
MOST = 100_000
"""Characters looked at."""
_NONE = ("und", "zxx")  # ISO 639: undetermined, which is below SURE; no linguistic content


def language(text: str) -> str | None:
    """An ISO 639 code, of two letters where there is one, or None: too little text, or nothing that resembles a language.

    >>> language("the parcel that you sent me is not here and I would like to know where it is")
    'en'
    """
    code, _ = _identifier().classify(text[:MOST])
    return None if code in _NONE else str(code)


def language_of_texts(texts: Sequence[str]) -> str | None:
    """The language of many texts, told from some that are spread over all of them."""
    return language("\n".join(_until(texts, MOST)))


def _until(texts: Sequence[str], most: int) -> Iterator[str]:
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
