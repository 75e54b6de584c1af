"""Finding a split's files, choosing their layout, and saying what was found."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePath

from taciturn.data.loaders.layouts import Asked, in_memory, with_speakers
from taciturn.data.loaders.sets import SETS, DataSet, Place
from taciturn.errors import DataError, UsageError, nearest
from taciturn.text.readers import Corpus, read
from taciturn.text.readers.files import PACKED, plain_name

HUB = "hf:"
"""As a source: the set's own name on the hub. "hf:FOLDER": a folder that ``datasets.load_dataset`` knows."""
ALIASES = {"dev": "valid", "validation": "valid"}

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A corpus and what a report must say of it. note: what differs from the paper (samples, missing splits, made-up
    users), and the licence."""

    name: str
    split: str
    corpus: Corpus
    note: str


def names() -> tuple[str, ...]:
    """Every data set by name.

    >>> "qnli" in names()
    True
    """
    return tuple(SETS)


def hub_name(name: str, split: str) -> str:
    """What ``read`` calls a split of the set on the hub. Raises UsageError for a set that the hub has no readable form of.

    >>> hub_name("qnli", "valid")
    'hf:nyu-mll/glue:qnli#validation'
    """
    hub = _known(name).hub
    if hub is None:
        there = ", ".join(n for n, s in SETS.items() if s.hub)
        raise UsageError(f"'{name}' is not read from the hub; name its files. From the hub: {there}")
    split = ALIASES.get(split, split)
    if split not in hub.splits:
        raise DataError(f"{name} on the hub has no split '{split}'; there are: {', '.join(hub.splits)}")
    return f"{HUB}{hub.name}{':' + hub.config if hub.config else ''}#{hub.splits[split]}"


def load(
    name: str, source: Source, split: str = "train", *, run: int = 10, canaries: bool = False, speakers: bool = False
) -> Loaded:
    """One split of a data set.

    source: a folder (the set's own, or the one above), a file or several of one layout, "hf:" for the set's name on the
    hub, "hf:FOLDER" for a folder that ``load_dataset`` knows. split: "dev" and "validation" mean "valid"; of mnli:
    "matched", "mismatched". run: sentences a user where the files name none. canaries: keep CustomerSim's. speakers: put
    "SPEAKER: " before each turn of a dialogue.

    Raises UsageError for an unknown name, DataError when the split is not there; the message names what is.
    """
    known = _known(name)
    split = ALIASES.get(split, split)
    if run < 1:
        raise UsageError(f"run must be at least 1 sentence, got {run}")
    if isinstance(source, str) and source.startswith(HUB):
        corpus, notes = _hub(name, known, source, split)
    else:
        place, paths = _files(name, known, source, split)
        corpus, own = place.layout(paths, Asked(split, run, canaries))
        notes = [place.note, own]
    if speakers:
        corpus = in_memory(corpus, map(with_speakers, corpus.documents()))
    note = " ".join(filter(None, (*notes, known.note, f"Licence: {known.licence}.")))
    return Loaded(name, split, corpus, note)


def _known(name: str) -> DataSet:
    if name not in SETS:
        raise UsageError(f"unknown data set '{name}'; {nearest(name, SETS)}")
    return SETS[name]


def _hub(name: str, known: DataSet, source: str, split: str) -> tuple[Corpus, list[str]]:
    where = hub_name(name, split)
    assert known.hub is not None
    if source != HUB:  # a folder has no configurations
        where = f"{source.partition('#')[0]}#{where.partition('#')[2]}"
    return read(where, **known.hub.options), [known.hub.note]


def _files(name: str, known: DataSet, source: Source, split: str) -> tuple[Place, tuple[Path, ...]]:
    each = [source] if isinstance(source, str | os.PathLike) else source
    given = [Path(path).expanduser() for path in each]
    missing = [p.name for p in given if not p.exists()]
    if missing or not given:
        raise DataError(f"no such file or folder for {name}: {', '.join(missing) or 'none named'}")
    if len(given) == 1 and given[0].is_dir():
        return _in_folder(name, known, given[0], split)
    places = [_place(name, known, path, split) for path in given]
    if len({place.layout for place in places}) > 1:
        raise DataError(f"the files named for {name} are in several layouts; load them one by one")
    notes = " ".join(dict.fromkeys(place.note for place in places if place.note))
    return Place(places[0].pattern, places[0].layout, notes), tuple(given)


def _in_folder(name: str, known: DataSet, folder: Path, split: str) -> tuple[Place, tuple[Path, ...]]:
    for place, paths in _there(known, folder, split):
        return place, paths
    there = [each for each in known.splits if any(_there(known, folder, each))]
    found = f"there: {', '.join(there)}" if there else "no file of it is there"
    wanted = ", ".join(place.pattern for place in known.splits.get(split, ()))
    files = f" (looked for {wanted})" if wanted else f"; splits of {name}: {', '.join(known.splits)}"
    raise DataError(f"{name} has no split '{split}' in {folder.name}; {found}{files}")


def _there(known: DataSet, folder: Path, split: str) -> Iterator[tuple[Place, tuple[Path, ...]]]:
    for base in (folder, *(folder / inner for inner in known.folders)):
        for place in known.splits.get(split, ()):
            for ending in ("", *PACKED):
                if paths := tuple(sorted(base.glob(place.pattern + ending))):
                    yield place, paths


def _place(name: str, known: DataSet, path: Path, split: str) -> Place:
    """The layout of a file that a user names: by its name in this split, in any split, or else by its ending alone."""
    plain = plain_name(path.name)
    of_split = known.splits.get(split)
    if of_split is None or path.is_dir():
        what = f"'{path.name}' is a folder; name it alone" if path.is_dir() else f"it has: {', '.join(known.splits)}"
        raise DataError(f"{name} cannot give split '{split}': {what}")
    every = [place for places in (of_split, *known.splits.values()) for place in places]
    for place in every:
        if fnmatch(plain, PurePath(place.pattern).name):
            return place
    for place in every:
        if PurePath(place.pattern).suffix == PurePath(plain).suffix:
            return Place(place.pattern, place.layout)  # its note is about another file
    known_as = ", ".join(sorted({PurePath(place.pattern).name for place in every}))
    raise DataError(f"cannot tell the layout of {path.name} for {name}; expected a name like {known_as}")
