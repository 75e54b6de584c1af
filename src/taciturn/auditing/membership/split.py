"""Who is a member, decided by coins before training: the split that every membership attack and every bound on ε needs.

Members and non-members that come from two sources, or from before and after a date, differ without any model (Das et al.
2024). One set of texts of the same kind, cut once at random, differs by nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from taciturn.errors import UsageError

Text = TypeVar("Text")


@dataclass(frozen=True, slots=True)
class Split(Generic[Text]):
    """members: to train on. nonmembers: to leave out. reference: for reference models, and in neither."""

    members: tuple[Text, ...]
    nonmembers: tuple[Text, ...]
    reference: tuple[Text, ...] = ()


def split(texts: Sequence[Text], seed: int, reference: float = 0.0) -> Split[Text]:
    """A fair coin for each different text, after a share ``reference`` is set aside.

    texts: strings, documents or records; equal texts share one coin, so that no non-member is a copy of a member. The seed
    is part of what an attacker must not know if its bound on ε is to mean anything: draw it, keep it, and train once.

    >>> found = split([f"text {i}" for i in range(100)], seed=1, reference=0.2)
    >>> len(found.members) + len(found.nonmembers) + len(found.reference), len(found.reference)
    (100, 20)
    """
    if not 0 <= reference < 1:
        raise UsageError(f"split: expected a share from 0 to below 1 for reference models, found {reference}")
    groups: dict[Hashable, list[Text]] = {}
    for each in texts:
        groups.setdefault(_key(each), []).append(each)
    if len(groups) < 2:
        raise UsageError(f"split: expected at least two different texts, found {len(groups)}")
    rng = random.Random(f"taciturn split {seed}")
    keys = list(groups)
    aside = set(rng.sample(range(len(keys)), round(reference * len(keys))))
    sides: tuple[list[Text], list[Text], list[Text]] = ([], [], [])
    for i, key in enumerate(keys):
        coin = rng.getrandbits(1)
        sides[2 if i in aside else coin].extend(groups[key])
    return Split(*(tuple(side) for side in sides))


def _key(each: Any) -> Hashable:
    return each if isinstance(each, str) else each.text
