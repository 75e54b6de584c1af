"""Members of .zip and .tar archives (.tar.gz, .tar.bz2, .tar.xz, .tar.zst), one after another, in memory.

Nothing is written to disk. One member is held at a time, at most ``held.MOST`` bytes of it.
"""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from lzma import LZMAError
from pathlib import PurePosixPath

from taciturn.errors import DataError
from taciturn.text.readers.detect import is_archive
from taciturn.text.readers.files import opened
from taciturn.text.readers.held import MOST, Held
from taciturn.text.readers.sources import Source, hidden, shown

_ENOUGH, _RATIO = 1 << 30, 250
"""An archive may unpack to this many bytes, or to this many times its size. Text seldom packs below a fiftieth."""


class Refused(DataError):
    """A member that is not unpacked."""


def members(source: Source) -> Iterator[Source | tuple[str, str]]:
    """The files of an archive in its order, each as a source, or as (name, why it is not unpacked).

    Raises DataError for a damaged archive, and for one that unpacks to far more than it is.
    """
    room = max(_ENOUGH, _RATIO * source.size)
    walk = _zip if source.name.lower().endswith(".zip") else _tar
    with _opening(source.name):
        for member, kind, size, load in walk(source):
            parts = PurePosixPath(member).parts  # "./a" is "a"
            name = f"{source.name}/{shown('/'.join(parts))}"
            within = source.folder or source.name
            if ".." in parts or member.startswith(("/", "\\")):
                yield name, "its name leads out of the archive; pack it again"
            elif kind or any(hidden(part) for part in parts):
                yield Source(Held(name, b""), name, folder=within, left_out=kind or "hidden file")
            elif is_archive(member):
                yield name, "an archive inside an archive; unpack the outer one and name the folder"
            elif size > MOST:
                yield name, f"larger than {MOST >> 20} MiB; unpack the archive and name the folder"
            else:
                room -= size
                if room < 0:
                    raise DataError(
                        f"{source.name} unpacks to more than {_RATIO} times its size, as bombs do; if it is none, unpack it "
                        "and name the folder"
                    )
                try:
                    data = load()
                except Refused as refused:
                    yield name, str(refused)
                    continue
                yield Source(Held(PurePosixPath(member).name, data), name, prefix=name, folder=within)


Member = tuple[str, str, int, Callable[[], bytes]]
"""Name, why it is left out, size as declared (neither library gives more), and what unpacks it."""


def _zip(source: Source) -> Iterator[Member]:
    with source.path.open("rb") as file, zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                yield info.filename, "", info.file_size, lambda info=info: _unzipped(archive, info)  # type: ignore[misc]


def _unzipped(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.flag_bits & 1:
        raise Refused("encrypted; unpack the archive with its password and name the folder")
    try:
        return archive.read(info)
    except NotImplementedError:
        raise Refused("packed in a way that Python does not know; unpack the archive and name the folder") from None
    except (zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError):
        raise Refused("damaged inside the archive; fetch or pack it again") from None


def _tar(source: Source) -> Iterator[Member]:
    path = source.path
    with opened(path, source.name) as stream, tarfile.open(fileobj=stream, mode="r|*") as archive:
        for info in archive:
            if info.isdir():
                continue
            kind = "" if info.isreg() else "link" if info.issym() or info.islnk() else "device"
            file = None if kind else archive.extractfile(info)
            yield info.name, kind, info.size, (file.read if file else bytes)


@contextmanager
def _opening(name: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, LZMAError, EOFError):
        raise DataError(f"{name} is a damaged archive, or none; fetch or pack it again") from None
    except (ValueError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{name} is an archive that cannot be unpacked ({type(error).__name__})") from None
    except OSError as error:
        raise DataError(f"cannot read {name}: {error.strerror or type(error).__name__}") from None
