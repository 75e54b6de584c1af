"""Which language a text is in, roughly: by its script, or by which language's commonest words it is made of."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

LATIN = ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "sv", "da", "nb", "fi", "cs", "ro", "tr", "id")
CYRILLIC = ("ru", "uk", "bg")
BY_SCRIPT = {
    "HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko", "CJK": "zh", "ARABIC": "ar", "HEBREW": "he", "GREEK": "el",
    "DEVANAGARI": "hi", "BENGALI": "bn", "TAMIL": "ta", "THAI": "th",
}  # fmt: skip
COMMON = 200
"""Of each language, so many words; mostly function words, which any text is full of."""
ENOUGH = 0.15
"""Least share of words that are common ones of the language."""
MOST = 100_000
"""Characters looked at."""


def language(text: str) -> str | None:
    """A two-letter code, or None: too little text, or nothing that resembles one of the languages known here.

    >>> language("the parcel that you sent me is not here and I would like to know where it is")
    'en'
    """
    text = text[:MOST]
    scripts = Counter(unicodedata.name(letter, "?").split(" ")[0].split("-")[0] for letter in text if letter.isalpha())
    if not scripts:
        return None
    if scripts["HIRAGANA"] + scripts["KATAKANA"] > 0.1 * scripts.total():
        return "ja"
    script = scripts.most_common(1)[0][0]
    if script in BY_SCRIPT:
        return BY_SCRIPT[script]
    words = Counter(re.findall(r"[^\W\d_]+", text.lower()))
    known = {"LATIN": LATIN, "CYRILLIC": CYRILLIC}.get(script, ())
    shares = {name: _share(words, name) for name in known} if words.total() >= 5 else {}
    best = max(shares, key=lambda name: shares[name], default=None)
    return best if best is not None and shares[best] >= ENOUGH else None


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


def _share(words: Counter[str], name: str) -> float:
    common = _common(name)
    return sum(count for word, count in words.items() if word in common) / words.total()


@cache
def _common(name: str) -> frozenset[str]:
    """The commonest words of two letters and more: one letter says little."""
    import wordfreq

    return frozenset(word for word in wordfreq.top_n_list(name, COMMON, wordlist="small") if len(word) > 1)
