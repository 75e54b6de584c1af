"""Digits and numbers below a hundred as words, in eight languages, as people read numbers aloud.

Forms: Unicode CLDR 46, ``rbnf/*.xml``, rule sets spellout-cardinal and their genders; by hand what is only spoken ("oh",
"nought", "zwo", "meia", "double two") and what is written without accents.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache

# language: digits; ten to nineteen; tens
_TABLE = {
    "en": (
        "zero oh nought naught one two three four five six seven eight nine",
        "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen",
        "twenty thirty forty fifty sixty seventy eighty ninety",
    ),
    "de": (
        "null ein eins zwei zwo drei vier fünf sechs sieben acht neun",
        "zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn",
        "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    ),
    "fr": (
        "zéro un une deux trois quatre cinq six sept huit neuf",
        "dix onze douze treize quatorze quinze seize",
        "vingt vingts trente quarante cinquante soixante septante huitante octante nonante",
    ),
    "es": (
        "cero uno una dos tres cuatro cinco seis siete ocho nueve",
        "diez once doce trece catorce quince dieciséis diecisiete dieciocho diecinueve",
        "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    ),
    "it": (
        "zero uno due tre quattro cinque sei sette otto nove",
        "dieci undici dodici tredici quattordici quindici sedici diciassette diciotto diciannove",
        "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
    ),
    "nl": (
        "nul een één twee drie vier vijf zes zeven acht negen",
        "tien elf twaalf dertien veertien vijftien zestien zeventien achttien negentien",
        "twintig dertig veertig vijftig zestig zeventig tachtig negentig",
    ),
    "pl": (
        "zero jeden jedna dwa dwie trzy cztery pięć sześć siedem osiem dziewięć",
        "dziesięć jedenaście dwanaście trzynaście czternaście piętnaście szesnaście siedemnaście osiemnaście"
        " dziewiętnaście",
        "dwadzieścia trzydzieści czterdzieści pięćdziesiąt sześćdziesiąt siedemdziesiąt osiemdziesiąt dziewięćdziesiąt",
    ),
    "pt": (
        "zero um uma dois duas três quatro cinco seis meia sete oito nove",
        "dez onze doze treze catorze quatorze quinze dezesseis dezasseis dezessete dezassete dezoito dezenove dezanove",
        "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
    ),
}
_REPEATS = {"double": 1, "doble": 1, "doppel": 1, "dubbel": 1, "triple": 2, "treble": 2}
"""How many digits more the word after it stands for."""

_BARE = str.maketrans({"ł": "l", "ß": "ss"})
_SPELT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})


@cache
def sizes() -> dict[str, int]:
    """Lower-case word -> how many digits it says.

    >>> [sizes()[word] for word in ("four", "vierundzwanzig", "fuenf", "dziewiec", "double", "fourteen")]
    [1, 2, 1, 1, 1, 2]
    """
    found = dict(_REPEATS)
    for language, (digits, teens, tens) in _TABLE.items():
        units = [word for word in digits.split() if word not in ("zero", "null", "nul", "eins", "één")]
        joined: list[str] = []
        if language == "de":
            joined = [f"{unit}und{ten}" for unit in units for ten in tens.split()]
        elif language == "nl":
            joined = [unit + link + ten for unit in units for link in ("en", "ën") for ten in tens.split()]
        elif language == "it":
            joined = [stem + unit for ten in tens.split() for stem in (ten, ten[:-1]) for unit in (*units, "tré")]
        elif language == "es":
            joined = ["veinti" + unit for unit in (*units, "dós", "trés", "séis", "ún")]
        for words, size in ((digits.split(), 1), ([*teens.split(), *tens.split(), *joined], 2)):
            for word in words:
                for form in {word, _bare(word), word.translate(_SPELT)}:
                    found.setdefault(form, size)
    return found


_FRENCH_TEENS = frozenset(_TABLE["fr"][1].split())


def said(words: Sequence[str]) -> int:
    """How many digits words in a row (lower case) say: a unit behind a ten is its second digit, and French counts on from
    sixty and eighty.

    >>> [said(words.split()) for words in ("twenty one", "one one", "quatre vingt dix sept", "soixante onze", "dix sept")]
    [2, 2, 2, 2, 2]
    """
    total = 0
    for two, before, word in zip(["", "", *words], ["", *words], words, strict=False):
        total += sizes().get(word, 1)
        if word in _FRENCH_TEENS and (before == "soixante" or (two, before[:5]) == ("quatre", "vingt")):
            total -= 2
        elif (before in tens() and sizes().get(word) == 1) or (before, word) in _FRENCH_PAIRS:
            total -= 1
    return total


_FRENCH_PAIRS = {("dix", "sept"), ("dix", "huit"), ("dix", "neuf"), ("quatre", "vingt"), ("quatre", "vingts")}


@cache
def tens() -> frozenset[str]:
    """Those that a digit may follow, as in "twenty one"."""
    return frozenset(form for table in _TABLE.values() for word in table[2].split() for form in (word, _bare(word)))


def _bare(word: str) -> str:
    apart = unicodedata.normalize("NFD", word.translate(_BARE))
    return "".join(c for c in apart if not unicodedata.combining(c))


def pattern() -> str:
    """All of them as one expression with common beginnings shared, to be used without regard to case."""
    return _tree(sorted(sizes()))


def beginnings() -> str:
    """A much shorter expression that matches wherever one of them, or an O, stands."""
    short = {word for word in sizes() if len(word) < _STEM} | {"o"}
    return rf"(?:{_tree(sorted({word[:_STEM] for word in sizes()} - short))}\w{{0,20}}|{_tree(sorted(short))}(?!\w))"


_STEM = 4


def _tree(words: list[str]) -> str:
    """An expression for exactly these words (sorted), longest first.

    >>> _tree(["a", "abc", "abd", "x"])
    '(?:a(?:b(?:c|d))?|x)'
    """
    by_first: dict[str, list[str]] = {}
    for word in words:
        by_first.setdefault(word[:1], []).append(word[1:])
    branches = []
    for first, rests in by_first.items():
        longer = [rest for rest in rests if rest]
        inner = _tree(longer) if longer else ""
        branches.append(first + (f"(?:{inner})?" if inner and "" in rests else inner))
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
