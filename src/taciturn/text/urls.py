"""Places by URL ("s3://bucket/mail/"): the file systems of fsspec, and their errors as ours.

What is kept, and handed to workers, is the URL: credentials come from the environment of each process.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from taciturn.errors import MissingExtra, TaciturnError, Unreachable, UsageError

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_PASSWORD = re.compile(r"://[^/]*:[^/]*@")


def is_url(path: str) -> bool:
    """Whether this is a URL and no path of this machine.

    >>> is_url("s3://bucket/a.jsonl"), is_url("hf:owner/name#train"), is_url("mail/a.jsonl")
    (True, False, False)
    """
    return _URL.match(path) is not None


def here(path: str) -> str:
    """A path, also where a URL names one of this machine.

    >>> here("file:///mail/a.jsonl"), here("s3://bucket/a.jsonl")
    ('/mail/a.jsonl', 's3://bucket/a.jsonl')
    """
    return path.removeprefix("file://").removeprefix("local://")


def scheme(url: str) -> str:
    return url.partition("://")[0].lower()


def system(url: str) -> tuple[Any, str]:
    """The file system, which fsspec keeps for the next call, and the path in it.

    Raises UsageError for a URL that carries a secret or that nothing installed can open, MissingExtra.
    """
    if _PASSWORD.search(url) or (scheme(url) in ("http", "https") and "?" in url):
        raise UsageError(
            f"a URL ({scheme(url)}://…) carries a password or a signature, and would be kept; give credentials in the "
            "environment or in the store's own settings"
        )
    if "::" in url:
        raise UsageError(f"{url}: chained URLs are not read; archives are, by their own URL")
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtra("fsspec", "cloud") from None
    try:
        found, path = url_to_fs(url)
    except ImportError as error:
        raise UsageError(f"{scheme(url)}:// needs a package that is not installed: {error}") from None
    except Exception as error:
        raise UsageError(
            f"{scheme(url)}:// cannot be used ({type(error).__name__}): no such file system, or its settings are wrong"
        ) from None
    return found, path


@contextmanager
def reached(name: str, done: Literal["read from", "written to"] = "read from") -> Iterator[None]:
    """The errors of every store as two; their messages are not shown: they may quote what was sent."""
    try:
        yield
    except TaciturnError:
        raise
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory") from None
    except Exception as error:
        raise Unreachable(
            f"{name} cannot be {done} its store ({type(error).__name__}): check address, credentials and network, then "
            "give the same command again"
        ) from None


def without_folders(name: str) -> str:
    """A path as ``./`` and its last part, so that what is published does not say where files lie; any other name as it is.

    >>> without_folders("/home/ana/llama"), without_folders("owner/model"), without_folders("bpe:4096")
    ('./llama', 'owner/model', 'bpe:4096')
    """
    path = Path(name)
    if path.is_absolute() or name.startswith((".", "~")) or (len(path.parts) > 1 and path.exists()):
        return f"./{path.name}"
    return name
