"""Dialogues of CRT's data sets from the user's folder, and which sets a size can run."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from taciturn.recipes.crt.sizes import SIZES
from taciturn.recipes.recipe import Inputs

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


@lru_cache(maxsize=4)
def load_split(data: str, folder: Path, part: str) -> tuple[Document, ...]:
    """Dialogues of the user's folder. Raises DataError where it holds no such split."""
    from taciturn.data.loaders import load
    from taciturn.errors import DataError

    problem: DataError | None = None
    for name, split in SPLITS[data, part]:
        try:
            return tuple(load(name, folder, split).corpus.documents())
        except DataError as error:
            problem = problem or error
    assert problem is not None
    raise problem


def where_from(inputs: Inputs) -> list[str]:
    """Data sets a size can run: those of its own that the folder holds, else the simulated one. Raises DataError. A size of
    one set is not looked for."""
    sets = SIZES[inputs.size].sets
    if inputs.data is None or len(sets) == 1:
        return list(sets[-1:])
    from taciturn.errors import DataError

    found = []
    for data in sets:
        try:
            load_split(data, inputs.data, "train")
        except DataError:
            continue
        found.append(data)
    if not found:
        raise DataError(f"{inputs.data.name}: expected MultiWOZ 2.2 or CustomerSim in it, found neither")
    return found
