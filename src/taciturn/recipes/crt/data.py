"""Dialogues of CRT's data sets from the user's folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from taciturn.recipes.at_hand import holds

if TYPE_CHECKING:
    from taciturn.text.document import Document

SPLITS = {
    ("multiwoz", "train"): (("multiwoz22", "train"), ("multiwoz21", "train"), ("multiwoz21", "test")),
    ("multiwoz", "valid"): (("multiwoz22", "valid"),),
    ("multiwoz", "test"): (("multiwoz22", "test"), ("multiwoz22", "valid")),
    ("customersim", "train"): (("customersim", "train"),),
    ("customersim", "valid"): (("customersim", "valid"),),
    ("customersim", "test"): (("customersim", "test"),),
}
"""Where a folder may hold a split, the paper's own first; MultiWOZ 2.1's test dialogues are not among 2.2's valid ones."""
SECRETS = {"customersim": ("order_number", "phone_number", "address"), "multiwoz": ("ref",)}
"""Labels, in lower case, of the secrets that membership is about (A.5): names stand elsewhere too, numbers of parcels are
the firm's own, phones and addresses of MultiWOZ are those of its database."""


@lru_cache(maxsize=4)
def load_split(data: str, folder: Path, part: str) -> tuple[Document, ...]:
    """Dialogues of the user's folder; MultiWOZ 2.1's test ones are trained on too where 2.2's are not there to test on.
    Raises DataError where it holds no such split."""
    found = _first(SPLITS[data, part], folder)
    if part == "train" and _two_versions(data, folder):
        known = {each.id for each in found}
        found += tuple(each for each in _first((("multiwoz21", "test"),), folder) if each.id not in known)
    return found


def in_one_form(data: str, folder: Path) -> tuple[str, frozenset[str], tuple[Document, ...]] | None:
    """Where dialogues of MultiWOZ 2.1 are trained on: the version with dialogues trained on and not, ids of the first, and
    the others. 2.1 is cut into tokens, "number is : X ." for "number is: X."; against texts of the other version a model
    that knows no secret tells members apart. None where 2.2 is all there is. Raises DataError where neither is whole."""
    two, first = _two_versions(data, folder), holds(folder, "multiwoz22", "train")
    if data != "multiwoz" or (first and not two):
        return None
    if first and not holds(folder, "multiwoz21", "valid"):
        version, name, trained = "2.2", "multiwoz22", ["train"]
    else:
        version, name, trained = "2.1", "multiwoz21", ["test"] if two else ["train", "test"]
    members = _first([(name, split) for split in trained], folder)
    return version, frozenset(each.id for each in members), _first(((name, "valid"),), folder)


def _two_versions(data: str, folder: Path) -> bool:
    return (
        data == "multiwoz"
        and not holds(folder, "multiwoz22", "test")
        and holds(folder, "multiwoz22", "train")
        and holds(folder, "multiwoz21", "test")
    )


def _first(places: Sequence[tuple[str, str]], folder: Path) -> tuple[Document, ...]:
    """The dialogues of the first that is there. Raises the DataError of the first where none is."""
    from taciturn.data.loaders import load
    from taciturn.errors import DataError

    problem: DataError | None = None
    for name, split in places:
        try:
            return tuple(load(name, folder, split).corpus.documents())
        except DataError as error:
            problem = problem or error
    assert problem is not None
    raise problem
