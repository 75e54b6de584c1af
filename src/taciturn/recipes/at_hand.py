"""The texts of a data folder, or how many there were: a page can be written from its rows where the folder is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, overload

from taciturn.errors import DataError
from taciturn.recipes.cells import Row, Work
from taciturn.recipes.recipe import Inputs

if TYPE_CHECKING:
    from taciturn.text.document import Document, Record

PARTS = ("train", "test", "held")


@dataclass(frozen=True, slots=True)
class Texts:
    """What a recipe reads. held: of the training text, to choose a learning rate by. note: what the texts are. facts: what
    else of them a page needs."""

    train: Sequence[Document] = field(repr=False)
    test: Sequence[Record] = field(repr=False)
    held: Sequence[Record] = field(default=(), repr=False)
    note: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Absent(Sequence[Any]):
    """As many texts as there were. Raises DataError for any of them."""

    size: int
    of: str

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, at: int) -> NoReturn: ...
    @overload
    def __getitem__(self, at: slice) -> Absent: ...
    def __getitem__(self, at: int | slice) -> Absent:
        if isinstance(at, slice):
            return Absent(len(range(self.size)[at]), self.of)
        raise DataError(f"{self.of}: its texts are not here, only rows measured on them; give --data FOLDER with it")


def at_hand(name: str, inputs: Inputs, work: Work, load: Callable[[], Texts]) -> Texts:
    """``load()``, its sizes kept with the rows; where the folder is not here, texts that are counted and cannot be read, by
    what is kept. Raises what ``load`` raises, also where nothing is kept."""
    key = _key(name, inputs)
    if inputs.data is None or inputs.data.exists():
        found = load()
        work.keep(key, _kept(found))
        return found
    row = work.kept(key)
    if row is None:
        return load()  # which says that there is no such folder
    train, test, held = (Absent(row[part], name) for part in PARTS)
    return Texts(train, test, held, row["note"], row["facts"])


def there(loader: str, name: str, inputs: Inputs, work: Work) -> bool:
    """Whether the folder has a set to train on; where the folder is not here, whether :func:`at_hand` read it once."""
    if inputs.data is None or inputs.data.exists():
        return inputs.data is not None and holds(inputs.data, loader, "train")
    return work.kept(_key(name, inputs)) is not None


def holds(folder: Path, name: str, split: str) -> bool:
    """Whether the folder has a split of a set."""
    from taciturn.data.loaders import load
    from taciturn.errors import DataError

    try:
        load(name, folder, split)
    except DataError:
        return False
    return True


def _key(name: str, inputs: Inputs) -> dict[str, Any]:
    given = inputs.data.resolve().name if inputs.data else ""
    return {"texts": name, "size": inputs.size, "seed": inputs.seed, "data": given}


def _kept(found: Texts) -> Row:
    sizes = {part: len(getattr(found, part)) for part in PARTS}
    return {**sizes, "note": found.note, "facts": dict(found.facts)}
