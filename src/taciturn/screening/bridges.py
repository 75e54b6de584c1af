"""What a skeleton masks beside what policies mark: the rest of a token, and short words that belong to a marked one.

A secret of several words is marked word by word, and the plain words inside it are not: the "of" of a place, the "de" of a
date, the article before it. They are masked with their neighbours, so that a secret is masked whole. What is masked depends
only on which tokens are marked, and a masked token counts as marked, so masking any words of a *place* leaves the places as
they are (guarantees.md §3.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

from taciturn.screening.redact import Interval
from taciturn.text.chat import CLOSE, OPEN
from taciturn.text.document import MASK

Bridge = Literal["signs", "particles", "short"]
BRIDGES: tuple[Bridge, ...] = ("signs", "particles", "short")
"""What may stand between two marks of a skeleton and be masked with them. signs: what has no letter and no digit. particles:
also encoded signs and words of ``PARTICLES``. short: also every word of at most ``SHORT`` letters. With the last two, too,
``BEFORE`` and ``BEHIND`` a mark."""

SHORT = 3

# ruff: noqa: SIM905  lists of words are read as such
# Fixed lists, not learned, of words that no list of rare words marks: English; French; German; Spanish and Portuguese;
# Italian; Dutch and Swedish; Polish; Arabic names; what stands before numbers.
ARTICLES = frozenset(
    "a an the le la les un une der die das den dem des el los las il lo gli o os de het "
    "mr mrs ms miss dr prof sr sra srta don doña mme mlle herr frau sig pan pani".split()
)
"""Articles and titles."""
BEFORE = ARTICLES.union(
    "van von vom t ten ter gebrüder gebr fratelli f.lli hnos".split(),
    "rue avenue boulevard chemin allée impasse quai via viale piazza piazzale corso vicolo calle avenida paseo plaza rua "
    "travessa praça ul ulica ulicy al aleja alei pl plac placu os osiedle c/ av".split(),
)
"""Also what surnames and firms begin with, and kinds of streets, where they stand before the name."""
CAPITAL = frozenset("di da dal dalla del dei degli della delle dello do dos das du são zu zum zur".split())
"""What surnames begin with and every other sentence has, too: only with a capital is it part of the name behind it."""
KIN = frozenset(
    "sons brothers bros partners associates söhne sohn gesellschafter fils frères associés hijos hermanos asociados figli "
    "figlio associati zonen zoon filhos irmãos synowie syn wspólnicy söner co cie cia".split()
)
"""Whom a firm names behind its first name, an "and" before them."""
BEHIND = KIN.union(
    "may march "
    "januar februar märz april mai juni juli august september oktober november dezember "
    "janvier février mars avril juin juillet août septembre octobre novembre décembre "
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre "
    "gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre "
    "januari februari maart mei augustus december "
    "janeiro fevereiro março maio junho julho setembro outubro novembro dezembro "
    "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia "
    "street road lane avenue square terrace drive boulevard crescent court inc ltd llc plc corp co gmbh ag s "
    "mbh ohg kgaa e.v s.a s.a.s s.a.r.l sarl sas eurl s.r.l srl s.p.a spa s.n.c snc s.l s.l.u s.c sp o.o sp.k sp.j "
    "b.v n.v bv nv lda ltda hb s.c stiftung groep groupe gruppe group".split(),
)
"""Also months, kinds of streets and of firms, and the end of a genitive that stands by itself."""
PARTICLES = BEFORE.union(
    "of and upon".split(),
    "et sur sous aux au".split(),
    "und am im auf".split(),
    "y e".split(),
    "op aan bij bei ob en och av af".split(),
    CAPITAL,
    "z ze w we na nad pod i oraz".split(),
    "al bin ibn ben".split(),
    BEHIND,
    "no nr num number st ste str ul av apt box c/o p.o".split(),
)
"""Words that stand inside names, dates and addresses. So does a letter by itself."""

_OF, _AND = {"of", "de", "z"}, {"and", "und", "et", "y", "e", "en", "i", "och", ""}  # "": signs, as in "& Co."
_MASK = re.compile(re.escape(MASK))
_AROUND = re.compile(r"^[\W_]+|[\W_]+$")
_FIRST, _LAST = re.compile(r"[ \t]{1,8}([^\s]{1,16})(?!\S)"), re.compile(r"(?<!\S)([^\s]{1,16})[ \t]{1,8}$")
_SIGNS = re.compile(r"[\W_]+")
_ENCODED = re.compile(r"(?:&#?\w{1,8};|%[0-9A-Fa-f]{2}|=[0-9A-F]{2}|\\[nrt]|</?\w{1,8} ?/?>)+")


def places(text: str, marks: Iterable[Interval], bridge: Bridge = "particles") -> tuple[Interval, ...]:
    """Marks and literal masks, out to the blanks around them, with what belongs to them; in order, apart.

    >>> text = "on the 14th of May, and Rodger of Earlsferry: yes"
    >>> [text[a:b] for a, b in places(text, [(7, 9), (15, 18), (24, 30), (34, 44)])]
    ['the 14th of May, and Rodger of Earlsferry:']
    """
    literal = [mask.span() for mask in _MASK.finditer(text)] if MASK in text else []
    found: list[Interval] = []
    low = 0
    for start, end in sorted([*marks, *literal]):
        end = max(end, low)
        while start > low and not text[start - 1].isspace():
            start -= 1
        while end < len(text) and not text[end].isspace():
            end += 1
        if bridge != "signs":
            start, end = _before(text, start, low), _behind(text, end)
        if found and _joins(text[low:start], bridge):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
        low = end
    return tuple(found)


def whole(text: str, bridge: Bridge = "particles") -> str:
    """``text`` with what belongs to a mask masked with it.

    >>> whole("call (<MASK>, or write to <MASK>@<MASK> of the <MASK>.")
    'call <MASK> or write to <MASK>'
    """
    if MASK not in text:
        return text
    return _whole(text, bridge) if len(text) <= _REMEMBERED else substituted(text, places(text, (), bridge))


_REMEMBERED = 1024


@lru_cache(1 << 12)  # skeletons are asked for by each question about a text's maskings
def _whole(text: str, bridge: Bridge) -> str:
    return substituted(text, places(text, (), bridge))


def substituted(text: str, intervals: Sequence[Interval]) -> str:
    """``text`` with a ``<MASK>`` for each of these."""
    pieces, at = [], 0
    for start, end in intervals:
        pieces += [text[at:start], MASK]
        at = end
    return "".join([*pieces, text[at:]])


def _before(text: str, start: int, low: int) -> int:
    """Where the words of ``BEFORE`` begin that end at ``start``, on its line and not below ``low``."""
    while start > low and (found := _LAST.search(text, max(low, start - 24), start)) and _begins(found[1]):
        start = found.start(1)
    return start


@lru_cache(1 << 14)
def _begins(token: str) -> bool:
    bare = _AROUND.sub("", token)
    return bare.casefold() in BEFORE or (bare[:1].isupper() and bare.casefold() in CAPITAL)


def _behind(text: str, end: int) -> int:
    """Where the words of ``BEHIND`` end that begin at ``end``, on its line, an "of" or, for ``KIN``, an "and" before each at
    most."""
    while found := _FIRST.match(text, end):
        link, known = _bare(found[1]), BEHIND
        if link in _OF or link in _AND:
            found, known = _FIRST.match(text, found.end()), BEHIND if link in _OF else KIN
        if found is None or _bare(found[1]) not in known:
            break
        end = found.end()
    return end


@lru_cache(1 << 14)
def _bare(token: str) -> str:
    """Without the signs around it and regardless of case."""
    return _AROUND.sub("", token).casefold()


def _joins(gap: str, bridge: Bridge) -> bool:
    """Whether what stands between two places is masked with them."""
    if not gap or gap.isspace():
        return OPEN not in gap and CLOSE not in gap
    if OPEN in gap or CLOSE in gap:
        return False
    return all(_belongs(token, bridge) for token in gap.split())


@lru_cache(1 << 14)
def _belongs(token: str, bridge: Bridge) -> bool:
    if _SIGNS.fullmatch(token):
        return True
    if bridge == "signs":
        return False
    bare = _bare(token)
    known = bare in PARTICLES or (len(bare) == 1 and bare.isalpha()) or _ENCODED.fullmatch(token) is not None
    return known or (bridge == "short" and len(bare) <= SHORT)
