"""π_c without a recogniser: four levels, each marking all that the one before it marks and more.

| level | marks, beside addresses, numbers in groups and words with an "@" |
|---|---|
| ``conservative`` | words with a capital, a digit or a foreign letter, and rare ones (rare_words.py) |
| ``conservative:names`` | also common names of people in lower case |
| ``conservative:strict`` | also words rarer than ten in a million, and all of a record that holds a cue ("name", "street") |
| ``conservative:paranoid`` | every word but 600 function words and words of customer service; all of a record with a cue |

They are made for English: of French more than half of the words would be marked. ``conservative@fr`` has the words of
French; of German, frequent nouns may have their capital. ``strongest`` picks a level by measurement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from taciturn.errors import UsageError, nearest
from taciturn.screening.bounds import lower
from taciturn.screening.policies import patterns
from taciturn.screening.policies.base import CLEAN
from taciturn.screening.policies.finder import Detector, Finder
from taciturn.screening.policies.rare_words import Words, all_but, capitalised, digest, excused, plain_words
from taciturn.screening.policies.regex import Regex
from taciturn.screening.policies.secret_cues import cue_pattern
from taciturn.screening.policies.view import View
from taciturn.text.spans import Detection, Span

# With the function words of rare_words.py: what "paranoid" leaves public.
_SERVICE = frozenset(
    """
    s t m d ll re ve will
    able access add afraid also amount answer anytime anywhere apologize appreciate area arrive arrived arrives assist
    assistance attraction availability available back balance best better bit breakfast buy calling cancel certain
    change changed charge charged chat cheap check checking choices choose claim close code come comes coming complete
    completed concern confirm confirmation confirmed connection contact contacting cost costs course criteria current
    customer date dates day days decide deliver delivered delivery depart departs departure description destination
    details different dollars down earlier earliest early eat else email enjoy enough entrance error evening exact
    expensive explain extra favorite fee fees few fit flight food found full fun further gave gets getting given gives
    go goes gone got guest half happen happened hear heard help helpful helping hoping hotel hotels hour hours include
    includes info information insurance interested interesting internet issue issues item items kind kindly leave
    leaves leaving left less letting line list listed live local located location longer look looks lot lots made mail
    make makes matter mean meeting mentioned mind minute minutes moderate moment money month months morning move much
    myself need needed needing needs new night nights note offer offers old open option options own paid parking part
    particular pay payment people per person phone pick picked place places plan planning pleasure point policy
    possible prefer preference prices pricing problem problems product provide provided purchase questions quick range
    rate rated rating ready reason receive received recommend recommendation refund regarding report request requested
    requirements reservation reserve reserved restaurant restaurants results return returned review room rooms said
    same say search seat seats see send sent serve serves service services set ship shipped side sir size something
    somewhere soon specific start starting state status stay staying still stop store subscription successful
    successfully suggest suggestions support system table taken takes taxi team thing things thinking ticket tickets
    till time times total town train trains travel traveling trip trouble try trying type types unable understand
    update updated use used using visit waiting wanted wanting wants way website week weeks went wish work worked
    working works worries wrong year years
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Closed:
    """Marks every word outside a closed list, by what it is alone, as ``Words`` does: of other languages than English, the
    most frequent words."""

    name: str = "words-paranoid"
    language: str = "en"

    def definition(self) -> Mapping[str, object]:
        return {"kind": "closed", "plain": digest(_plain(self.language))}

    def find(self, views: Sequence[View]) -> list[Detection]:
        return all_but(_plain(self.language), views, self.name)

    def local(self, view: View) -> bool:  # noqa: ARG002  see rare_words.py
        return True


@dataclass(frozen=True, slots=True)
class Cue:
    """Marks the whole of a text that holds one of ``cues(language)`` as words, in any case."""

    language: str = "en"
    name: str = field(default="cue", init=False)
    ignore_case: bool = field(default=True, init=False)

    @property
    def pattern(self) -> str:
        return cue_pattern(self.language)

    def definition(self) -> Mapping[str, object]:
        return {"kind": "cue", "pattern": self.pattern}

    def find(self, views: Sequence[View]) -> list[Detection]:
        return [
            Detection((Span(0, len(view.text), "cue", 1.0, self.name),)) if self._holds(view) else CLEAN
            for view in views
        ]

    def local(self, view: View) -> bool:
        """Masking a cue takes the marks of all other words away; masking cannot make one."""
        return not self._holds(view)

    def _holds(self, view: View) -> bool:
        return _compiled(self.pattern).search(view.shadow) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_STRICT = 4.0

