"""The conservative half that patterns lack: shape (capitals, digits, foreign letters) and rarity, word by word.

A word is marked or not by what it is, never by where it stands (one exception, below). Masking any union of whole marked
words therefore leaves every other word's mark as it was, which is what makes skeletons the same for neighbours
(docs/guarantees.md). For the same reason a capital is excused by a fixed list of function words and greetings, not by its
place at the start of a sentence, which would change when the words before it are masked.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import compress

from taciturn.errors import UsageError
from taciturn.screening.policies.base import CLEAN
from taciturn.screening.policies.view import View
from taciturn.text.spans import Detection, Span

# Letters, digits, "_", and every character outside ASCII but common typographic punctuation and signs.
_TOKEN = re.compile(r"[^\x00-/:-@\[-^`{-\x7f‘’“”–—…•·£€¥°«»\s]+")

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
_MODAL = re.compile(r"(?:May|Will)(?= (?:I|we|you|it|there|that|this|they|the)\b)")


@cache
def common_words(zipf: float) -> frozenset[str]:
    """Lower-case English words with a Zipf frequency (log10 per 10^9 words, wordfreq) of at least ``zipf`` >= 3."""
    import wordfreq

    floor = 10 ** (zipf - 9)
    return frozenset(w for w, f in wordfreq.get_frequency_dict("en", wordlist="small").items() if f >= floor)


@dataclass(frozen=True, slots=True)
class Words:
    """Marks a word that has a capital (but see ``_EXCUSED``), a digit, "_" or a non-ASCII character, or that is rare.

    rare_below: Zipf frequency under which a word is rare; 3 is once in a million words, the lowest the word list knows.
    """

    rare_below: float = 3.0
    name: str = "words"
    _common: frozenset[str] = field(init=False, repr=False, compare=False)
    _judged: dict[str, bool] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        if not 3.0 <= self.rare_below <= 8.0:
            raise UsageError(f"words: rare_below must lie in [3, 8], found {self.rare_below:g}")
        object.__setattr__(self, "_common", common_words(self.rare_below))

    def definition(self) -> Mapping[str, object]:
        lists = "\n".join(sorted(self._common)) + "\0" + "\n".join(sorted(_EXCUSED | _STEMS))
        return {
            "kind": "words",
            "rare_below": self.rare_below,
            "lists": hashlib.blake2b(lists.encode(), digest_size=16).hexdigest(),
            "patterns": [_TOKEN.pattern, _MODAL.pattern],
        }

    def find(self, views: Sequence[View]) -> list[Detection]:
        return [self._detection(view.text) for view in views]

    def _detection(self, text: str) -> Detection:
        judged = self._judged
        if len(judged) > 1 << 18:  # a cache, not a memory of the corpus
            judged.clear()
        marks = [judged[word] if word in judged else self._judge(word) for word in _TOKEN.findall(text)]
        if True not in marks:
            return CLEAN
        found = compress(_TOKEN.finditer(text), marks)
        spans = tuple(
            Span(m.start(), m.end(), "word", 1.0, self.name)
            for m in found
            if not (text.startswith(("May ", "Will "), m.start()) and _MODAL.match(text, m.start()))
        )
        return Detection(spans) if spans else CLEAN

    def local(self, view: View) -> bool:  # noqa: ARG002  see the top of this file
        return True

    def _judge(self, word: str) -> bool:
        marked = self._judged[word] = self.marks(word)
        return marked

    def marks(self, word: str) -> bool:
        """Whether a single word is marked, wherever it stands.

        >>> [w for w in ("Hello", "the", "Slevin", "slevin", "7GAWK763", "laPena", "I", "IBM", "naïve") if Words().marks(w)]
        ['Slevin', 'slevin', '7GAWK763', 'laPena', 'IBM', 'naïve']
        """
        if not word.isascii() or not word.isalpha():
            return True
        lower = word.lower()
        if lower != word:
            title = word[0].isupper() and word[1:] == lower[1:]
            return not (title and lower in _EXCUSED) and word != "OK"
        return lower not in self._common and lower not in _STEMS
