"""Where the bytes of a corpus lie: files, everything in a folder, data sets, pipes."""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from taciturn.errors import DataError, similar
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers import hub
from taciturn.text.readers.detect import is_dataset
from taciturn.text.readers.files import digest, plain_name
from taciturn.text.readers.held import STDIN, File, Held, is_stream, standard_input, stream
from taciturn.text.readers.remote import Remote, named
from taciturn.text.urls import here, is_url

WHOLE = "whole file"
_LITTER = frozenset({"__MACOSX", "Thumbs.db", "desktop.ini"})
"""What operating systems leave in folders and archives, without the dot of hidden files."""


@dataclass(frozen=True, slots=True)
class Source:
    """path: what is opened. name: in messages and digests. prefix: of its documents' ids.

    folder: the folder or archive it was found in, None for what somebody named. What cannot be read of a source that was
    found is quarantined, so that it stops the others no more than a bad line does. left_out: why it is not looked at.
    """

    path: File
    name: str
    prefix: str = ""
    folder: str | None = None
    left_out: str = ""

    @property
    def size(self) -> int:
        """Bytes. Raises DataError."""
        path = self.path
        if self.left_out:
            return 0
        if not isinstance(path, Path):
            return path.size
        try:
            if path.is_dir():
                return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
            return 0 if hub.named(path) else path.stat().st_size
        except OSError as error:
            if self.folder is not None:
                return 0
            raise DataError(f"cannot read {self.name}: {error.strerror or type(error).__name__}") from None

    def digests(self) -> dict[str, str]:
        """SHA-256 by name, of each file of a data set; of what cannot be read but was only found, of the reason."""
        path = self.path
        if self.left_out:
            return {}
        if isinstance(path, Held):
            return {self.name: hashlib.sha256(path.data).hexdigest()}
        if isinstance(path, Path) and hub.named(path):
            return {self.name: hub.identity(path)}
        if isinstance(path, Path) and path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("cache-"))
            return {f"{self.name}/{p.relative_to(path).as_posix()}": digest(p) for p in inside}
        try:
            if self.folder is not None and isinstance(path, Path) and is_stream(path):
                raise DataError("a pipe")
            return {self.name: digest(path)}
        except DataError as error:
            if self.folder is None:
                raise
            return {self.name: hashlib.sha256(str(error).encode()).hexdigest()}


def sources(paths: Sequence[str | os.PathLike[str]], options: ReadOptions) -> tuple[Source, ...]:
    """What the paths name, in their order; globs and folders sorted, and a file named twice once.

    Raises DataError for a path that is not there.
    """
    found = [each for path in paths for each in _expand(os.path.expanduser(os.fspath(path)), options)]
    once: dict[object, Source] = {}
    for each in found:
        place = _place(each.path)
        once.setdefault(id(each) if place is None else (place, each.left_out), each)
    return _named(list(once.values()))


def _place(path: File) -> PurePath | None:
    """Where a file lies, which no other file does; None for what lies nowhere."""
    return path.resolve() if isinstance(path, Path) else path.place if isinstance(path, Remote) else None


def _named(found: Sequence[Source]) -> tuple[Source, ...]:
    """With prefixes: the name without endings where that is told apart, the whole name of what was found in a folder."""
    every = [each.name for each in found]
    if len(set(every)) < len(every):
        every = _below(found)
    stems = [str(Path(plain_name(name)).with_suffix("")) for name in every]
    twice = {stem for stem, count in _counted(stems).items() if count > 1}
    return tuple(
        replace(
            each,
            path=_renamed(each.path, name),
            name=name,
            prefix=name if each.folder is not None or stem in twice else stem,
        )
        for each, name, stem in zip(found, every, stems, strict=True)
    )


def _renamed(path: File, name: str) -> File:
    """A pipe goes by the name it is given."""
    return replace(path, name=name) if isinstance(path, Held) else path