# Pieced together by patterns, because a secret should lie in one mark, blanks and commas included.
_PATTERNS = (
    "ssn", "email", "phone", "card", "iban", "reference", "order", "tracking", "address", "street", "postcode", "url", "ip",
    "number-run", "number-words",
)  # fmt: skip
# "handle" takes the whole of a word that has an "@" in it: user names, addresses, bare hosts.
_HANDLE = r"(?<![^\s@])[^\s@]*+@\S*(?<![.,;:!?)\]\"'])"
# German nouns may have a capital (rare_words.py), and surnames that are nouns as well need a title to be seen.
_TITLES = ("Herr", "Frau", "Familie", "Dr.", "Prof.")
_TITLED = r"(?<![^\W_])(?:(?:Herrn?|Frau|Familie|Dr\.|Prof\.) {1,2}){1,4}([A-ZÄÖÜ][\w-]{1,30}(?: [A-ZÄÖÜ][\w-]{1,30})?)"

_WORDS: dict[str, Callable[[str], list[Detector]]] = {
    "": lambda language: [Words(language=language)],
    "names": lambda language: [Words(names=True, name="words-names", language=language)],
    "strict": lambda language: [Words(_STRICT, names=True, name="words-strict", language=language), Cue(language)],
    "paranoid": lambda language: [Closed(language=language), Cue(language)],
}

OPTIONS: tuple[str, ...] = ()
LEVELS = tuple(f"conservative:{word}".rstrip(":") for word in _WORDS)
"""The names of the levels, weakest first."""


def named(argument: str = "", options: Mapping[str, object] | None = None) -> list[Detector]:
    """The detectors of ``conservative:<argument>``. Raises UsageError for another argument, and for any option.

    >>> [d.name for d in named("strict")][-2:]
    ['words-strict', 'cue']
    """
    level, _, language = argument.partition("@")
    if level not in _WORDS:
        raise UsageError(f"conservative: unknown level '{level}'; {nearest(level, filter(None, _WORDS))}")
    for option in options or ():
        raise UsageError(f"conservative: unknown option '{option}'; it takes none")
    handle = Regex("handle", _HANDLE, "handle", ("ask @dana", "a@b"), needs=("@",))
    titled = [Regex("titled", _TITLED, "name", ("Frau Baum",), needs=_TITLES, group=1)] if language == "de" else []
    return [*(patterns.detector(name) for name in _PATTERNS), handle, *titled, *_WORDS[level](language or "en")]


@cache
def _plain(language: str) -> frozenset[str]:
    # Whatever "strict" marks is marked here too, so that the levels are nested.
    known = excused(language) | (_SERVICE if language == "en" else frozenset())
    return capitalised(known & plain_words(_STRICT, without_names=True, language=language), language)


@dataclass(frozen=True, slots=True)
class Choice:
    """level: the one chosen. records: labelled ones with a secret in them; missed: those that it leaves public. bound: what
    their share ``1 - missed / records`` is at least, at the confidence asked for. reached: whether that is the target."""

    level: str
    records: int
    missed: int
    bound: float
    reached: bool


def strongest(
    levels: Sequence[tuple[str, Finder]],
    records: Sequence[tuple[str, Sequence[Span]]],
    target: float = 0.99,
    confidence: float = 0.95,
) -> Choice:
    """The weakest level that keeps a share ``target`` of the records with secrets private, as far as a sample can tell.

    levels: (name, policy), weakest first, each marking what those before it mark. records: (text, labelled secrets), a
    simple random sample that no level was made on. bound is Clopper and Pearson's, one-sided. Levels are tried from the
    strongest down until one fails: "recall is at least ``target``" then holds at ``confidence`` in spite of the choice
    (fixed-sequence test, Maurer, Hothorn, Lehmacher 1995). If none reaches it: the strongest, not reached. Raises
    UsageError for no level, no record with a secret, or a share outside (0, 1).
    """
    for what, share in (("target", target), ("confidence", confidence)):
        if not 0.0 < share < 1.0:
            raise UsageError(f"{what} must lie in (0, 1), found {share:g}")
    texts = [text for text, secrets in records if secrets]
    if not levels or not texts:
        raise UsageError("strongest: it takes at least one level and one record with a labelled secret")
    best: Choice | None = None
    for level, policy in reversed(levels):
        missed = sum(not found.spans and found.status == "ok" for found in policy.find(texts))
        bound = lower(len(texts) - missed, len(texts), confidence)
        choice = Choice(level, len(texts), missed, bound, bound >= target)
        best = choice if best is None or choice.reached else best
        if not choice.reached:
            break
    assert best is not None
    return best
