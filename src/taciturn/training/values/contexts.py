"""Classes of what stands around a mask: the words beside it, from skeletons alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from taciturn.text.chat import CLOSE, OPEN
from taciturn.text.document import MASK

LEAST = 300
"""Masks that a class has at least; the noise of a count would be more than a smaller one can tell."""
_WORD = re.compile(rf"[^\W_]+|[^\w\s]|[{OPEN}{CLOSE}\n]")
_BORDERS = (OPEN, CLOSE, "\n")
FOLLOWS = ("end", "capital", "small letter", "other")
"""What comes behind a mask, as far as the punctuation between the two depends on it."""
Context = tuple[str | None, str | None]


def around(masked: str) -> list[Context]:
    """The word or sign before and behind each mask, in small letters; "" where a text or a message begins or ends.

    >>> around("For <MASK> people on <MASK>")
    [('for', 'people'), ('on', '')]
    """
    parts = masked.split(MASK)
    words = [_WORD.findall(part) for part in parts]
    ends = [(_name(w[-1]) if w else "", _name(w[0]) if w else "") for w in words]
    return [(ends[i][0], ends[i + 1][1]) for i in range(len(parts) - 1)]


def behind_each(masked: str) -> list[int]:
    """What comes behind each mask, by its number in ``FOLLOWS``.

    >>> [FOLLOWS[i] for i in behind_each("<MASK> that is <MASK> We (<MASK> on <MASK>")]
    ['small letter', 'capital', 'small letter', 'end']
    """
    return [_follows(part.lstrip(" ")[:1]) for part in masked.split(MASK)[1:]]


def _follows(sign: str) -> int:
    kind = "end" if not sign or sign in _BORDERS else "capital" if sign.isupper() else "small letter"
    return FOLLOWS.index(kind if kind == "end" or sign.isalpha() else "other")


def _name(word: str) -> str:
    return "" if word in _BORDERS else word.lower()


@dataclass(frozen=True, slots=True)
class Contexts:
    """classes: (word before, word behind) of each; None for any. The last stands for all others."""

    classes: tuple[Context, ...]
    _places: dict[Context, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_places", {name: i for i, name in enumerate(self.classes)})

    @staticmethod
    def of(skeletons: Iterable[str], least: int = LEAST) -> Contexts:
        """Pairs of words around at least ``least`` masks; of the other masks the words before, then those behind."""
        left = Counter(pair for skeleton in skeletons for pair in around(skeleton))
        chosen: list[Context] = []
        for key in (lambda p: p, lambda p: (p[0], None), lambda p: (None, p[1])):
            found: Counter[Context] = Counter()
            for pair, count in left.items():
                found[key(pair)] += count
            some = sorted(name for name, count in found.items() if count >= least)
            chosen += some
            left = Counter({pair: count for pair, count in left.items() if key(pair) not in set(some)})
        return Contexts((*chosen, (None, None)))

    def numbers(self, skeleton: str) -> list[int]:
        """The class of each mask of a skeleton.

        >>> Contexts((("for", "people"), ("on", None), (None, None))).numbers("For <MASK> people on <MASK> at <MASK>")
        [0, 1, 2]
        """
        places = self._places
        return [
            next(places[name] for name in (pair, (pair[0], None), (None, pair[1]), (None, None)) if name in places)
            for pair in around(skeleton)
        ]

    def __len__(self) -> int:
        return len(self.classes)