def _counted(stems: Sequence[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for stem in stems:
        counts[stem] = counts.get(stem, 0) + 1
    return counts


def _below(found: Sequence[Source]) -> list[str]:
    """Paths below the folder that all files share; a number for pipes, which lie nowhere."""
    places = [_place(each.path) for each in found]
    folders = [place.parent for place in places if place]
    root = os.path.commonpath(folders) if folders else ""
    return [
        shown(place.relative_to(root)) if place else f"{each.name}-{number}"
        for number, (each, place) in enumerate(zip(found, places, strict=True), 1)
    ]


def _expand(pattern: str, options: ReadOptions) -> Iterator[Source]:
    if pattern in STDIN:
        held = standard_input()
        yield Source(held, held.name)
        return
    pattern = here(pattern)
    if is_url(pattern):
        for each in named(pattern):
            yield from _at(each, options)
        return
    path = Path(pattern)
    if hub.named(pattern) or not glob.has_magic(pattern) or path.exists():
        if not hub.named(pattern) and not path.exists():
            raise DataError(f"no such file or folder: {pattern}{similar(path)}")
        yield from _at(path, options)
        return
    matches = [Path(match) for match in sorted(glob.glob(pattern, recursive=True))]
    matches = [match for match in matches if match.is_file() or is_dataset(match)]
    if not matches:
        raise DataError(f"no file matches {pattern}")
    for match in matches:
        yield from _at(match, options)


def _at(path: Path | Remote, options: ReadOptions) -> Iterator[Source]:
    if isinstance(path, Remote):
        whole = not path.is_dir()
        if not whole and options.format in ("slack", "datasets"):
            raise DataError(f"a folder on a store is not read as {options.format}: download {path.name} and name that")
    else:
        whole = hub.named(path) or not path.is_dir() or options.format in ("slack", "datasets") or is_dataset(path)
    if not whole:
        inside = list(_walked(path, "", path.name if isinstance(path, Remote) else path.resolve().name, options))
        if not inside:
            raise DataError(f"{path.name} is an empty folder")
        yield from inside
    elif isinstance(path, Path) and not hub.named(path) and is_stream(path):
        held = stream(path)
        yield Source(held, held.name)
    else:
        yield Source(path, shown(path.name or (path.resolve().name if isinstance(path, Path) else "") or path))


def _walked(folder: Path | Remote, before: str, within: str, options: ReadOptions) -> Iterator[Source]:
    """Everything below a folder, sorted by name at each level; links to folders are not followed, so that it ends."""
    try:
        entries = _entries(folder)
    except OSError:
        yield Source(folder, shown(before) or within, folder=within)  # opened, it says why it cannot be read
        return
    for path, is_folder, linked in entries:
        name = f"{before}{path.name}"
        if hidden(path.name):
            yield Source(path, shown(name), folder=within, left_out="hidden folder" if is_folder else "hidden file")
        elif is_folder and linked:
            yield Source(path, shown(name), folder=within, left_out="link to a folder")
        elif is_folder and not (options.format == "auto" and isinstance(path, Path) and is_dataset(path)):
            yield from _walked(path, f"{name}/", within, options)
        else:
            yield Source(path, shown(name), folder=within)


def _entries(folder: Path | Remote) -> list[tuple[Path | Remote, bool, bool]]:
    """What lies in a folder by name, whether it is one, whether it is a link. Raises OSError, Unreachable."""
    if isinstance(folder, Remote):
        return [(each, each.is_dir(), False) for each in folder.entries()]
    found = sorted(os.scandir(folder), key=lambda entry: entry.name)
    return [(folder / entry.name, entry.is_dir(), entry.is_symlink()) for entry in found]


def hidden(name: str) -> bool:
    """Whether people do not see this file (last part of its path): it is no part of a corpus they point at as a folder.

    >>> hidden(".git"), hidden("~$letter.docx"), hidden("notes.txt")
    (True, True, False)
    """
    return name.startswith((".", "~$")) or name in _LITTER


def shown(name: object) -> str:
    """A name that can be printed and stored: bytes that are no UTF-8 and control characters are escaped."""
    text = str(name).encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def readable(source: Source) -> None:
    """Raises DataError for what lies in a folder and is neither a file nor a data set: opening it could wait for ever."""
    path = source.path
    if source.folder is None or source.left_out or not isinstance(path, Path):
        return
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or type(error).__name__}") from None
    if stat.S_ISDIR(mode) and not is_dataset(path):
        raise DataError("a folder that cannot be listed: Permission denied")
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise DataError("a pipe or a device; one in a folder is not waited for: name it itself, or remove it")
