"""The conservative half that patterns lack: shape (capitals, digits, foreign letters) and rarity, word by word.

A word is marked or not by what it is, never by where it stands (one exception, below). Masking any union of whole marked
words therefore leaves every other word's mark as it was, which is what makes skeletons the same for neighbours
(docs/guarantees.md). For the same reason a capital is excused by a fixed list of function words and greetings, not by its
place at the start of a sentence, which would change when the words before it are masked.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

from taciturn.errors import UsageError, nearest
from taciturn.screening.policies import german
from taciturn.screening.policies.base import CLEAN
from taciturn.screening.policies.view import WORD, View
from taciturn.text.spans import Detection, Span

# Bits of contractions once the apostrophe has split them: couldn't is "couldn" and "t".
_STEMS = frozenset(
    "couldn wouldn shouldn didn doesn isn wasn aren weren hasn haven hadn needn mustn mightn ain".split()  # noqa: SIM905
)

# Words whose initial capital says nothing: function words, greetings, question words and the verbs, adverbs and nouns that
# open sentences. Left out on purpose: Will, May, Mark, Bill, Grace, Hope, Joy and the like, which are names as well.
_EXCUSED = frozenset(
    """
    a an the this that these those here there it its i im ill ive id you your yours youre we our ours us he his him she her
    hers they their theirs them me my mine who whom whose what which when where why how whether someone something anything
    anyone everything everyone nothing one two three four five six seven eight nine ten both each either neither all any
    some many much more most several few no not none yes yeah yep yup nope ok okay sure well so oh ah hmm wow great good
    fine perfect excellent wonderful awesome fantastic nice cool lovely sorry apologies unfortunately certainly absolutely
    definitely actually also maybe perhaps probably please thanks thank hello hi hey hiya greetings goodbye bye welcome
    congratulations alright right correct exactly indeed and or but if then than because since while although though unless
    until before after during as at by for from in into of off on onto out over to under up with within without about above
    across against along among around between behind below beside beyond near through toward is are was were be been being am
    isnt arent wasnt do does did done dont doesnt didnt doing have has had having havent hasnt can could cannot cant couldnt
    would wouldnt should shouldnt shall must might let lets get got give go going come make take find look looking tell say
    see know think need want like try call book booked booking ask check put keep help wait hold sounds seems hopefully just
    only still even again already always never now today tomorrow tonight yesterday later soon once first second third next
    last finally however therefore instead anyway otherwise too very really quite same other another such every dear
    not glad happy pleased enjoy feel free care additional order orders account phone number name full shipping tracking
    """.split()  # noqa: SIM905  one word a line would be 350 lines
)

# "May I", "Will that": a modal before a pronoun. The pronoun is never marked, so masking marked words cannot undo it.
_MODALS = ("May", "Will")
_MODAL = re.compile(r"(?:May|Will)(?= (?:I|we|you|it|there|that|this|they|the)\b)")


# What opens letters and messages in other languages. Left out on purpose: Dag, Lieve, Cara, Vale and the like, which are
# names.
_GREETINGS = {
    "de": "hallo guten tag morgen abend danke dank vielen bitte lieber sehr geehrte geehrter damen herren ja nein gern "
    "grüße entschuldigung tschüss",
    "es": "hola buenos buenas gracias estimado estimada estimados señor señora señores saludos perdón sí adiós",
    "fr": "bonjour bonsoir salut merci madame monsieur cher chère cordialement désolé voici voilà oui non",
    "it": "ciao buongiorno buonasera salve grazie gentile gentili egregio signore signora saluti scusi prego sì",
    "nl": "hallo hoi goedemorgen goedemiddag bedankt dank geachte heer mevrouw groeten alstublieft sorry ja nee",
    "pl": "cześć dzień dobry witam dziękuję szanowni szanowny szanowna państwo państwa pozdrawiam proszę "
    "przepraszam tak nie",
    "pt": "olá oi bom boa obrigado obrigada caro prezado prezada senhor senhora senhores cumprimentos desculpe sim não",
    "sv": "hej hejsan tack bästa kära hälsningar ursäkta ja nej",
}

_FUNCTION = 6.0  # once in a thousand words: from there on nearly all are function words


@cache
def languages() -> tuple[str, ...]:
    """Codes of the languages whose words are known and stand between blanks."""
    import wordfreq

    return tuple(sorted(set(wordfreq.available_languages("small")) - {"ja", "ko", "zh"}))


@cache
def common_words(zipf: float, language: str = "en") -> frozenset[str]:
    """Lower-case words of a language with a Zipf frequency (log10 per 10^9 words, wordfreq) of at least ``zipf`` >= 3."""
    import wordfreq

    floor = 10 ** (zipf - 9)
    return frozenset(w for w, f in wordfreq.get_frequency_dict(language, wordlist="small").items() if f >= floor)


@cache
def names() -> frozenset[str]:
    """Lower-case given names and surnames, common ones of the United States; the head of names.txt says which."""
    lines = (resources.files(__package__) / "names.txt").read_text(encoding="ascii").splitlines()
    return frozenset(name for line in lines if not line.startswith("#") for name in line.split())


@cache
def excused(language: str = "en") -> frozenset[str]:
    """Lower-case function words, greetings and bits of contractions; of other languages than English, the most frequent
    words and what opens letters."""
    if language == "en":
        return _EXCUSED | _STEMS
    frequent = {w for w in common_words(_FUNCTION, language) if w.isalpha()}
    return frozenset(frequent.union(_GREETINGS.get(language, "").split()))


@cache
def nouns() -> frozenset[str]:
    """German words that may have a capital, with it (german.py): frequent ones that are no names."""
    return german.nouns(common_words(german.LEAST, "de") - names())


@cache
def plain_words(rare_below: float, without_names: bool = False, language: str = "en") -> frozenset[str]:
    """Every word that ``Words`` leaves unmarked, as it may be written: there are no others."""
    known = common_words(rare_below, language) | (_STEMS if language == "en" else frozenset())
    lower = {w for w in known if w.isalpha() and w == w.lower() and (w.isascii() or language != "en")}
    listed = {w for w in nouns() if w.lower() in lower} if language == "de" else frozenset()
    return capitalised(lower - names() if without_names else lower, language) | listed


def capitalised(words: Set[str], language: str = "en") -> frozenset[str]:
    """``words``, and what may have a capital without being a name."""
    first = _EXCUSED if language == "en" else excused(language)
    return frozenset({*words, *(w.capitalize() for w in first), "OK"})


@cache
def _borders() -> frozenset[str]:
    """The characters that ``WORD`` has no part in; all lie below U+3001."""
    return frozenset(c for c in map(chr, range(0x3001)) if not WORD.match(c))


_span = lru_cache(maxsize=1 << 16)(Span)  # spans of short texts repeat, and making one costs more than finding it


def all_but(plain: Set[str], views: Sequence[View], detector: str) -> list[Detection]:
    """Marks every word that is not in ``plain``, one span each."""
    words = WORD.findall
    return [
        _located(view.text, marked, detector) if (marked := [w for w in words(view.text) if w not in plain]) else CLEAN
        for view in views
    ]


def _located(text: str, marked: Sequence[str], detector: str) -> Detection:
    """marked: all the marked words of the text, in order."""
    spans = []
    find, borders, size = text.find, _borders(), len(text)
    end = 0
    for word in marked:
        while True:  # the next place where it is a whole word
            start = find(word, end)
            end = start + len(word)
            if (not start or text[start - 1] in borders) and (end == size or text[end] in borders):
                break
            end = start + 1
        if word not in _MODALS or not _MODAL.match(text, start):
            spans.append(_span(start, end, "word", 1.0, detector))
    return Detection(tuple(spans)) if spans else CLEAN


@dataclass(frozen=True, slots=True)
class Words:
    """Marks a word that has a capital (but see ``excused``), a digit or "_", or that is rare in the language; of English,
    also one with a character outside ASCII.

    rare_below: Zipf frequency under which a word is rare; 3 is once in a million words, the lowest the word list knows.
    names: also marks lower-case words that are names of people. Of German, a frequent noun may have its capital (``nouns``).
    """

    rare_below: float = 3.0
    names: bool = False
    name: str = "words"
    language: str = "en"

    def __post_init__(self) -> None:
        if not 3.0 <= self.rare_below <= 8.0:
            raise UsageError(f"words: rare_below must lie in [3, 8], found {self.rare_below:g}")
        if self.language not in languages():
            known = ", ".join(languages())
            raise UsageError(f"words: no list of words of the language '{self.language}'; there are: {known}")

    def definition(self) -> Mapping[str, object]:
        named = {"names": digest(names())} if self.names else {}
        return {
            "kind": "words",
            "rare_below": self.rare_below,
            "lists": _lists(self.rare_below, self.language),
            "patterns": [WORD.pattern, _MODAL.pattern],
            **({} if self.language == "en" else {"language": self.language}),
            **({"nouns": digest(nouns())} if self.language == "de" else {}),
            **named,
        }

    def find(self, views: Sequence[View]) -> list[Detection]:
        return all_but(plain_words(self.rare_below, self.names, self.language), views, self.name)

    def local(self, view: View) -> bool:  # noqa: ARG002  see the top of this file
        return True

    def marks(self, word: str) -> bool:
        """Whether a single word is marked, wherever it stands.

        >>> [w for w in ("Hello", "the", "Slevin", "slevin", "7GAWK763", "laPena", "I", "IBM", "naïve") if Words().marks(w)]
        ['Slevin', 'slevin', '7GAWK763', 'laPena', 'IBM', 'naïve']
        """
        return word not in plain_words(self.rare_below, self.names, self.language)


@cache
def _lists(rare_below: float, language: str) -> str:
    lists = "\n".join(sorted(common_words(rare_below, language))) + "\0" + "\n".join(sorted(excused(language)))
    return hashlib.blake2b(lists.encode(), digest_size=16).hexdigest()


@cache
def digest(words: Set[str]) -> str:
    """32 hex digits that name a set of words."""
    return hashlib.blake2b("\n".join(sorted(words)).encode(), digest_size=16).hexdigest()


OPTIONS = ("names",)


def named(argument: str, options: Mapping[str, object]) -> list[Words]:
    """The detector of ``words`` or ``words:4.0``: the Zipf frequency under which a word is rare.

    Raises UsageError: no such number, or an option other than ``names = true``.
    """
    for option, value in options.items():
        if option not in OPTIONS or not isinstance(value, bool):
            raise UsageError(f"words: option '{option}' is not known, or not true or false; {nearest(option, OPTIONS)}")
    try:
        rare_below = float(argument or 3.0)
    except ValueError:
        raise UsageError(f"words:{argument}: expected a number from 3 to 8, such as words:4") from None
    return [Words(rare_below, bool(options.get("names", False)))]
