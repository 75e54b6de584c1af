"""Dialogues of CRT's data sets from the user's folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

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
    if (data, part) == ("multiwoz", "train") and not holds(folder, "multiwoz22", "test"):
        known = {each.id for each in found}
        more = _first((("multiwoz21", "test"),), folder) if holds(folder, "multiwoz21", "test") else ()
        found += tuple(each for each in more if each.id not in known)
    return found


def holds(folder: Path, name: str, split: str) -> bool:
    """Whether the folder has a split of a set."""
    from taciturn.data.loaders import load
    from taciturn.errors import DataError

    try:
        load(name, folder, split)
    except DataError:
        return False
    return True


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
